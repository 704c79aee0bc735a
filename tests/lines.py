"""Problems of one variable with exact answers: draws of the base, and chains of any law of beta and any memory."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.special import ndtr

from thermocline.estimators.two_states import TwoStates, combine, effective_share
from thermocline.paths import Continuous, Ladder
from thermocline.paths.laws import log_masses
from thermocline.support.precision import computing_in

KNOTS = np.array([0.0, 0.1, 0.4, 1.0])
RUNGS = np.array([0.0, 0.05, 0.3, 0.6, 1.0])
LAWS = {
    "flat": Continuous(),
    "biased": Continuous(np.array([0.0, -0.4, 0.3, 0.8]), KNOTS),
    "ladder": Ladder(RUNGS, np.array([0.0, 0.3, -0.2, 0.1, 0.5])),
    "ladder without the base": Ladder(RUNGS[1:], np.array([0.3, -0.2, 0.1, 0.5])),
}


class Line(NamedTuple):
    """A base with exact draws and a target of one variable."""

    base: Any
    log_target: Callable[[np.ndarray], np.ndarray]
    log_evidence: float

    def log_ratio(self, position: np.ndarray) -> np.ndarray:
        return self.log_target(position) - self.base.logpdf(position)

    def integral(self, log_function: Callable[[np.ndarray], np.ndarray]) -> float:
        return float(np.trapezoid(np.exp(log_function(GRID)), GRID))

    def mean(self) -> float:
        density = np.exp(self.log_target(GRID))
        return float(np.trapezoid(density * GRID, GRID) / np.trapezoid(density, GRID))

    def quantile(self, probability: float) -> float:
        return float(np.interp(probability, _cumulative(self.log_target(GRID)), GRID))


class Sample(NamedTuple):
    """Positions, log ratios and log masses of both states; leading axes are as asked for."""

    base: np.ndarray
    chains: np.ndarray
    log_ratio: tuple[np.ndarray, np.ndarray]
    log_mass: tuple[np.ndarray, np.ndarray]

    def at(self, seed: int) -> "Sample":
        """One of many samples."""
        pairs = (tuple(part[seed] for part in pair) for pair in self[2:])
        return Sample(self.base[seed], self.chains[seed], *pairs)

    def states(self, share: float = 1.0) -> TwoStates:
        (base, chains), (base_mass, chain_mass) = self.log_ratio, self.log_mass
        return combine(base, base_mass, chains, chain_mass, share * chains.size)

    def share(self) -> float:
        return effective_share(*self.log_mass)


GRID = np.linspace(-40, 40, 400_001)  # 0 and 0.3 are on it: an edge between two points would be half a step off
SHIFT = np.log(0.7)

HALF = Line(stats.norm(0, 1), lambda x: np.where(x > 0, stats.norm.logpdf(x), -np.inf), -np.log(2))
CUT = Line(
    stats.norm(0.5, 1.5),
    lambda x: np.where(x > 0.3, stats.norm.logpdf(x, 1.2, 0.6) + 2.0, -np.inf),
    2.0 + float(stats.norm.logsf(0.3, 1.2, 0.6)),
)
SHIFTED = Line(stats.norm(0, 1.5), lambda x: stats.norm.logpdf(x, 1.0, 0.7) + SHIFT, SHIFT)
SKEWED = Line(stats.norm(0.3, 1.2), lambda x: stats.skewnorm.logpdf(x, 4.0, -0.5, 1.3) + 1.7, 1.7)
FAR = Line(stats.norm(0, 5), lambda x: stats.norm.logpdf(x, 9, 0.4) - 2.0, -2.0)
NARROW = Line(stats.norm(0, 1), lambda x: stats.norm.logpdf(x, 1.0, 2.0) + 0.5, 0.5)
MISSED = Line(
    stats.norm(0, 1),
    lambda x: np.logaddexp(np.log(0.6) + stats.norm.logpdf(x), stats.norm.logpdf(x, 9, 0.5)),
    np.log(1.6),
)


def sample_line(
    line: Line, law: Any, seed: int, num_base: int, shape: tuple[int, ...], *, correlation: float = 0.0, many: int = 0
) -> Sample:
    """Draws of both states; chains are an AR(1) of normal scores mapped through the exact distribution function."""
    generator, leading = np.random.default_rng(seed), (many,) if many else ()
    scores = generator.normal(size=(*leading, *shape))
    for i in range(1, shape[-1]):
        scores[..., i] = correlation * scores[..., i - 1] + np.sqrt(1 - correlation**2) * scores[..., i]
    log_density = line.base.logpdf(GRID) + log_mass_of(law, line.log_ratio(GRID))
    chains = np.interp(ndtr(scores), _cumulative(log_density), GRID)
    base = line.base.rvs(size=(*leading, num_base), random_state=generator)
    log_ratios = line.log_ratio(base), line.log_ratio(chains)
    return Sample(base, chains, log_ratios, (log_mass_of(law, log_ratios[0]), log_mass_of(law, log_ratios[1])))


def log_mass_of(law: Any, log_ratio: np.ndarray) -> np.ndarray:
    with computing_in("float64"):
        return log_masses(law, log_ratio.ravel()).reshape(log_ratio.shape)


def _cumulative(log_density: np.ndarray) -> np.ndarray:
    density = np.exp(log_density - log_density.max())
    cumulative = np.append(0.0, np.cumsum(density[1:] + density[:-1]))
    return cumulative / cumulative[-1]
