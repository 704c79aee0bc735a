"""The best Gaussian along an ascent: Pathfinder (Zhang et al. 2022), and what serves where there is no optimum."""

from typing import NamedTuple

import numpy as np

from thermocline.bases.base import BaseFit
from thermocline.bases.gaussian import Gaussian
from thermocline.engine.batch import at
from thermocline.evaluator import Evaluator, checked_evaluator
from thermocline.fits.advi import elbo
from thermocline.fits.curvature import curvature_at
from thermocline.fits.gaussian_ascent import Objective
from thermocline.fits.lbfgs import Path, maximise
from thermocline.fits.quasi_newton import Pairs, low_rank, next_diagonal, times
from thermocline.support.errors import ThermoclineError
from thermocline.support.linear import triangular
from thermocline.target import Target

STREAM = 0x9A7F  # of random numbers, beside the seed
NUM_DRAWS = 64  # for the ELBO, or the score, at each point of a path
NUM_CHOICE = 256  # for that of each path's best point, by which the best path is chosen
NUM_FRESH = 1024  # for that which is reported
SPREAD = 2.0  # of the starts about the initial position
MOST_POINTS = 24  # of a path that are tried: all, or more and more sparsely
NUM_LAST = 4  # of a path that are tried in the units of the optimum too: elsewhere these may be far off
NUM_CURVED = 9  # points of a path without an optimum, by equal steps of the logarithm of their number
SIZES = (0.125, 0.5, 1.0, 2.0)  # of the deviations at each: near many edges only draws of a small one fall inside
STEEPEST = 2.0  # slope there in a candidate's own deviations
FLOOR = 20.0  # nats below the largest weight, of a draw that finds nothing


class Gaussians(NamedTuple):
    """Gaussians with covariance U B Bᵀ Uᵀ for some units U, B = A^½ (I + Q (E - I) Qᵀ), on ravelled positions.

    A is diagonal and Q has few columns: a draw costs no more than these. Leading axes are over candidates.
    """

    mean: np.ndarray
    deviations: np.ndarray  # A^½
    columns: np.ndarray  # (candidate, dimension, rank): Q, orthonormal
    excess: np.ndarray  # (candidate, rank, rank): E - I, symmetric
    log_determinant: np.ndarray  # of the scale U B
    units: np.ndarray | None  # the same for all; None for the identity

    def scaled(self, noise: np.ndarray) -> np.ndarray:
        """What standard normal noise (candidate, draw, dimension) adds to the means."""
        low = noise @ self.columns @ self.excess @ self.columns.swapaxes(1, 2)
        white = (noise + low) * self.deviations[:, None]
        return white if self.units is None else white @ self.units.swapaxes(1, 2)

    def elbos(self, evaluate: Evaluator, noise: np.ndarray, *, penalty: float = 1.0) -> Objective:
        """The ELBO of each by noise (candidate, draw, dimension)."""
        log_targets = evaluate.values(self.mean[:, None] + self.scaled(noise))
        constant = 0.5 * noise.shape[-1] * np.log(2 * np.pi) + self.log_determinant[:, None]
        with np.errstate(over="ignore", invalid="ignore"):  # where a bad Gaussian reaches
            return elbo(log_targets + 0.5 * np.sum(noise**2, axis=-1) + constant, penalty=penalty)


def fit_pathfinder(target: Target, *, seed: int = 0, num_paths: int = 8, precision: str = "float64") -> BaseFit:
    """The Gaussian with the best ELBO among the points of several ascents, by the curvature that these have seen.

    One ascent starts at the target's initial position, the others within 2 of it in each coordinate. The density may be
    unbounded: points too far up a spike have a low ELBO. log zeta is the ELBO by 1024 fresh draws, a lower bound.
    """
    evaluate = checked_evaluator(target, precision, seed=seed)
    generator = np.random.default_rng([seed, STREAM])
    offsets = generator.uniform(-SPREAD, SPREAD, (num_paths, evaluate.dimension))
    offsets[0] = 0.0
    found = maximise(evaluate, evaluate.initial_position + offsets, keep_paths=True)
    paths = [path for path in found.path if np.isfinite(path.log_density[0])]
    bests = [_best_of(generator, evaluate, path, found.metric) for path in paths]
    noise = generator.normal(size=(1, NUM_CHOICE, evaluate.dimension))
    best, trace = bests[int(np.argmax([best.elbos(evaluate, noise).value[0] for best, _ in bests]))]
    fresh = generator.normal(size=(1, NUM_FRESH, evaluate.dimension))
    reached = best.elbos(evaluate, fresh, penalty=0.0)
    value, error = float(reached.value[0]), float(reached.standard_error[0])
    if not np.isfinite(value + trace.max()):
        raise ThermoclineError(
            f"none of {num_paths} paths met a Gaussian whose draws have a density; give another `initial_position`, "
            "or use tc.fit_advi."
        )
    scale = triangular(best.scaled(np.eye(evaluate.dimension)[None])[0].T)
    base = Gaussian(evaluate.unravel(best.mean[0]), scale.astype(precision))
    notes = f"Pathfinder's best point on {num_paths} paths has an ELBO of {value:.3f} ± {error:.3f}."
    return BaseFit(base, value, evaluate.num_rows, "lower bound", trace, notes=(notes,))


def _best_of(
    generator: np.random.Generator, evaluate: Evaluator, path: Path, units: np.ndarray | None
) -> tuple[Gaussians, np.ndarray]:
    """The best Gaussian of a path, and the ELBOs along it.

    All are tried in the target's coordinates, and the last few in the units of the optimum too, if there is one.
    """
    groups = [gaussians_along(path)]
    if units is not None:
        groups.append(at(gaussians_along(path, units), np.s_[-NUM_LAST:]))
    noises = (generator.normal(size=(len(group.mean), NUM_DRAWS, evaluate.dimension)) for group in groups)
    elbos = [group.elbos(evaluate, noise).value for group, noise in zip(groups, noises, strict=True)]
    highest = int(np.argmax([values.max() for values in elbos]))
    return at(groups[highest], np.argmax(elbos[highest], keepdims=True)), np.concatenate(elbos)


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
    kept, last = np.arange(len(diagonals)), len(diagonals) - 1
    if last >= MOST_POINTS:  # later ones are closer together, or run away
        kept = np.unique(np.round(last * np.linspace(0, 1, MOST_POINTS) ** 2).astype(int))
    pairs = Pairs(*(np.concatenate(leaves) for leaves in zip(*(all_pairs[i] for i in kept), strict=True)))
    blind = 1 / np.where(slopes[kept] == 0, 1.0, slopes[kept]) ** 2
    diagonal = np.where(pairs.is_empty[:, None], blind, np.concatenate([diagonals[i] for i in kept]))
    return _gaussians(path.position[kept], slopes[kept], diagonal, pairs, units)


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
    newton = times(diagonal, factor, core, slope)
    if units is not None:
        log_determinant = log_determinant + np.linalg.slogdet(units)[1]
        newton, units = newton @ units.T, np.broadcast_to(units, (len(newton), *units.shape))
    return Gaussians(position + newton, deviations, columns, excess, log_determinant, units)


class PathFit(NamedTuple):
    """A Gaussian with the covariance R Rᵀ, its score, and the log of the mass that its draws found."""

    location: np.ndarray
    root: np.ndarray
    score: float
    log_mass: float


def best_along(generator: np.random.Generator, evaluate: Evaluator, path: Path) -> PathFit | None:
    """A fit where there is no optimum: the best Gaussian along an ascent that ended at an edge or ran away.

    Of a few points, denser at the start and each with the curvature there, the one whose draws find the most of the
    target; None where no draw of any is on the support.
    """
    last = len(path.log_density) - 1
    points = np.unique(np.round(np.expm1(np.linspace(0, np.log1p(last), NUM_CURVED))).astype(int))
    candidates = [fit for point in points for fit in _curved(evaluate, path.position[point], path.gradient[point])]
    return best_of(generator, evaluate, candidates)


def best_of(
    generator: np.random.Generator, evaluate: Evaluator, candidates: list[tuple[np.ndarray, np.ndarray]]
) -> PathFit | None:
    """Of Gaussians by means and roots, the one whose draws find the most."""
    if not candidates:
        return None
    mean, root = (np.stack(leaves) for leaves in zip(*candidates, strict=True))
    noise = generator.normal(size=(len(mean), NUM_DRAWS, mean.shape[1]))
    log_normal = -0.5 * np.sum(noise**2, axis=2) - 0.5 * mean.shape[1] * np.log(2 * np.pi)
    log_normal -= np.linalg.slogdet(root)[1][:, None]
    log_weight = evaluate.values(mean[:, None] + noise @ root.swapaxes(1, 2)) - log_normal
    largest = log_weight.max(axis=1, keepdims=True)
    floor = np.where(np.isfinite(largest), largest, np.inf) - FLOOR
    score = np.where(np.isfinite(largest[:, 0]), np.mean(np.maximum(log_weight, floor), axis=1), -np.inf)
    best = int(np.argmax(score))
    log_mass = float(np.logaddexp.reduce(log_weight[best]) - np.log(NUM_DRAWS))
    return PathFit(mean[best], root[best], float(score[best]), log_mass) if np.isfinite(score[best]) else None


def _curved(evaluate: Evaluator, position: np.ndarray, gradient: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Means and roots of a few sizes at one point, moved up the slope by half of what the curvature promises.

    Where the density is steeper than it is curved, the slope gives the scale.
    """
    curvature = curvature_at(evaluate, position[None])
    found = []
    for size in SIZES if curvature.is_usable[0] else ():
        root = size * curvature.roots()[0]
        root = root * np.minimum(1.0, STEEPEST / np.maximum(np.abs(gradient @ root), 1e-300))
        shift = 0.5 * np.clip(gradient @ root, -STEEPEST, STEEPEST)
        if np.isfinite(root).all() and np.linalg.slogdet(root)[0] != 0:
            found.append((position + root @ shift, root))
    return found
