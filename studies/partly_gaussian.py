"""Exact log Z of a density that is Gaussian in all coordinates but one: linear models with an unknown scale.

Given that coordinate, gradients are linear in the others, which is checked; so a few of them give the integral over the
others in closed form, and what is left is one-dimensional quadrature.
"""

import numpy as np

from thermocline.evaluator import Evaluator

NUM_POINTS = 801  # of the trapezoidal rule, which converges geometrically for what falls off at both ends
REACH = 40.0  # nats below the top, where the integral ends
WORST_CONDITION = 1e13  # beyond which rounding hides the others: far out, where nothing is left
LINEAR = 1e-5  # relative error up to which gradients count as linear


def log_evidence(evaluate: Evaluator, centre: np.ndarray, deviation: np.ndarray) -> float | None:
    """Log Z by quadrature, about a place with known spread; None where no coordinate leaves the others Gaussian."""
    for coordinate in range(len(centre)):
        if _is_gaussian_given(evaluate, coordinate, centre, deviation):
            return _integral(evaluate, coordinate, centre, deviation)
    return None


def _is_gaussian_given(evaluate: Evaluator, coordinate: int, centre: np.ndarray, deviation: np.ndarray) -> bool:
    """Whether the mean of gradients either side is that between them, at random places."""
    generator = np.random.default_rng(0)
    steps = generator.normal(size=(8, len(centre))) * deviation
    steps[:, coordinate] = 0.0
    rows = centre + np.concatenate([steps, -steps, 0 * steps[:1]])
    gradients = np.delete(evaluate(rows)[1] * deviation, coordinate, axis=1)
    ahead, behind, here = gradients[:8], gradients[8:16], gradients[16]
    return bool(np.max(np.abs((ahead + behind) / 2 - here)) < LINEAR * np.max(np.abs(ahead - behind)))


def _integral(evaluate: Evaluator, coordinate: int, centre: np.ndarray, deviation: np.ndarray) -> float:
    ends = np.array([-8.0, 8.0])  # deviations of the coordinate, widened until nothing is left beyond
    for _ in range(20):
        points = np.linspace(ends[0], ends[1], NUM_POINTS)
        values = _log_marginal(evaluate, coordinate, centre, deviation, points)
        wider = ends * (1 + (values[[0, -1]] > values.max() - REACH))
        if np.all(wider == ends):
            break
        ends = wider
    else:
        raise ValueError("the marginal has no end that quadrature could reach")
    top = np.max(values)
    width = (points[1] - points[0]) * deviation[coordinate]
    return float(top + np.log(np.sum(np.exp(values - top)) * width))


def _log_marginal(
    evaluate: Evaluator, coordinate: int, centre: np.ndarray, deviation: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """Log of the integral over the others, of each value of the coordinate: f + gᵀ(-H)⁻¹g/2 + log det(-2π H⁻¹)/2."""
    others = np.delete(np.arange(len(centre)), coordinate)
    places = np.repeat(centre[None], len(points), axis=0)
    places[:, coordinate] += points * deviation[coordinate]
    steps = np.zeros((2 * len(others), len(centre)))
    steps[np.arange(len(others)), others] = deviation[others]
    steps[len(others) :] = -steps[: len(others)]
    rows = places[:, None] + np.concatenate([steps, 0 * steps[:1]])
    heights, gradients = evaluate(rows.reshape(-1, len(centre)))
    gradients = gradients.reshape(*rows.shape)[..., others] * deviation[others]
    size = len(others)
    hessians = (gradients[:, :size] - gradients[:, size : 2 * size]) / 2
    precision = -(hessians + np.swapaxes(hessians, 1, 2)) / 2
    is_sound = np.asarray(np.isfinite(precision).all(axis=(1, 2)))
    is_sound[is_sound] = np.linalg.cond(precision[is_sound]) < WORST_CONDITION
    precision, here = precision[is_sound], gradients[is_sound, -1]
    gain = np.einsum("pi,pi->p", here, np.linalg.solve(precision, here[..., None])[..., 0]) / 2
    log_volume = size / 2 * np.log(2 * np.pi) - np.linalg.slogdet(precision)[1] / 2 + np.log(deviation[others]).sum()
    values = np.full(len(points), -np.inf)
    values[is_sound] = heights.reshape(len(points), -1)[is_sound, -1] + gain + log_volume
    return values
