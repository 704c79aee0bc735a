"""Pathfinder (Zhang et al. 2022): Gaussians of the curvature that quasi-Newton ascents see, and the best by ELBO."""

from typing import NamedTuple

import numpy as np

from thermocline.bases.base import BaseFit
from thermocline.bases.gaussian import Gaussian
from thermocline.evaluator import Evaluator, checked_evaluator
from thermocline.fits.advi import elbo
from thermocline.fits.laplace import triangular
from thermocline.fits.lbfgs import Path, maximise
from thermocline.fits.quasi_newton import Pairs, low_rank, next_diagonal
from thermocline.support.errors import ThermoclineError
from thermocline.target import Target

STREAM = 0x9A7F  # of random numbers, beside the seed
NUM_DRAWS = 64  # for the ELBO at each point of a path
NUM_CHOICE = 256  # for that of each path's best point, by which the best path is chosen
NUM_FRESH = 1024  # for that which is reported
SPREAD = 2.0  # of the starts about the initial position
MOST_POINTS = 24  # of a path that are tried: all, or more and more sparsely
NUM_LAST = 4  # of a path that are tried in the units of the optimum too: elsewhere these may be far off
DRAW_BYTES = 1e8  # of draws held at once


class Gaussians(NamedTuple):
    """Gaussians with covariance U B Bᵀ Uᵀ for some units U, B = A^½ (I + Q (E - I) Qᵀ), on ravelled positions.

    A is diagonal and Q has few columns: a draw costs no more than these. `units` is None for the identity.
    """

    mean: np.ndarray  # (candidate, dimension)
    deviations: np.ndarray  # (candidate, dimension): A^½
    columns: np.ndarray  # (candidate, dimension, rank): Q, orthonormal
    excess: np.ndarray  # (candidate, rank, rank): E - I, symmetric
    log_determinant: np.ndarray  # (candidate,) of the scale U B
    units: np.ndarray | None

    def chosen(self, index: np.ndarray | slice) -> "Gaussians":
        mean, deviations, columns, excess, log_determinant = (leaf[index] for leaf in self[:5])
        return Gaussians(mean, deviations, columns, excess, log_determinant, self.units)

    def scaled(self, noise: np.ndarray) -> np.ndarray:
        """What standard normal noise (candidate, draw, dimension) adds to the means."""
        low = noise @ self.columns @ self.excess @ self.columns.swapaxes(1, 2)
        white = (noise + low) * self.deviations[:, None]
        return white if self.units is None else white @ self.units.T

    def elbos(self, evaluate: Evaluator, noise: np.ndarray, *, penalty: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """The ELBO of each by noise (candidate, draw, dimension), and its standard error."""
        log_targets = evaluate.values(self.mean[:, None] + self.scaled(noise))
        constant = 0.5 * noise.shape[-1] * np.log(2 * np.pi) + self.log_determinant[:, None]
        with np.errstate(over="ignore", invalid="ignore"):  # where a bad Gaussian reaches
            found = elbo(log_targets + 0.5 * np.sum(noise**2, axis=-1) + constant, penalty=penalty)
            return found.value, np.std(found.influence, axis=-1) / noise.shape[1] ** 0.5


def fit_pathfinder(target: Target, *, seed: int = 0, num_paths: int = 8, precision: str = "float64") -> BaseFit:
    """The Gaussian with the best ELBO among the points of several ascents.

    One ascent starts at the target's initial position, the others within 2 of it in each coordinate. The density may be
    unbounded: points too far up a spike have a low ELBO. log zeta is the ELBO by 1024 fresh draws, a lower bound.
    """
    evaluate = checked_evaluator(target, precision)
    generator = np.random.default_rng([seed, STREAM])
    offsets = generator.uniform(-SPREAD, SPREAD, (num_paths, evaluate.dimension))
    offsets[0] = 0.0
    found = maximise(evaluate, evaluate.initial_position + offsets, keep_paths=True)
    paths = [path for path in found.path if np.isfinite(path.log_density[0])]
    best, trace = _best_of(generator, evaluate, paths, found.metric)
    value, error = best.elbos(evaluate, generator.normal(size=(1, NUM_FRESH, evaluate.dimension)), penalty=0.0)
    if not np.isfinite(value[0] + trace.max()):
        raise ThermoclineError(
            f"none of {num_paths} paths met a Gaussian whose draws have a density; give another `initial_position`, "
            "or use tc.fit_advi."
        )
    scale = triangular(best.scaled(np.eye(evaluate.dimension)[None])[0].T)
    base = Gaussian(evaluate.unravel(best.mean[0]), scale.astype(precision))
    notes = f"Pathfinder's best point on {num_paths} paths has an ELBO of {value[0]:.3f} ± {error[0]:.3f}."
    return BaseFit(base, float(value[0]), evaluate.num_rows, "lower bound", trace, notes=(notes,))


def _best_of(
    generator: np.random.Generator, evaluate: Evaluator, paths: list[Path], units: np.ndarray | None
) -> tuple[Gaussians, np.ndarray]:
    """The best Gaussian of all paths, and the ELBOs along its path; fresh draws choose among each path's best."""
    along = [_candidates(path, units) for path in paths]
    elbos = [[_elbos_in_parts(generator, evaluate, group) for group in groups] for groups in along]
    bests = [_highest(groups, values) for groups, values in zip(along, elbos, strict=True)]
    noise = generator.normal(size=(1, NUM_CHOICE, evaluate.dimension))
    index = int(np.argmax([best.elbos(evaluate, noise)[0][0] for best in bests]))
    return bests[index], np.concatenate(elbos[index])


def _candidates(path: Path, units: np.ndarray | None) -> list[Gaussians]:
    """Those along a path in the target's coordinates, and the last few in the units of its optimum, if it has one."""
    everywhere = gaussians_along(path)
    return [everywhere] if units is None else [everywhere, gaussians_along(path, units).chosen(np.s_[-NUM_LAST:])]


def _highest(groups: list[Gaussians], elbos: list[np.ndarray]) -> Gaussians:
    """The one with the highest ELBO in any group."""
    group = int(np.argmax([values.max() for values in elbos]))
    return groups[group].chosen(np.argmax(elbos[group], keepdims=True))


def _elbos_in_parts(generator: np.random.Generator, evaluate: Evaluator, gaussians: Gaussians) -> np.ndarray:
    """ELBOs of all, a few at once where draws are large."""
    number, dimension = gaussians.mean.shape
    group = int(max(DRAW_BYTES / (8 * NUM_DRAWS * dimension), 1))
    parts = []
    for begin in range(0, number, group):
        some = gaussians.chosen(np.arange(begin, min(begin + group, number)))
        noise = generator.normal(size=(len(some.mean), NUM_DRAWS, dimension))
        parts.append(some.elbos(evaluate, noise)[0])
    return np.concatenate(parts)


def gaussians_along(path: Path, units: np.ndarray | None = None) -> Gaussians:
    """The Gaussian at each point of a path (at most some), by the inverse Hessian that the last steps up to it imply.

    The diagonal begins with 1 in the given units. The mean is where Newton's step would lead. Until a step has seen any
    curvature, deviations are 1/|slope|: those of the exponential density that the slope alone suggests.
    """
    slopes = path.gradient if units is None else path.gradient @ units
    steps = np.diff(path.position.astype(float), axis=0)
    steps = steps if units is None else np.linalg.solve(units, steps.T).T
    diagonal, pairs = np.ones((1, steps.shape[1])), Pairs.none(1, steps.shape[1])
    diagonals, all_pairs = [diagonal], [pairs]
    for step, before, after in zip(steps, slopes[:-1], slopes[1:], strict=True):
        pairs, is_new = pairs.with_one(step[None], before[None], after[None])
        if is_new[0]:
            new = next_diagonal(diagonal, pairs.steps[:, -1], pairs.falls[:, -1])
            diagonal = np.where(np.isfinite(new) & (new > 0), new, diagonal)
        diagonals.append(diagonal)
        all_pairs.append(pairs)
    kept = _thinned(len(diagonals))
    pairs = Pairs(*(np.concatenate(leaves) for leaves in zip(*(all_pairs[i] for i in kept), strict=True)))
    blind = 1 / np.where(slopes[kept] == 0, 1.0, slopes[kept]) ** 2
    diagonal = np.where(pairs.is_empty[:, None], blind, np.concatenate([diagonals[i] for i in kept]))
    return _gaussians(path.position[kept], slopes[kept], diagonal, pairs, units)


def _thinned(number: int) -> np.ndarray:
    """Which points of a path to try: later ones are closer together, or run away."""
    if number <= MOST_POINTS:
        return np.arange(number)
    return np.unique(np.round((number - 1) * np.linspace(0, 1, MOST_POINTS) ** 2).astype(int))


def _gaussians(
    position: np.ndarray, slope: np.ndarray, diagonal: np.ndarray, pairs: Pairs, units: np.ndarray | None
) -> Gaussians:
    r"""With covariance $A + F^\top C F = A^{1/2}(I + Q T C T^\top Q^\top)A^{1/2}$, for $A^{-1/2}F^\top = QT$ by QR."""
    factor, core = low_rank(diagonal, pairs)
    deviations = np.sqrt(diagonal)
    columns, triangle = np.linalg.qr((factor / deviations[:, None]).swapaxes(1, 2))
    inner = np.eye(columns.shape[2]) + triangle @ core @ triangle.swapaxes(1, 2)
    sound = np.isfinite(inner).all(axis=(1, 2), keepdims=True)
    values, vectors = np.linalg.eigh(np.where(sound, inner, np.eye(columns.shape[2])))
    values = np.maximum(values, 1e-12 * values[:, -1:])  # positive but for rounding
    excess = (vectors * np.sqrt(values)[:, None]) @ vectors.swapaxes(1, 2) - np.eye(columns.shape[2])
    log_determinant = np.sum(np.log(deviations), axis=1) + 0.5 * np.sum(np.log(values), axis=1)
    newton = diagonal * slope + ((core @ (factor @ slope[..., None]))[..., 0][:, None] @ factor)[:, 0]
    if units is not None:
        log_determinant = log_determinant + np.linalg.slogdet(units)[1]
        newton = newton @ units.T
    return Gaussians(position + newton, deviations, columns, excess, log_determinant, units)
