"""Expectation propagation: the Gaussian that agrees with each factor of a target, given all others, in its moments."""

from typing import NamedTuple

import numpy as np

from thermocline.bases.base import BaseFit
from thermocline.bases.gaussian import Gaussian as GaussianBase
from thermocline.evaluator import Evaluator, checked_evaluator
from thermocline.fits.advi import advi
from thermocline.fits.curvature import are_optima, curvature_at
from thermocline.fits.gaussian_ascent import LocationScale
from thermocline.fits.lbfgs import maximise
from thermocline.fits.sites import Approximation, Gaussian, Update
from thermocline.fits.tilted import Problem
from thermocline.support import linear
from thermocline.support.errors import ThermoclineError, brief
from thermocline.support.options import is_number
from thermocline.target import Target

STREAM = 0xE9  # of random numbers, beside the seed
MOST_SWEEPS = 200
ARRIVED = {"float64": 1e-6, "float32": 1e-2}  # distance of tilted moments, in deviations, at which all agree
SHRUNK = 0.99  # share of the distance before, above which steps have become too long
SLOWER, LEAST_STEP = 0.7, 0.02  # what they are multiplied by then, and the last
MOST_HALVES = 10  # of a step, after which the product is no Gaussian


class Fixed(NamedTuple):
    """Where sweeps end: the Gaussian, log Z in its coordinates, how far tilted moments are from its own, and how many
    sweeps it took; factors whose draws could not be believed.
    """

    gaussian: Gaussian
    log_evidence: float
    distance: float
    num_sweeps: int
    num_unknown: int


def fit_ep(target: Target, *, seed: int = 0, power: float = 1.0, precision: str = "float64") -> BaseFit:
    """Expectation propagation (Minka 2001), for a target with a `prior` and `factors`; log zeta is EP's own estimate.

    Moments of a factor that depends on one linear predictor are found by quadrature along it, those of others by
    4096 weighted draws within the few directions they depend on. Steps are damped when they no longer bring all closer.
    `power` below 1 is power EP (Minka 2004), towards 0 variational Bayes.
    """
    if not (is_number(power) and 0 < power <= 1):
        raise ThermoclineError(f"power is {brief(power)}; give a number above 0 and up to 1, which is EP itself.")
    evaluate = checked_evaluator(target, precision, seed=seed)
    _check_parts(evaluate.target)
    generator = np.random.default_rng([seed, STREAM])
    frame = _first(generator, evaluate)
    with np.errstate(all="ignore"):  # what is no number is told from what is
        problem = Problem.of(generator, evaluate, frame)
        found = propagated(problem, power)
    evaluate.count(problem.prior.evaluate.num_rows)
    mean, root = frame.at(found.gaussian.mean), linear.triangular(frame.scale @ found.gaussian.root)
    base = GaussianBase(evaluate.unravel(mean.astype(precision)), root.astype(precision)).prepared()
    log_zeta = found.log_evidence + float(linear.log_determinant(frame.scale, np))
    return BaseFit(base, log_zeta, evaluate.num_rows, notes=_notes(found, precision))


def _check_parts(target: Target) -> None:
    for name, part in (("prior", target.prior), ("factors", target.factors)):
        if part is None:
            raise ThermoclineError(
                f"fit_ep needs the target's {name}: give tc.Target(…, prior=…, factors=…), of which the density is the "
                "product (NumPyro and PyMC models with proper priors have both), or use tc.fit_advi."
            )


def _first(generator: np.random.Generator, evaluate: Evaluator) -> LocationScale:
    """Laplace's Gaussian, or ADVI's where there is no optimum: the coordinates of all that follows."""
    optima = maximise(evaluate, evaluate.initial_position[None])
    curvature = curvature_at(evaluate, optima.position, deviations=optima.deviations)
    if are_optima(curvature, optima.gradient)[0]:
        return LocationScale(optima.position[0].astype(float), linear.triangular(curvature.roots()[0]))
    normal = advi(generator, evaluate, evaluate.initial_position, full_rank=True)[0].normal
    return LocationScale(normal.mean.astype(float), normal.scale)


def _notes(found: Fixed, precision: str) -> tuple[str, ...]:
    all_others = "all factors" if found.num_unknown == 0 else f"all factors but {found.num_unknown}"
    if found.distance < ARRIVED[precision]:
        note = f"EP agreed with {all_others} after {found.num_sweeps} sweeps."
    else:
        note = f"EP did not settle: after {found.num_sweeps} sweeps moments are {found.distance:.2g} deviations off."
    if found.num_unknown:
        note += f" Of {found.num_unknown} the moments could not be told; their sites stay as they were."
    return (note,)


def propagated(problem: Problem, power: float) -> Fixed:
    """Sweeps over all factors at once, until their moments are those of the product."""
    (approximation, q), step, before, number = _begun(problem), 1.0, np.inf, 0
    while True:
        number += 1
        lines, wide = problem.tilted(approximation, q, power)
        distances = np.array([*lines.distance, *(one.distance for one in wide)])
        distance = float(np.nanmax(distances, initial=0.0))
        step = max(step * SLOWER, LEAST_STEP) if distance > SHRUNK * before else step
        moved = None if distance < ARRIVED[problem.precision] else _moved(approximation, lines, wide, step)
        if moved is None or number == MOST_SWEEPS:
            break
        (approximation, q), before = moved, distance
    if len(distances) and np.isnan(distances).all():
        raise ThermoclineError(
            "EP can tell the moments of no factor: the Gaussian that it begins with is too far from where they are; "
            "use tc.fit_advi, or factors that each depend on less."
        )
    constant = problem.constant + np.sum(lines.log_constant) + sum(float(one.log_constant) for one in wide)
    if not np.isfinite(constant):
        raise ThermoclineError(
            "EP lost its way: a factor is zero, or not a number, wherever the others leave weight; use tc.fit_advi."
        )
    return Fixed(q, constant + q.log_integral(), distance, number, int(np.isnan(distances).sum()))


def _begun(problem: Problem) -> tuple[Approximation, Gaussian]:
    approximation = problem.first_approximation()
    try:
        return approximation, approximation.gaussian()
    except np.linalg.LinAlgError:
        raise ThermoclineError(
            "EP cannot begin: near its optimum the density does not fall in every direction; use tc.fit_advi."
        ) from None


def _moved(
    approximation: Approximation, lines: Update, wide: list[Update], step: float
) -> tuple[Approximation, Gaussian] | None:
    """A step, or the first of its halves after which the product is a Gaussian; None where none is."""
    for halves in range(MOST_HALVES):
        trial = approximation.moved(lines, wide, step / 2**halves)
        try:
            return trial, trial.gaussian()
        except np.linalg.LinAlgError:
            continue
    return None
