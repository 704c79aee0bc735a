"""Pathfinder (Zhang et al. 2022): Gaussians of the curvature that quasi-Newton climbs see, the best of them by ELBO."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from blackjax.optimizers.lbfgs import (
    bfgs_sample,
    lbfgs_inverse_hessian_factors,
    lbfgs_inverse_hessian_formula_1,
    lbfgs_recover_alpha,
)

from thermocline.bases.base import BaseFit
from thermocline.bases.gaussian import Gaussian
from thermocline.fits.advi import elbo, log_ratios
from thermocline.fits.ravelled import Ravelled
from thermocline.fits.stochastic_ascent import Height, Normal
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import computing_in, to_numpy
from thermocline.support.streams import fit_key
from thermocline.target import Target

NUM_STEPS = 60
NUM_LINE_SEARCH = 15
MEMORY = 10  # pairs of steps and changes of gradient that make up a curvature
NUM_DRAWS = 64  # for the ELBO at each point of a path
NUM_CHOICE = 256  # for that of each path's best point, by which the best path is chosen
NUM_FRESH = 1024  # for that which is reported
SPREAD = 2.0  # of the starts about the initial position
LEAST_GAIN = 1e-9  # of a step, in nats, at which a climb ends

Factors = tuple[
    jax.Array, jax.Array, jax.Array
]  # alpha, beta, gamma: the inverse Hessian is diag(alpha) + beta gamma betaᵀ


class Path(NamedTuple):
    """Points of one climb of -log density, repeated from where it ended on."""

    position: jax.Array
    gradient: jax.Array  # of minus the log density
    num_points: jax.Array
    num_gradients: jax.Array


class Candidate(NamedTuple):
    """The best approximation along one path, and its ELBO: once to choose by, once unbiased by that choice."""

    normal: Normal
    choice: jax.Array
    elbo: Height
    trace: jax.Array  # of the ELBO by point of the path, NaN after the last
    num_gradients: jax.Array


def fit_pathfinder(target: Target, *, seed: int = 0, num_paths: int = 8, precision: str = "float64") -> BaseFit:
    """The Gaussian with the best ELBO among all points of several climbs.

    One climb starts at the target's initial position, the others within 2 of it in each coordinate. The density may be
    unbounded: points too far up a spike have a low ELBO. log zeta is the ELBO by 1024 fresh draws, a lower bound.
    """
    with computing_in(precision):
        density = Ravelled.of(target, precision)
        best, num_gradients = _best_of_paths(fit_key(seed), density, num_paths)
        base = to_numpy(Gaussian(density.unravel(best.normal.mean), best.normal.scale))
        best = to_numpy(best)
    if not np.isfinite(best.choice + best.elbo.value):
        raise ThermoclineError(
            f"none of {num_paths} paths met a Gaussian whose draws have a density; give another `initial_position`, "
            "or use tc.fit_advi."
        )
    error = np.std(best.elbo.influence) / NUM_FRESH**0.5
    story = f"Pathfinder's best point on {num_paths} paths has an ELBO of {best.elbo.value:.3f} ± {error:.3f}."
    trace = best.trace[~np.isnan(best.trace)]
    return BaseFit(base, float(best.elbo.value), int(num_gradients), "lower bound", trace, story=(story,))


@partial(jax.jit, static_argnames="num_paths")
def _best_of_paths(key: jax.Array, density: Ravelled, num_paths: int) -> tuple[Candidate, jax.Array]:
    """The best candidate of all paths, and the evaluations spent on all."""
    key_starts, key_paths = jax.random.split(key)
    start = density.initial_position
    offsets = jax.random.uniform(key_starts, (num_paths, start.size), start.dtype, -SPREAD, SPREAD).at[0].set(0.0)
    one = partial(pathfinder, log_density=density)
    candidates = jax.vmap(one)(jax.random.split(key_paths, num_paths), start + offsets)
    best = jax.tree.map(lambda leaf: leaf[jnp.argmax(candidates.choice)], candidates)
    return best, jnp.sum(candidates.num_gradients)


def pathfinder(key: jax.Array, position: jax.Array, *, log_density: Callable[[jax.Array], jax.Array]) -> Candidate:
    """One path from one ravelled position, as pure JAX: to be jitted, and vmapped over positions."""
    path = climb(log_density, position)
    curvature = _curvature_along(path)

    def elbo_at(index: jax.Array) -> tuple[jax.Array, Factors]:
        """The gradient goes in with the sign of the log density's: BlackJAX adds where it should subtract."""
        key_draws, slope, factors = jax.random.fold_in(key, index), -path.gradient[index], curvature(index)
        draws, log_normal = bfgs_sample(key_draws, NUM_DRAWS, path.position[index], slope, *factors)
        return elbo(jax.vmap(log_density)(draws) - log_normal, penalty=1.0).value, factors

    elbos, factors = jax.lax.map(elbo_at, jnp.arange(NUM_STEPS + 1))
    elbos = jnp.where(jnp.arange(NUM_STEPS + 1) < path.num_points, elbos, jnp.nan)
    best = jnp.argmax(jnp.where(jnp.isnan(elbos), -jnp.inf, elbos))
    covariance = lbfgs_inverse_hessian_formula_1(*(factor[best] for factor in factors))
    normal = Normal(path.position[best] - covariance @ path.gradient[best], jnp.linalg.cholesky(covariance))
    shape = NUM_CHOICE + NUM_FRESH, position.size
    noise = jax.random.normal(jax.random.fold_in(key, NUM_STEPS + 1), shape, position.dtype)
    fresh = log_ratios(log_density, normal, noise)
    return Candidate(
        normal=normal,
        choice=elbo(fresh[:NUM_CHOICE], penalty=1.0).value,
        elbo=elbo(fresh[NUM_CHOICE:]),
        trace=elbos,
        num_gradients=path.num_gradients + path.num_points * NUM_DRAWS + NUM_CHOICE + NUM_FRESH,
    )


def _curvature_along(path: Path) -> Callable[[jax.Array], Factors]:
    """By point of a path, the factors of the inverse Hessian that the last few steps up to it imply."""
    steps, changes = jnp.diff(path.position, axis=0), jnp.diff(path.gradient, axis=0)

    def recover(alpha: jax.Array, pair: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        alpha, used = lbfgs_recover_alpha(alpha, *pair)
        return alpha, (alpha, used)

    first = jnp.ones_like(path.position[0])
    _, (alphas, used) = jax.lax.scan(recover, first, (steps, changes))
    alphas = jnp.concatenate([first[None], alphas])
    room = ((MEMORY, 0), (0, 0))
    steps, changes = (jnp.pad(jnp.where(used, pairs, 0.0), room) for pairs in (steps, changes))

    def at(index: jax.Array) -> Factors:
        window = index + jnp.arange(MEMORY)
        return alphas[index], *lbfgs_inverse_hessian_factors(steps[window].T, changes[window].T, alphas[index])

    return at


def climb(log_density: Callable[[jax.Array], jax.Array], start: jax.Array) -> Path:
    """L-BFGS of Optax on minus the log density, with every point kept: it alone counts its evaluations."""
    search = optax.scale_by_zoom_linesearch(max_linesearch_steps=NUM_LINE_SEARCH, initial_guess_strategy="one")
    optimiser = optax.lbfgs(memory_size=MEMORY, linesearch=search)

    def loss(position: jax.Array) -> jax.Array:
        return -log_density(position)

    def goes_on(carry: tuple) -> jax.Array:
        *_, index, _, gain = carry
        return (index < NUM_STEPS) & (gain > LEAST_GAIN)

    def step(carry: tuple) -> tuple:
        positions, gradients, value, state, index, spent, _ = carry
        position, gradient = positions[index], gradients[index]
        update, state = optimiser.update(gradient, state, position, value=value, grad=gradient, value_fn=loss)
        moved = position + update
        value, slope = optax.tree.get(state, "value"), optax.tree.get(state, "grad")
        usable = jnp.all(jnp.isfinite(moved)) & jnp.isfinite(value) & jnp.all(jnp.isfinite(slope))
        gain = jnp.where(usable, jnp.abs(gradient @ update), 0.0)
        tail = jnp.arange(NUM_STEPS + 1)[:, None] > index
        positions = jnp.where(tail & usable, moved, positions)
        gradients = jnp.where(tail & usable, slope, gradients)
        return positions, gradients, value, state, index + 1, spent + _tried(state), gain

    value, gradient = jax.value_and_grad(loss)(start)
    repeat = partial(jnp.broadcast_to, shape=(NUM_STEPS + 1, start.size))
    first_gain = jnp.where(jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient)), jnp.inf, 0.0)
    begin = repeat(start), repeat(gradient), value, optimiser.init(start), 0, jnp.asarray(1), first_gain
    positions, gradients, _, _, index, spent, _ = jax.lax.while_loop(goes_on, step, begin)
    return Path(positions, gradients, jnp.asarray(index) + 1, spent)


def _tried(state: Any) -> jax.Array:
    """Evaluations of the last line search."""
    return jnp.asarray(optax.tree.get(state, "num_linesearch_steps"), int)
