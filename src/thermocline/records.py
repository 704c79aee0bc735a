"""Records: what flows from room to room, typed; NumPy arrays and plain values, no behaviour but their own reading."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from thermocline.support import special
from thermocline.support.fingerprint import Fingerprint
from thermocline.support.tails import student_log_tail, student_quantile
from thermocline.target import Labels, describe

Array = Any  # of JAX while a run goes on, of NumPy in what it leaves


class Draw(NamedTuple):
    r"""One step of one chain; stacked, the leading axes are (chain, draw).

    With $r$ the log ratio and $N(r) = \int \exp(\beta r - f(\beta))\,d\beta$ the mass of the
    law of beta, the weights are $w_1 = e^r/N$ for the target and $w_0 = 1/N$ for the base
    (eq. ct-norm-const-estimator).
    """

    position: Array  # ravelled, unconstrained
    inverse_temperature: Array
    log_ratio: Array  # r = log target - log zeta - log base, at `position`
    log_weight_target: Array
    log_weight_base: Array
    acceptance: Array  # mean probability of accepting the move
    is_divergent: Array  # the energy error left the range an integrator can have
    is_nonfinite: Array  # the move met a NaN (or +inf) and was rejected
    num_gradients: Array
    jump_acceptance: Array  # probability of accepting the jump from the base that followed; 0 without jumps
    stage_log_weights: Array = np.zeros((2, 0), np.float32)  # of replicas: up to the next, and down from it
    num_round_trips: Array = np.zeros((), np.int32)  # that replicas ended with this step


Draws = Draw  # the same fields, with leading axes (chain, draw)


def restored(stored: dict[str, Any]) -> Draws:
    """Draws from arrays by name, of which those that hold nothing need not be there."""
    draws = Draws(**stored)
    missing = {name: value for name, value in Draws._field_defaults.items() if name not in stored}
    lead = draws.log_ratio.shape
    return draws._replace(**{name: np.zeros(lead + value.shape, value.dtype) for name, value in missing.items()})


class BaseDraws(NamedTuple):
    """Fresh exact draws of the base, and its moments where it states them."""

    position: np.ndarray
    log_ratio: np.ndarray
    mean: np.ndarray | None = None
    variance: np.ndarray | None = None


class WeightedDraws(NamedTuple):
    """Ravelled positions, one a row; weights that sum to one; the way back to a PyTree; log Z where it is known."""

    position: np.ndarray
    weight: np.ndarray
    unravel: Callable[[Any], Any]
    log_evidence: float | None

    @property
    def num_effective(self) -> float:
        """Kish's effective number of draws."""
        return float(1 / np.sum(self.weight**2))


@dataclass(frozen=True)
class Estimate:
    """A value, its standard error, and the degrees of freedom of its t law.

    Floats; arrays of them for the expectation of a function that returns an array.
    """

    value: Any
    standard_error: Any
    dof: Any

    @property
    def status(self) -> str:
        """"ok", or "unknown" where the error cannot be known: no degrees of freedom, or not a number."""
        return "ok" if np.all((np.asarray(self.dof) > 0) & np.isfinite(self.standard_error)) else "unknown"

    def interval(self, probability: float = 0.95) -> tuple[Any, Any]:
        """The central confidence interval of the t law."""
        reach = student_quantile(0.5 + probability / 2, np.maximum(self.dof, 1)) * self.standard_error
        return _plain(self.value - reach), _plain(self.value + reach)

    def z_score(self, truth: Any) -> Any:
        """Distance to the truth in errors, mapped through the t law to a standard normal."""
        offset, error = np.asarray(self.value - truth), np.asarray(self.standard_error)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where((offset == 0) & (error == 0), 0.0, offset / error)
        return _plain(np.sign(t) * -special.ndtri_exp(student_log_tail(np.abs(t), np.maximum(self.dof, 1))))

    def __neg__(self) -> "Estimate":
        return Estimate(-self.value, self.standard_error, self.dof)

    def __add__(self, other: "Estimate | float") -> "Estimate":
        """The sum of independent estimates, or of one and a number."""
        if not isinstance(other, Estimate):
            return Estimate(self.value + other, self.standard_error, self.dof)
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return sum_of(Estimate(*(np.stack(np.broadcast_arrays(*pair)) for pair in pairs)))

    def __str__(self) -> str:
        if np.ndim(self.value):
            parts = zip(*map(np.ravel, np.broadcast_arrays(self.value, self.standard_error, self.dof)), strict=True)
            return f"[{', '.join(str(Estimate(*part)) for part in parts)}]"
        if self.status == "unknown":
            return f"{self.value:.4g} (error unknown)"
        if self.standard_error <= 1e-12 * abs(self.value):  # rounding
            return f"{self.value:z.8g}"
        if not 1e-6 <= self.standard_error < 1e5:
            return f"{self.value:.8g} ± {self.standard_error:.1e}"
        digits = int(np.clip(1 - np.floor(np.log10(self.standard_error)), 0, 8))
        return f"{self.value:z.{digits}f} ± {self.standard_error:.{digits}f}"


def sum_of(estimates: Estimate) -> Estimate:
    """The sum of independent estimates, over a leading axis; degrees of freedom by Welch and Satterthwaite."""
    variances = np.square(estimates.standard_error)
    total, shares = variances.sum(axis=0), np.sum(variances**2 / np.maximum(estimates.dof, 1), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        dof = np.where(shares > 0, total**2 / shares, np.inf)
    return Estimate(_plain(np.sum(estimates.value, axis=0)), _plain(np.sqrt(total)), _plain(dof))


def _plain(value: Any) -> Any:
    """A float, or the array it is."""
    return value if np.ndim(value) else float(value)


class SearchRecord(NamedTuple):
    """What a search did, and the share of the points looked at that may lead to a mode it does not know.

    With u the share of looks left unexplained, and a and b the upper bounds (97.5 %) on the chance that an ascent finds
    a new mode, from random ascents among the unexplained and among the explained since the last new mode, that share is
    at most u a + (1 - u) b. It is a share of the points that were looked at, never of the target's mass.
    """

    num_looks: int
    num_ascents: int
    num_lost: int  # ascents that ended at no optimum
    share_unexplained: float
    num_random_unexplained: int  # ascents since the last new mode
    num_random_explained: int
    log_volume_spread: float  # of the modes found, widest over narrowest, in nats
    cut_short_by: str = ""  # a limit of the caller's

    @property
    def blind_spot(self) -> float:
        """The bound u a + (1 - u) b."""
        share = self.share_unexplained
        return share * _none_of(self.num_random_unexplained) + (1 - share) * _none_of(self.num_random_explained)

    def __str__(self) -> str:
        cut = f" It was cut short by {self.cut_short_by}." if self.cut_short_by else ""
        bound = f"of the points looked at, at most {self.blind_spot:.1%} lead to a mode that is not listed (95 %)"
        if self.blind_spot > 0.5:
            bound = "new modes were still being found near its end, so that there may be others"
        return f"{self.num_looks:,} points were looked at and {self.num_ascents:,} ascents made; {bound}.{cut}"


def _none_of(number: int) -> float:
    """Upper bound, at 97.5 %, on a chance that has not come up in so many trials."""
    return 1 - 0.025 ** (1 / number) if number > 0 else 1.0


class TailIndex(NamedTuple):
    """The density falls as |x|^-power along this axis, and faster along the others; proper targets have powers > 1.

    The axis is zero where it is all directions that are too slow: then D - 1 has been taken off the power, for a cone
    has to be integrated, not a line.
    """

    power: float = np.inf
    axis: np.ndarray = np.zeros(0)


class ModeTable(NamedTuple):
    """What is known of the modes without the chains; `log_mass` is by importance sampling from all the fits."""

    fits: Any  # a mixture, of which every component is of one mode
    owner: np.ndarray  # that mode, by component
    location: np.ndarray
    log_density: np.ndarray
    log_mass: np.ndarray
    log_mass_error: np.ndarray
    log_laplace: np.ndarray  # what the curvature at the optimum alone says of the mass
    log_total: float
    log_total_error: float
    found_by: tuple[str, ...]
    counts: tuple[int, ...]  # ascents that ended at each
    search: SearchRecord
    tail_index: TailIndex = TailIndex()

    @property
    def arrived(self) -> float:
        """Share of ascents that ended at an optimum, of a target that has none; of others they may be cut short."""
        has_optimum = any(found not in ("path", "variational fit") for found in self.found_by)
        return 1.0 if has_optimum else 1 - self.search.num_lost / max(self.search.num_ascents, 1)


@dataclass(frozen=True)
class Mode:
    """One mode: how much of the target it holds, and where it lies, in the user's coordinates.

    `location` is where the density of the unconstrained parameters is highest; it may be far from the mean.
    """

    name: str
    location: dict[str, Any]
    log_density: float
    mass: Estimate  # from the chains
    mass_by_importance: Estimate  # from its own fit, whether chains have been there or not
    mass_by_laplace: float  # from the curvature at its highest point
    visits: int  # effective number of stays of chains, by their weights for the target
    entered: int  # moves of a chain into its basin, at any temperature
    left: int
    found_by: str
    mean: dict[str, Any]  # of the weighted draws in its basin, NaN where there is none
    deviation: dict[str, Any]
    row: int  # of the mode table

    def __repr__(self) -> str:
        return f"<{self.name}: mass {self.mass}, highest at {describe(self.location, longest=3)}>"


NAMES = {"ramp": "first warm-up", "warmup": "warm-up", "modes": "mode table", "rest": "the rest"}  # of phases


@dataclass(frozen=True)
class Phases:
    """A number for every phase of a call: seconds, or evaluations of the density with its gradient."""

    base: Any = 0  # finding one
    compile: Any = 0
    ramp: Any = 0  # the first way up the path
    warmup: Any = 0
    adapt: Any = 0  # between the rounds of warm-up
    sampling: Any = 0
    modes: Any = 0  # the table of modes
    rest: Any = 0  # of the call: checks of the input, draws of the base, coordinates of the draws

    def __add__(self, other: "Phases") -> "Phases":
        return Phases(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def total(self) -> Any:
        return sum(getattr(self, field.name) for field in fields(self))

    def shown(self) -> dict[str, Any]:
        """The phases that took something, as people call them."""
        return {NAMES.get(each.name, each.name): value for each in fields(self) if (value := getattr(self, each.name))}


@dataclass(frozen=True)
class Cost:
    """Seconds and evaluations of a call."""

    seconds: Phases
    evaluations: Phases

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.seconds + other.seconds, self.evaluations + other.evaluations)


@dataclass(frozen=True)
class RunInfo:
    """What a Result says of the run behind it."""

    seed: int
    method: str  # as one would write it
    precision: str
    fingerprint: Fingerprint
    versions: dict[str, str]
    cost: Cost
    notes: tuple[str, ...]  # how the base was come by, in sentences
    caveats: tuple[str, ...]  # why log Z may not be the model's evidence
    biases: tuple[str, ...]  # why the method is not exact
    has_evidence: bool  # whether the method's weights give log Z
    labels: Labels  # as JSON has them
    observations: str  # hash of what models must share to be compared
    model: str = ""  # its name, where it has one
    data: str = ""  # names of the data, with shapes
    date: str = ""  # when the run ended
    cut_short: str = ""  # by which limit, and how far from what was wanted
