"""Targets with exact evidences, made anew from any seed: a generator, not a list that one could tune to."""

import hashlib
import zlib
from collections.abc import Callable

import numpy as np

from studies.targets.affine import AffineMap, random_map
from studies.targets.bounded import bounded
from studies.targets.curved import banana_and_ring, funnel
from studies.targets.label_switching import label_switching
from studies.targets.mixtures import gaussian_mixture, spike_and_slab, t_mixture
from studies.targets.products import heavy_tailed_product, skewed_product
from studies.targets.record import SPREAD_OF_CONSTANTS, Core, GeneratedTarget, Modes, log_volume_spread, mapped
from studies.targets.regressions import regression

__all__ = [
    "FAMILIES",
    "AffineMap",
    "Core",
    "GeneratedTarget",
    "Modes",
    "generate",
    "log_volume_spread",
    "mapped",
    "random_map",
    "seeds_of_commit",
]

FAMILIES: dict[str, Callable[[np.random.Generator], Core]] = {
    "gaussian mixture": gaussian_mixture,
    "t mixture": t_mixture,
    "skewed product": skewed_product,
    "heavy-tailed product": heavy_tailed_product,
    "bounded": bounded,
    "funnel": funnel,
    "banana and ring": banana_and_ring,
    "spike and slab": spike_and_slab,
    "regression": regression,
    "label switching": label_switching,
}
FIRST_UNSEEN = 1000  # seeds below are for development


def generate(family: str, seed: int) -> GeneratedTarget:
    """The target of that family and seed: its core, a random affine map and a random constant, see `mapped`."""
    if family not in FAMILIES:
        raise ValueError(f"family is {family!r}; choose one of {', '.join(FAMILIES)}.")
    generator = np.random.default_rng([zlib.crc32(family.encode()), seed])
    core = FAMILIES[family](generator)
    affine = random_map(generator, len(core.start))
    return mapped(core, affine, SPREAD_OF_CONSTANTS * generator.normal(), family, seed)


def seeds_of_commit(commit: str, number: int) -> list[int]:
    """Seeds that nobody could have tuned on: from the hash of a commit, all distinct and at least `FIRST_UNSEEN`."""
    digest = hashlib.sha256(commit.encode()).digest()
    generator = np.random.default_rng(list(digest))
    return [int(seed) for seed in FIRST_UNSEEN + generator.choice(2**31 - FIRST_UNSEEN, size=number, replace=False)]
