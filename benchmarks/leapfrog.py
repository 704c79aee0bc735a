"""What a leapfrog step costs beyond the density itself, and beside BlackJAX's HMC."""

import argparse
from functools import partial
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

import thermocline as tc
from benchmarks.boltzmann import relaxation
from benchmarks.common import ratio, take_turns
from thermocline.movers import Keys, Scale, leapfrog
from thermocline.paths import AtTemperature, Path, Point
from thermocline.support.precision import cast

NUM_CHAINS, NUM_STEPS, STEP_SIZE = 100, 20, 0.05
WANTED_STEP, WANTED_KERNEL = 1.15, 1.05


class Setting(NamedTuple):
    """Chains spread along the path, each with its own inverse temperature and diagonal metric."""

    path: Path
    betas: jax.Array
    scales: Scale
    positions: jax.Array


def make_setting(seed: int = 0) -> Setting:
    """The 28-dimensional relaxation behind a diagonal Gaussian base; call it in double precision."""
    generator = np.random.default_rng(seed)
    target = relaxation()
    dimension = np.size(target.initial_position)
    deviations = generator.uniform(2.0, 4.0, dimension)
    path = Path(target, tc.Gaussian.diagonal(np.zeros(dimension), deviations), jnp.asarray(0.0))
    betas = jnp.asarray(generator.uniform(size=NUM_CHAINS))
    widths = jnp.asarray(generator.uniform(0.5, 1.0, (NUM_CHAINS, dimension)))
    scales = Scale(jnp.broadcast_to(deviations, widths.shape), widths)
    positions = jnp.asarray(generator.normal(size=widths.shape) * deviations)
    return cast(Setting(path, betas, scales, positions), "float64")


@jax.jit
def evaluate_only(setting: Setting, points: Point, num_steps: jax.Array) -> Point:
    """The path's values and gradients, `num_steps` times over, at positions that shift a little each time."""

    def body(_: int, points: Point) -> Point:
        return jax.vmap(setting.path.evaluate)(points.position + 1e-3)

    return jax.lax.fori_loop(0, num_steps, body, points)


@jax.jit
def leapfrog_steps(setting: Setting, points: Point, momenta: jax.Array, num_steps: jax.Array
                   ) -> tuple[Point, jax.Array]:
    """One trajectory of `num_steps` steps for every chain."""

    def trajectory(beta: jax.Array, scale: Scale, point: Point, momentum: jax.Array) -> tuple[Point, jax.Array]:
        return leapfrog(AtTemperature(setting.path, beta), jnp.asarray(STEP_SIZE), scale, num_steps, point, momentum)

    return jax.vmap(trajectory)(setting.betas, setting.scales, points, momenta)


@jax.jit
def our_moves(key: jax.Array, setting: Setting, points: Point, num_moves: jax.Array) -> Point:
    """Whole HMC transitions of this library."""
    mover = tc.HMC(step_size=STEP_SIZE, num_steps=NUM_STEPS, jitter=0.0)

    def move(shared: jax.Array, own: jax.Array, beta: jax.Array, scale: Scale, point: Point) -> Point:
        return mover.move(Keys(own, shared), AtTemperature(setting.path, beta), jnp.asarray(STEP_SIZE), scale, point)[0]

    def body(index: int, points: Point) -> Point:
        shared = jax.random.fold_in(key, index)
        owns = jax.random.split(shared, NUM_CHAINS)
        return jax.vmap(partial(move, shared))(owns, setting.betas, setting.scales, points)

    return jax.lax.fori_loop(0, num_moves, body, points)


@jax.jit
def blackjax_moves(key: jax.Array, setting: Setting, states: Any, num_moves: jax.Array) -> Any:
    """The same transitions by BlackJAX's HMC, in the same metric."""

    def move(own: jax.Array, beta: jax.Array, scale: Scale, state: Any) -> Any:
        density = AtTemperature(setting.path, beta).log_density_at
        variances = (scale.basis * scale.widths) ** 2
        return blackjax.hmc(density, STEP_SIZE, variances, NUM_STEPS).step(own, state)[0]

    def body(index: int, states: Any) -> Any:
        owns = jax.random.split(jax.random.fold_in(key, index), NUM_CHAINS)
        return jax.vmap(move)(owns, setting.betas, setting.scales, states)

    return jax.lax.fori_loop(0, num_moves, body, states)


def blackjax_states(setting: Setting) -> Any:
    """BlackJAX's own start, from the same positions."""

    def init(beta: jax.Array, position: jax.Array) -> Any:
        return blackjax.mcmc.hmc.init(position, AtTemperature(setting.path, beta).log_density_at)

    return jax.vmap(init)(setting.betas, setting.positions)


def main(num_rounds: int = 60, num_moves: int = 50) -> dict[str, float]:
    """Print both ratios, medians over rounds in which the programs took turns."""
    with jax.enable_x64(True):
        setting, key = make_setting(), jax.random.key(0)
        points = jax.vmap(setting.path.evaluate)(setting.positions)
        momenta = jax.random.normal(key, setting.positions.shape)
        states, num_steps = blackjax_states(setting), jnp.asarray(num_moves * NUM_STEPS)
        seconds = take_turns({
            "evaluate": lambda: evaluate_only(setting, points, num_steps),
            "leapfrog": lambda: leapfrog_steps(setting, points, momenta, num_steps),
            "ours": lambda: our_moves(key, setting, points, num_moves),
            "blackjax": lambda: blackjax_moves(key, setting, states, num_moves),
        }, num_rounds=num_rounds)
    for name, values in seconds.items():
        print(f"{name:>9}: {1e6 * np.median(values) / (num_moves * NUM_STEPS):6.1f} microseconds a step")
    step, kernel = ratio(seconds["leapfrog"], seconds["evaluate"]), ratio(seconds["ours"], seconds["blackjax"])
    print(f"(a) leapfrog step / path evaluation:  {step}, wanted at most {WANTED_STEP}")
    print(f"(b) our HMC move / BlackJAX HMC move: {kernel}, wanted at most {WANTED_KERNEL}")
    return {"step": step.median, "kernel": kernel.median}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    main(parser.parse_args().rounds)
