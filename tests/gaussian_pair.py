"""From one Gaussian in two dimensions to another times a constant: the problem on which the rivals are tested."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from tests.conformance.exact import CONSTANT, FACTORS, MEANS
from thermocline.engine.checkpoint import Checkpoint

HMC = tc.HMC(num_steps=3)
QUIET: dict[str, Any] = {"progress": False, "num_chains": 8, "num_warmup": 120}
NUM_DRAWS = 160


def log_gaussian(x, data):
    """A Gaussian with a constant, cut off below `edge`: one function, and so one program, serves all tests."""
    return jnp.where(x[0] > data["edge"], data["gaussian"].log_density(x) + data["constant"], -jnp.inf)


FIRST, SECOND = (tc.Gaussian(mean, factor) for mean, factor in zip(MEANS, FACTORS, strict=True))


def target_of(gaussian=SECOND, constant=CONSTANT, edge=-np.inf):
    return tc.Target(log_gaussian, np.ones(2), {"gaussian": gaussian, "constant": constant, "edge": edge})


def run(method, target=None, *, base=FIRST, seed=5, num_draws=NUM_DRAWS, **options):
    """By default, log Z of a Gaussian times e^1.3 from another one."""
    target = target_of() if target is None else target
    return tc.sample(target, base=base, method=method, seed=seed, num_draws=num_draws, **QUIET, **options, search=False)


def assert_same(one, other):
    for name, first, second in zip(one.draws._fields, one.draws, other.draws, strict=True):
        assert np.array_equal(first, second), name
    assert one.log_evidence == other.log_evidence
    assert one.cost.evaluations.total == other.cost.evaluations.total


def interrupted_and_resumed(method, folder, monkeypatch, *, stores, chunk_size, part=None):
    """A run that is interrupted after so many stores of its checkpoint, or of that of one part, and called again."""
    store, count = Checkpoint.store, iter(range(stores))

    def interrupted(self, *arguments):
        store(self, *arguments)
        if part in (None, self.folder.name) and next(count, None) is None:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "store", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(method, checkpoint=folder, chunk_size=chunk_size)
    return run(method, checkpoint=folder, chunk_size=chunk_size)
