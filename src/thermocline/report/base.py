"""Was the base any good: divergences, and its marginals against the target's."""

import numpy as np

from thermocline.estimators.chains import relative
from thermocline.report import summary
from thermocline.report.drawing import BASE, TARGET, drawing, figure, range_of, weighted_histogram, without_scale
from thermocline.report.page import Figure, Section
from thermocline.results.result import Result

MOST_COORDINATES = 6
CLOSE, FAR = 1.0, 10.0  # nats, of both divergences together


def base(result: Result) -> Section:
    if result.law is None and result.schedule is None:
        return Section(("This method uses the base only as a place to start from.",), _marginals(result))
    said = f"{result.info.method.split('(')[0]} weighs no draw for base and target both: no divergences."
    if result.is_joint:
        there, back = result.kl_base_to_target, result.kl_target_to_base
        total = there.value + back.value
        word = "close to" if total < CLOSE else "at some distance from" if total < FAR else "far from"
        said = (
            f"The base ({summary.base_name(result.continuation.base)}) is {word} the target: the KL divergence from "
            f"base to target is {there} nats, from target to base {back}."
        )
    return Section((said, *result.info.notes), _marginals(result))


def _marginals(result: Result) -> tuple[Figure, ...]:
    """The coordinates in which base and target differ most, as they were sampled."""
    weight = np.nan_to_num(relative(result.draws.log_weight_target)[0])
    positions, fresh = result.draws.position, result.base_draws.position
    names = summary.component_names(result.unconstrained)
    distance = [_distance(positions[..., i], weight, fresh[:, i]) for i in range(len(names))]
    chosen = np.argsort(distance)[::-1][:MOST_COORDINATES]
    return tuple(_marginal(names[i], positions[..., i], weight, fresh[:, i]) for i in chosen)


def _marginal(name: str, values: np.ndarray, weight: np.ndarray, fresh: np.ndarray) -> Figure:
    (low, high), (base_low, base_high) = range_of(values, weight), range_of(fresh)
    edges = np.linspace(min(low, base_low), max(high, base_high), 71)
    with drawing() as (canvas, axes):
        weighted_histogram(axes, fresh, None, edges, color=BASE, alpha=0.45, label="base")
        weighted_histogram(axes, values.ravel(), weight.ravel(), edges, color=TARGET, alpha=0.55, label="target")
        without_scale(axes, name)
        axes.legend(loc="best")
        return figure(canvas, f"{name}, unconstrained: base and target.")


def _distance(values: np.ndarray, weight: np.ndarray, fresh: np.ndarray) -> float:
    """Kolmogorov's distance between the two marginals."""
    points = np.quantile(fresh, np.linspace(0.02, 0.98, 49))
    order = np.argsort(values, axis=None)
    shares = np.cumsum(weight.ravel()[order]) / max(weight.sum(), 1e-300)
    at = np.searchsorted(values.ravel()[order], points, side="right") - 1
    return float(np.max(np.abs(np.where(at < 0, 0.0, shares[at]) - np.linspace(0.02, 0.98, 49))))
