"""From the modes that are known to a base: one pool, one family, one score.

Rounds draw from a mixture of Student's t, weigh the draws with all that were drawn before, and fit the mixture to them;
where a weight stands out, a component is put there. What is best is decided by fresh draws, and by predicted work.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from thermocline.auto.thin import NUM_LANES, thin_places
from thermocline.engine.prepare import MOST_BASE_DRAWS
from thermocline.estimators.convergence import kish_share, pareto_k
from thermocline.estimators.two_state_answers import FINITE_VARIANCE
from thermocline.evaluator import Evaluator
from thermocline.fits.advi import advi
from thermocline.fits.gaussian_ascent import LocationScale
from thermocline.fits.natural import natural_ascent
from thermocline.fits.pool import NEGLIGIBLE, Pool
from thermocline.fits.student_mixture import MOST_ROWS, StudentMixture, em_fit_student
from thermocline.modes.find import Search
from thermocline.modes.peaks import Peak, massive
from thermocline.support.linear import triangular

NUM_DRAWS = 2048  # of a round
MOST_ROUNDS = 12
GAIN = 1.05  # of that share that makes a round worth it
PATIENCE = 3  # rounds without gain
WORTH = 2  # rounds that the draws still to be made must cost, for one to be worth it
OUTSTANDING = 0.03  # share of all weight on one draw, at which a component is put there
NEW_SHARE = 0.1  # of such a component
MOST_COMPONENTS = 63
BROAD_SHARE = 0.05  # of the component over all of them
FIRST_DEGREES = 5.0  # of freedom, of the heavy tailed
NUM_NATURAL, MOST_SMOOTHED = 8, 8  # steps of a natural ascent, and modes that get one
FEWEST_EFFECTIVE = 8  # draws, below which a share is noise and ELBOs decide
EXTRA_WIDTH = 0.42  # of a first fit, over the root of the dimension
EVENNESS = 0.2  # of the weights of first fits, that is shared evenly: masses are not known yet
MISSED = 4.0  # errors by which fresh draws find less than the pool has seen
FLOOR = 1e3  # nats below the largest log weight, of one that is nothing
MOST_COVERINGS, FEW_ROUNDS = 6, 4  # looks for places where the best design is thin, and rounds after each or a pilot
HOT = 0.25  # inverse temperature at which ascents to what is missed begin
COST_A_COMPONENT = 0.02  # of the density, relative to the target's


@dataclass(frozen=True)
class Design:
    """A mixture, and of its draws the effective share (their own, and by the pool), log Z, and how weights spread."""

    mixture: StudentMixture
    share: float
    log_evidence: float
    tail: float = np.inf  # Pareto's k
    elbo: float = -np.inf  # their mean logarithm

    @property
    def is_trusted(self) -> bool:
        """Whether its weights have a variance, or the share of its draws says nothing."""
        return self.tail < FINITE_VARIANCE

    @property
    def variance(self) -> float:
        """Of log Z from a single draw."""
        return 1 / max(self.share, 1e-300) - 1

    @property
    def work(self) -> float:
        """Evaluations for an effective draw, its own density counted."""
        return (1 + COST_A_COMPONENT * self.mixture.size) / max(self.share, 1e-12)

    @property
    def rank(self) -> tuple[float, float]:
        """The higher the better: draws that count, for the work; where hardly any does, how near they come to it."""
        return (1 / self.work if self.share * NUM_DRAWS > FEWEST_EFFECTIVE else 0.0), self.elbo


def first_mixture(peaks: list[Peak], degrees: float = FIRST_DEGREES) -> StudentMixture:
    """A component for each mode, the heavier tailed the wider, with weights by mass that are evened a little."""
    chosen = massive(peaks)[:MOST_COMPONENTS]
    masses = np.array([peak.log_mass for peak in chosen])
    log_weights = np.logaddexp(masses - np.logaddexp.reduce(masses), np.log(EVENNESS / len(chosen)))
    wider = 1 + EXTRA_WIDTH * FIRST_DEGREES / degrees / np.sqrt(len(chosen[0].location))
    means, roots = [peak.location for peak in chosen], [wider * peak.root for peak in chosen]
    return StudentMixture.of(means, roots, degrees, log_weights)


def with_broad(mixture: StudentMixture) -> StudentMixture:
    """And a component over all of them, twice as wide in variance: it goes on looking for what lies around."""
    mean, root = mixture.moments()
    broad = StudentMixture.of([mean], [np.sqrt(2) * root], FIRST_DEGREES, [0.0])
    return mixture.joined_by(broad, np.log(BROAD_SHARE))


class Designer:
    """Rounds of drawing and fitting, on a pool that forgets nothing."""

    def __init__(
        self, evaluate: Evaluator, generator: np.random.Generator, search: Search, target_error: float = 0.05
    ) -> None:
        self.evaluate, self.generator, self.search, self.target_error = evaluate, generator, search, target_error
        self.enough = 1 / (WORTH * NUM_DRAWS * target_error**2)  # share at which measuring is cheap
        self.least = 1 / (MOST_BASE_DRAWS * target_error**2)  # share at which they can do without chains
        self.pool = Pool.empty(evaluate.dimension)
        log_evidence = float(np.logaddexp.reduce([peak.log_mass for peak in search.peaks]))
        self.best = Design(first_mixture(search.peaks), 0.0, log_evidence)  # until draws say better

    @property
    def suffices(self) -> bool:
        """Whether draws of the best design, as many as may be bought, would reach the wanted error by themselves."""
        return self.best.is_trusted and self.best.share > self.least

    def draw(self, mixture: StudentMixture, number: int = NUM_DRAWS) -> np.ndarray:
        """Draws of a mixture join the pool; their log weights against that mixture alone come back."""
        self.pool, log_weight = self.pool.drawn(self.generator, self.evaluate, mixture, self.evaluate.sized(number))
        return log_weight

    def first(self) -> None:
        """The shapes of the modes by curvature, with heavy tails or none; by natural ascents; and then what EM makes.

        The last two only as far as those before leave too much to be measured. A natural ascent from a variational fit
        about the start looks for the mass of a single mode, which in many dimensions may be far from its highest point.
        """
        peaks = self.search.peaks
        self.consider([first_mixture(peaks), first_mixture(peaks, np.inf)])
        if self.best.share < self.enough:
            self.consider([first_mixture(self.smoothed())])
        if self.best.share < self.enough:
            self.consider([self.variational()])
        if self.best.share < self.enough:
            self.rounds(self.best.mixture)

    def cover(self) -> None:
        """Components where ascents find the best design thin, as long as draws there say that it matters.

        A design's own draws know nothing of what it misses. In many dimensions the draws of a fit tell the shapes of
        few components, and there is too much beyond these to be covered.
        """
        dimension = self.evaluate.dimension
        most = MOST_ROWS // (dimension * (dimension + 3) // 2)
        for _ in range(MOST_COVERINGS):
            before = self.best
            if before.share == 0 or before.mixture.size >= most:
                return
            level = self.pool.log_evidence - np.log(before.share)
            starts = self.around(before.mixture, level, self.evaluate.sized(NUM_LANES))
            places = thin_places(self.evaluate, before.mixture, starts, self.search.peaks[0].root, level)
            if not places:
                return
            means, roots = [place.location for place in places], [place.root for place in places]
            there = StudentMixture.of(means, roots, FIRST_DEGREES, np.zeros(len(places)))
            mixture = before.mixture.joined_by(there, np.log(NEW_SHARE))
            self.draw(mixture)
            self.review()
            if self.best.variance < GAIN * before.variance:
                return
            self.rounds(em_fit_student(mixture, self.pool.position, self.pool.weight), FEW_ROUNDS)

    def around(self, mixture: StudentMixture, level: float, number: int) -> np.ndarray:
        """Draws of the pool: where a mixture misses much of what is known, and of the target as it is when hot."""
        log_density, pool = mixture.log_density_of_rows(self.pool.position), self.pool
        log_missed = np.minimum(pool.log_target - log_density - level, NEGLIGIBLE)
        is_inside = np.isfinite(pool.log_target)
        kinds = log_missed, np.where(is_inside, (HOT - 1) * pool.log_target, 0.0)
        shares = [np.where(is_inside, pool.log_weight + kind, -np.inf) for kind in kinds]
        shares = [np.exp(share - share.max()) for share in shares]
        chosen = [self.generator.choice(len(share), max(number // 2, 1), p=share / share.sum()) for share in shares]
        return pool.position[np.concatenate(chosen)]

    def review(self) -> None:
        """The best design's share by all that has been seen since."""
        seen = self.pool.share_of(self.best.mixture.log_density_of_rows(self.pool.position))
        self.best = replace(self.best, share=min(self.best.share, seen))

    def consider(self, mixtures: list[StudentMixture]) -> None:
        """Keep one of them if its draws say that it is better."""
        self.best = max(self.best, *map(self.judged, mixtures), key=lambda design: design.rank)

    def smoothed(self) -> list[Peak]:
        """The heaviest modes after natural ascents from their curvature; the others as they are."""
        peaks = massive(self.search.peaks)
        starts = [LocationScale(peak.location, triangular(peak.root)) for peak in peaks[:MOST_SMOOTHED]]
        fits = [natural_ascent(self.generator, self.evaluate, start, NUM_NATURAL) for start in starts]
        pairs = zip(peaks, fits, strict=False)
        return [peak._replace(location=fit.mean, root=fit.scale) for peak, fit in pairs] + peaks[MOST_SMOOTHED:]

    def variational(self) -> StudentMixture:
        """One Gaussian: of independent coordinates first, which few draws tell."""
        start = advi(self.generator, self.evaluate, self.evaluate.initial_position)[0].normal
        start = start._replace(scale=np.diag(start.scale))
        fit = natural_ascent(self.generator, self.evaluate, start, NUM_NATURAL)
        return StudentMixture.of([fit.mean], [fit.scale], np.inf, [0.0])

    def rounds(self, mixture: StudentMixture, most: int = MOST_ROUNDS) -> None:
        """Draw, and fit to all that was drawn, while that makes the draws count for more; keep what is best."""
        best, idle = (0.0, mixture), 0
        for _ in range(most):
            proposal = with_broad(mixture)
            share = kish_share(self.draw(proposal))
            if np.isfinite(self.pool.log_weight).any():
                share = min(share, self.pool.share_of(proposal.log_density_of_rows(self.pool.position)))
            idle = 0 if share > GAIN * best[0] else idle + 1
            best = max(best, (share, mixture), key=lambda pair: pair[0])
            if share > self.enough or idle > PATIENCE or not np.isfinite(self.pool.log_weight).any():
                break
            mixture = self.learned(mixture)
        self.consider(self.candidates(best[1]))

    def learned(self, mixture: StudentMixture) -> StudentMixture:
        """A component where one draw holds much of the weight, and all of them fitted to the pool."""
        weight = self.pool.weight
        place = int(np.argmax(weight))
        if weight[place] > OUTSTANDING and mixture.size < MOST_COMPONENTS:
            mixture = mixture.joined_by(self.component_at(self.pool.position[place], mixture), np.log(NEW_SHARE))
        return em_fit_student(mixture, self.pool.position, weight)

    def component_at(self, row: np.ndarray, mixture: StudentMixture) -> StudentMixture:
        """Of the shape of the component densest there; or of a mode, where an ascent from there finds a new one."""
        ends = self.search.ascended(row[None])
        if self.search.admit(ends, "draws"):
            newest = min(self.search.peaks, key=lambda peak: float(peak.distance(ends.position[0])))
            return first_mixture([newest])
        densest = int(np.argmax(mixture.log_densities(row[None])[:, 0]))
        return StudentMixture(row[None], mixture.scale[[densest]], np.array([FIRST_DEGREES]), np.zeros(1))

    def judged(self, mixture: StudentMixture, number: int = NUM_DRAWS) -> Design:
        """By fresh draws, which join the pool for later."""
        log_weight = self.draw(mixture, number)
        own = kish_share(log_weight)
        if own == 0:
            return Design(mixture, 0.0, self.pool.log_evidence)
        log_evidence = float(np.logaddexp.reduce(log_weight) - np.log(len(log_weight)))
        error = float(np.sqrt(max(1 / own - 1, 0.0) / len(log_weight)))
        seen = self.pool.share_of(mixture.log_density_of_rows(self.pool.position))
        has_missed = self.pool.log_evidence - log_evidence > MISSED * error
        log_evidence = self.pool.log_evidence if has_missed else log_evidence
        elbo = float(np.mean(np.maximum(log_weight, log_weight.max() - FLOOR)))
        return Design(mixture, min(own, seen), log_evidence, pareto_k(log_weight), elbo)

    def candidates(self, mixture: StudentMixture) -> list[StudentMixture]:
        """With the broad component, or a single one where there is a single mode."""
        candidates = [with_broad(mixture)]
        if len(massive(self.search.peaks)) == 1 and mixture.size > 1:
            mean, root = mixture.moments()
            single = StudentMixture.of([mean], [root], FIRST_DEGREES, [0.0])
            candidates.append(em_fit_student(single, self.pool.position, self.pool.weight))
        return candidates


def pooled_moments(pool: Pool) -> tuple[Any, Any]:
    """Mean and covariance of the target, as the pool knows them."""
    weight = pool.weight
    mean = weight @ pool.position
    offset = pool.position - mean
    return mean, (offset.T * weight) @ offset
