"""Does the search care for units? Named targets under random affine maps, far starts and constants.

Of every target: the modes that a search finds, looks along the axes left out, and their masses by importance sampling,
first as it is and then under maps with condition numbers up to 10^6, with the start moved by 1000 deviations and a
constant added to the log density. Printed: runs with the same modes, and the largest difference of a log mass in joint
standard errors.

    python -m studies.equivariance [--maps 20]
"""

import argparse
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

import thermocline as tc
from studies.study_problems import gaussian_mixture
from studies.targets import random_map
from thermocline.auto.design import Designer
from thermocline.engine.progress import Silent
from thermocline.evaluator import checked_evaluator
from thermocline.modes.find import Search
from thermocline.modes.local import local_modes
from thermocline.modes.table import mode_masses

SAME = 0.1  # deviations of a mode, between two places that are one


class Named(NamedTuple):
    name: str
    target: tc.Target
    deviations: np.ndarray  # by coordinate, roughly


class Answer(NamedTuple):
    """Modes in the target's own coordinates, heaviest first, with their log masses and errors."""

    location: np.ndarray
    log_mass: np.ndarray
    error: np.ndarray


def targets() -> list[Named]:
    """Three modes, eight in ten dimensions, a curved one and a regression."""
    generator = np.random.default_rng(0)
    means = generator.normal(size=(8, 10)) * 6
    covariances = np.stack([np.diag(np.exp(generator.uniform(-1, 1, 10))) for _ in range(8)])
    eight = gaussian_mixture("eight", generator.dirichlet(np.full(8, 4.0)), means, covariances, 11.0)
    three = gaussian_mixture(
        "three",
        np.array([0.55, 0.3, 0.15]),
        np.array([[6.0, 0.0, 1.0], [-5.0, 4.0, 0.0], [0.0, -7.0, -2.0]]),
        np.stack([np.eye(3), np.diag([0.3, 0.2, 0.5]), np.diag([0.4, 1.2, 0.7])]),
        -4.2,
    )
    x = generator.normal(size=(200, 6))
    y = (generator.uniform(size=200) < 1 / (1 + np.exp(-x @ generator.normal(size=6)))).astype(float)

    def regression(b):
        eta = x @ b
        return jnp.sum(y * eta - jnp.logaddexp(0.0, eta)) - b @ b / 8

    def banana(x):
        return -0.5 * (x[0] ** 2 + (x[1] - 0.5 * x[0] ** 2) ** 2 / 0.25 + x[2] ** 2)

    return [
        Named("three modes", three.target, np.full(3, 4.0)),
        Named("eight modes in 10-D", eight.target, np.full(10, 6.0)),
        Named("banana", tc.Target(banana, np.zeros(3)), np.array([1.0, 1.0, 1.0])),
        Named("regression", tc.Target(regression, np.zeros(6)), np.full(6, 0.2)),
    ]


def answer(target: tc.Target, start: np.ndarray, seed: int) -> Answer:
    """Search, design, and masses by fresh draws."""
    evaluate = checked_evaluator(target)
    search = Search(evaluate, np.random.default_rng([seed, 1]), Silent(), along_axes=False)
    search.first(start[None])
    search.go_on()
    designer = Designer(evaluate, np.random.default_rng([seed, 2]), search)
    designer.first()
    modes = local_modes(search.found(), designer.best.mixture)
    table = mode_masses(np.random.default_rng([seed, 3]), evaluate, modes)
    return Answer(table.location, table.log_mass, table.log_mass_error)


def under_map(named: Named, seed: int) -> tuple[Answer, float]:
    """The answer under a random map, in the target's own coordinates again, with the constant and Jacobian off."""
    generator, size = np.random.default_rng([seed, 7]), len(named.deviations)
    affine, constant = random_map(generator, size), 100 * generator.normal()
    matrix, shift = jnp.asarray(affine.matrix), jnp.asarray(affine.shift)
    density = named.target

    def mapped(x):
        return density(jnp.linalg.solve(matrix, x - shift)) + constant

    direction = generator.normal(size=size)
    start = np.ravel(named.target.initial_position) + 1000 * named.deviations * direction / np.linalg.norm(direction)
    mapped_start = affine.matrix @ start + affine.shift
    found = answer(tc.Target(mapped, mapped_start), mapped_start, seed)
    own = np.linalg.solve(affine.matrix, (found.location - affine.shift).T).T
    return found._replace(location=own), constant + float(np.linalg.slogdet(affine.matrix)[1])


def compared(plain: Answer, mapped: Answer, offset: float, deviations: np.ndarray) -> tuple[bool, float]:
    """Whether both have the same modes, and the largest difference of their log masses in joint errors."""
    apart = np.linalg.norm((plain.location[:, None] - mapped.location) / deviations, axis=2)
    place = apart.argmin(axis=1)
    is_same = len(plain.log_mass) == len(mapped.log_mass) == len(set(place)) and bool(apart.min(axis=1).max() < SAME)
    difference = mapped.log_mass[place] - offset - plain.log_mass
    return is_same, float(np.max(np.abs(difference) / np.hypot(plain.error, mapped.error[place])))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--maps", type=int, default=20)
    number = parser.parse_args().maps
    for named in targets():
        plain = answer(named.target, np.ravel(named.target.initial_position), 0)
        runs = [compared(plain, *under_map(named, seed), named.deviations) for seed in range(number)]
        print(
            f"{named.name:<22} {len(plain.log_mass)} modes; the same under {sum(same for same, _ in runs)} of {number} "
            f"maps; largest difference of a mass {max(z for _, z in runs):.1f} errors",
            flush=True,
        )


if __name__ == "__main__":
    main()
