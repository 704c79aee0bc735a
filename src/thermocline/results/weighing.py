"""Functions of draws and of beta, and how values at the draws become estimates under the target."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from thermocline.estimators import chains
from thermocline.estimators import two_state_answers as together
from thermocline.estimators.batches import Batches
from thermocline.estimators.convergence import effective_size, pareto_k, pseudo_values, r_hat
from thermocline.estimators.two_states import Pair, TwoStates, pooled
from thermocline.paths import Law
from thermocline.paths.laws import log_prior_at
from thermocline.records import Estimate
from thermocline.support.errors import ThermoclineError, brief, reason
from thermocline.support.options import is_number
from thermocline.support.precision import computing_in
from thermocline.support.programs import jit_by


class Described(NamedTuple):
    """One number's law under the target."""

    mean: Estimate
    deviation: float
    low: float  # quantiles of 5 % and 95 %
    high: float
    effective_size: float
    r_hat: float  # of the chains


class Weighing(NamedTuple):
    """Estimates under the target from a pair of values: at the base's draws, (1, draw), and at the chains'."""

    states: TwoStates | None
    log_weight: np.ndarray  # of the chains alone
    batches: Batches | None
    chosen: Pair | None = None  # which draws count, where not all do

    def within(self, chosen: Pair) -> "Weighing":
        """The same under a part of the target: that of the chosen draws."""
        return self._replace(log_weight=np.where(chosen[1], self.log_weight, -np.inf), chosen=chosen)

    @property
    def log_weights(self) -> Pair:
        """Of both states' draws, for the target."""
        assert self.states is not None
        base, chains = self.states.log_weight_target
        if self.chosen is None:
            return base, chains
        return np.where(self.chosen[0], base, -np.inf), np.where(self.chosen[1], chains, -np.inf)

    def mean(self, values: Pair) -> Estimate:
        """Of no degrees of freedom where the draws' contributions have no variance, as those of a Cauchy's mean."""
        found = self._asked(chains.expectation, together.expectation, values)
        if self.states is None:
            log_weight, offset = self.log_weight.ravel(), values[1].ravel() - found.value
        else:
            log_weight, offset = pooled(self.log_weights), pooled(values) - found.value
        with np.errstate(divide="ignore"):
            contribution = log_weight + np.log(np.abs(offset))
        is_known = not np.isfinite(contribution).any() or pareto_k(contribution) < together.FINITE_VARIANCE
        return found if is_known else Estimate(found.value, found.standard_error, 0.0)

    def quantile(self, values: Pair, probability: float) -> Estimate:
        return self._asked(chains.quantile, together.quantile, values, probability)

    def effective_size(self, values: Pair) -> float:
        return self._asked(effective_size, together.effective_size, values)

    def _asked(self, of_chains: Callable[..., Any], of_both: Callable[..., Any], values: Pair, *more: float) -> Any:
        if self.states is None:
            return of_chains(values[1], self.log_weight, *more, self.batches)
        return of_both(self.states, values, self.log_weights, *more)

    def describe(self, values: Pair) -> Described:
        base, chains = values[0].astype(float), values[1].astype(float)
        mean = self.mean((base, chains))
        variance = self.mean(((base - mean.value) ** 2, (chains - mean.value) ** 2)).value
        low, high = (self.quantile((base, chains), probability).value for probability in (0.05, 0.95))
        size, agreement = self.effective_size((base, chains)), r_hat(pseudo_values(chains, self.log_weight))
        return Described(mean, float(np.sqrt(max(variance, 0.0))), low, high, size, agreement)


def moments(variables: dict[str, np.ndarray], log_weight: np.ndarray) -> tuple[dict[str, Any], dict[str, Any]]:
    """Weighted mean and standard deviation of each variable, of shape (draw, ...); NaN without any weight."""
    largest = log_weight.max(initial=-np.inf)
    if not np.isfinite(largest):
        nothing = {name: np.full(values.shape[1:], np.nan) for name, values in variables.items()}
        return nothing, nothing
    chosen = np.isfinite(log_weight)
    weight = np.exp(log_weight[chosen] - largest)
    mean = {name: np.average(values[chosen], 0, weight) for name, values in variables.items()}
    squares = {name: np.average((values[chosen] - mean[name]) ** 2, 0, weight) for name, values in variables.items()}
    return mean, {name: np.sqrt(square) for name, square in squares.items()}


def map_draws(function: Callable[[Any], Any], draws: Any) -> np.ndarray:
    """The function of every draw, a PyTree with a leading axis: one by one where it cannot be traced."""
    try:
        with computing_in("float64"):
            return np.asarray(_mapped(function, draws), float)
    except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError):
        pass
    except Exception as error:  # the user's own code says what it likes
        raise _refused(function, error) from error
    try:
        number = len(jax.tree.leaves(draws)[0])
        return np.array([function(jax.tree.map(lambda leaf: leaf[i], draws)) for i in range(number)], float)  # noqa: B023
    except Exception as error:
        raise _refused(function, error) from error


def _refused(function: Any, error: Exception) -> ThermoclineError:
    return ThermoclineError(
        f"the function {brief(function)} has no number at the draws: {reason(error)}. It is called with one draw, "
        "shaped like a position, and must return a number or an array of them."
    )


def check_probability(probability: Any) -> None:
    """Of a quantile or an interval."""
    if not (is_number(probability) and 0 < probability < 1):
        raise ThermoclineError(f"probability is {brief(probability)}; give a number strictly between 0 and 1.")


def log_prior(law: Law, betas: np.ndarray) -> np.ndarray:
    """-f at each beta."""
    with computing_in("float64"):
        return log_prior_at(law, betas)


def as_betas(betas: Any) -> np.ndarray:
    """One or several inverse temperatures as a flat array."""
    try:
        array = np.atleast_1d(np.asarray(betas, float))
    except (TypeError, ValueError):
        array = np.array([np.nan])
    if array.ndim != 1 or not np.all((array >= 0) & (array <= 1)):
        raise ThermoclineError(f"betas is {brief(betas)}; inverse temperatures lie between 0 and 1.")
    return array


@jit_by()
def _mapped(function: Callable[[Any], Any], draws: Any) -> jax.Array:
    """Compiled once for each function."""
    return jax.vmap(function)(draws)


def by_component(variables: dict[str, np.ndarray], num_leading: int = 2) -> dict[str, np.ndarray]:
    """Every number among variables with so many leading axes over draws, by the name that one would index it with."""
    found = {}
    for name, values in variables.items():
        for place in np.ndindex(values.shape[num_leading:]):
            found[f"{name}[{','.join(map(str, place))}]" if place else name] = values[(..., *place)]
    return found


def as_sampled(unconstrained: dict[str, np.ndarray], parameters: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Unconstrained scalars by name, and called so where people know another number by that name."""
    seen, pairs = by_component(parameters), by_component(unconstrained).items()
    is_own = {name: name not in seen or np.array_equal(seen[name], values, equal_nan=True) for name, values in pairs}
    return {name if is_own[name] else f"unconstrained {name}": values for name, values in pairs}


def stacked_estimates(each: list[Estimate], shape: tuple[int, ...]) -> Estimate:
    """Estimates as one of arrays of that shape."""
    table = np.reshape([(one.value, one.standard_error, one.dof) for one in each], (*shape, 3))
    return Estimate(*np.moveaxis(table, -1, 0))
