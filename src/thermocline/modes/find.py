"""The search for modes: look widely, explain what known modes can, ascend from the rest, go on while it finds."""

from typing import NamedTuple

import numpy as np

from thermocline.engine.progress import Reporter
from thermocline.evaluator import Evaluator
from thermocline.fits.gaussian_ascent import LocationScale
from thermocline.fits.lbfgs import Ending, Optima, maximise
from thermocline.fits.natural import natural_ascent
from thermocline.fits.pathfinder import PathFit, best_along, best_of
from thermocline.fits.pool import NEGLIGIBLE
from thermocline.modes.looks import EXPLAINED, explained, look
from thermocline.modes.peaks import Peak, admitted, home_of, massive, peak_of
from thermocline.records import SearchRecord
from thermocline.support.linear import triangular

FEWEST_LOOKS = 2**16  # that must have found no other, of a density of which nothing is known
LOOKING, A_LOOK = 2**29, 2**11  # operations for which to look; those of a look besides the density's
MOST_TIMES = 4  # the fewest looks, that are made while modes are found
BATCH = 4096
NUM_LEAST, NUM_RANDOM, NUM_EXPLAINED = 16, 32, 16  # ascents of a round: the least explained, and two random samples
MOST_ROUNDS = 8  # of ascents from the looks of one batch
MOST_MODES = 64  # beyond which a list is hopeless
MOST_PEAKS = 128
LEVEL, BARRIER = 0.02, 0.1  # nats: between the heights of optima on one ridge, and by which it may drop on the way
NUM_NEIGHBOURS = 3  # to which a ridge is looked for
NUM_HALVINGS = 3  # of the way along it
BETWEEN = 0.2  # of the way, that a point on the ridge keeps from either end
MOST_KEPT = 2**15  # unexplained looks that are remembered
NUM_NATURAL = 20  # steps of a natural ascent, from a fit that may be far off
NUM_HIGHEST = 256  # draws that may be higher than where ascents ended


class Found(NamedTuple):
    """The optima, how often ascents ended at each, the mode of each, and what the search did.

    Optima along a ridge or a ring are one mode.
    """

    peaks: list[Peak]
    counts: list[int]
    mode: np.ndarray  # of each, numbered by mass
    record: SearchRecord

    @property
    def num_modes(self) -> int:
        return int(self.mode.max(initial=-1)) + 1

    @property
    def has_many(self) -> bool:
        """More modes than a list can hold."""
        return self.num_modes >= MOST_MODES


def fewest_looks(operations: int | None) -> int:
    """Looks that must have found nothing new: the more, the cheaper a density is. Of a host's nothing is known."""
    if operations is None:
        return FEWEST_LOOKS
    return int(np.clip(LOOKING / (operations + A_LOOK), FEWEST_LOOKS / 8, 4 * FEWEST_LOOKS))


class Search:
    """A search under way; what it has found explains more and more."""

    def __init__(
        self,
        evaluate: Evaluator,
        generator: np.random.Generator,
        reporter: Reporter,
        given_rows: np.ndarray | None = None,
        along_axes: bool = True,
    ) -> None:
        self.evaluate, self.generator, self.reporter, self.along_axes = evaluate, generator, reporter, along_axes
        self.given_rows = np.zeros((0, evaluate.dimension)) if given_rows is None else given_rows  # to look at
        self.peaks: list[Peak] = []
        self.counts: list[int] = []
        self.group: list[int] = []  # of each peak: those of one mode have the same
        self.starts = self.rows = self.gradients = self.explained_rows = np.zeros((0, evaluate.dimension))
        self.cosine, self.tried = np.zeros(0), np.zeros(0, bool)  # of the rows: how well they are explained
        self.num_looks = self.num_ascents = self.num_lost = self.looks_at_last = self.ascent_rows = 0
        self.num_random_unexplained = self.num_random_explained = 0
        self.share_unexplained, self.cut_short_by = 1.0, ""
        self.fewest_looks = fewest_looks(evaluate.operations)

    @classmethod
    def resumed(
        cls, evaluate: Evaluator, generator: np.random.Generator, reporter: Reporter, found: Found
    ) -> "Search":
        """A search that knows what an earlier one found."""
        search = cls(evaluate, generator, reporter)
        search.peaks, search.counts, record = list(found.peaks), list(found.counts), found.record
        search.group = found.mode.tolist()
        search.num_looks, search.num_ascents, search.num_lost = record[:3]
        search.share_unexplained, search.looks_at_last = record.share_unexplained, 0
        search.num_random_unexplained, search.num_random_explained = record[4:6]
        search.cut_short_by = record.cut_short_by
        return search

    def first(self, starts: np.ndarray) -> None:
        """Ascend from where the user starts; where that ends at no optimum, fit along the way."""
        self.starts, ends = starts, maximise(self.evaluate, starts, keep_paths=True)
        self.admit(ends, "start")
        if not self.peaks:
            fits = [best_along(self.generator, self.evaluate, path) for path in ends.path]
            usable = [fit for fit in fits if fit is not None]
            if usable:
                self.note([self.without_optimum(max(usable, key=lambda fit: fit.score), ends)])

    def without_optimum(self, fit: PathFit, ends: Optima) -> Peak:
        """A mode where no ascent arrives: the best fit along the way, or what a natural ascent makes of that."""
        top = int(np.argmax(ends.log_density))
        normal = LocationScale(fit.location, triangular(fit.root))
        better = natural_ascent(self.generator, self.evaluate, normal, NUM_NATURAL)
        fit = best_of(self.generator, self.evaluate, [(fit.location, fit.root), better]) or fit
        peak = peak_of(fit.location, ends.log_density[top], fit.root, "path")
        return peak._replace(log_mass=fit.log_mass, highest=ends.position[top])

    def go_on(self) -> None:
        """Look and ascend until as much has been looked at since the last new mode as before it, and enough."""
        while self.peaks and not self.is_over():
            self.look(self.evaluate.sized(BATCH))
            for _ in range(MOST_ROUNDS):
                is_dear = self.ascent_rows > self.num_looks + BATCH  # ascents may cost as much as looking does
                if is_dear or not self.ascend() or self.is_full():
                    break
            self.reporter.figures(self.progress)

    def progress(self) -> str:
        number = len(set(self.group))
        modes = f"{number} mode{'' if number == 1 else 's'}"
        return f"{modes} found, {self.num_looks:,} points looked at"

    def is_over(self) -> bool:
        since = self.num_looks - self.looks_at_last
        least = self.peaks[0].log_mass - NEGLIGIBLE
        heavy = len({group for group, peak in zip(self.group, self.peaks, strict=True) if peak.log_mass > least})
        for_each = min(self.fewest_looks, FEWEST_LOOKS) // 4
        is_settled = since >= max(self.fewest_looks, for_each * heavy, self.looks_at_last if heavy > 1 else 0)
        return is_settled or self.num_looks >= MOST_TIMES * max(self.fewest_looks, FEWEST_LOOKS) or self.is_full()

    def is_full(self) -> bool:
        return len(set(self.group)) >= MOST_MODES or len(self.peaks) >= MOST_PEAKS

    def look(self, number: int) -> None:
        """Take looks, remember those that nothing explains, and a few of the others to ascend from."""
        given, self.given_rows = np.split(self.given_rows, [min(number // 4, len(self.given_rows))])
        number = max(number - len(given), 16)
        rows = look(self.generator, self.peaks, self.starts, number, along_axes=self.along_axes)
        rows = np.concatenate([rows, given])
        values, gradients = self.evaluate(rows)
        usable = np.isfinite(values) & np.isfinite(gradients).all(axis=1)
        self.num_looks += len(rows)
        rows, gradients = rows[usable], gradients[usable]
        cosine = explained(rows, gradients, self.peaks)
        is_explained = cosine > EXPLAINED
        self.share_unexplained = float(np.mean(~is_explained)) if len(rows) else 1.0
        self.rows = np.concatenate([self.rows, rows[~is_explained]])[-MOST_KEPT:]
        self.gradients = np.concatenate([self.gradients, gradients[~is_explained]])[-MOST_KEPT:]
        self.cosine = np.concatenate([self.cosine, cosine[~is_explained]])[-MOST_KEPT:]
        self.tried = np.concatenate([self.tried, np.zeros(int(np.sum(~is_explained)), bool)])[-MOST_KEPT:]
        self.explained_rows = rows[is_explained]

    def ascend(self) -> bool:
        """One round of ascents, and whether it found a new mode."""
        left = np.flatnonzero(~self.tried & (self.cosine < EXPLAINED))
        least = left[np.argsort(self.cosine[left], kind="stable")[: self.evaluate.sized(NUM_LEAST)]]
        random = self.generator.choice(left, min(self.evaluate.sized(NUM_RANDOM), len(left)), replace=False)
        others = self.generator.permutation(self.explained_rows)[: self.evaluate.sized(NUM_EXPLAINED)]
        self.explained_rows = self.explained_rows[:0]
        picked = np.concatenate([random, np.setdiff1d(least, random)]).astype(int)
        self.tried[picked] = True
        starts = np.concatenate([self.rows[picked], others])
        if not len(starts):
            return False
        before = self.evaluate.num_rows
        ends = self.ascended(starts)
        is_new = self.admit(ends, "look")
        self.ascent_rows += self.evaluate.num_rows - before
        if not is_new:
            has_arrived = home_of(ends.position, ends.log_density, self.peaks) >= 0
            self.num_random_unexplained += int(has_arrived[: len(random)].sum())
            self.num_random_explained += int(has_arrived[len(picked) :].sum())
        return is_new

    def ascended(self, starts: np.ndarray) -> Optima:
        """Where ascents end, in the metric of the heaviest mode; those not home go on until they know better."""
        ends = maximise(self.evaluate, starts, root=self.peaks[0].root, confirms=False)
        away = np.flatnonzero((home_of(ends.position, ends.log_density, self.peaks) < 0) & (ends.ending != Ending.LOST))
        if len(away):
            more = maximise(self.evaluate, ends.position[away])
            for leaf, new in zip(ends[:4], more[:4], strict=True):
                leaf[away] = new
            ends = ends._replace(metric=more.metric)
        return ends

    def admit(self, ends: Optima, found_by: str) -> bool:
        """Count the ends at known modes, and take in new ones; saddles are pushed off once."""
        new, pushed = admitted(self.evaluate, ends, self.peaks, found_by, MOST_PEAKS)
        if len(pushed):
            more = maximise(self.evaluate, pushed, root=self.peaks[0].root if self.peaks else None)
            new += admitted(self.evaluate, more, [*self.peaks, *new], found_by, MOST_PEAKS)[0]
        num_modes = self.note(new)
        home = home_of(ends.position, ends.log_density, self.peaks)
        self.num_ascents += len(home)
        self.num_lost += int(np.sum((home < 0) | (ends.ending == Ending.LOST)))
        for place in home[home >= 0]:
            self.counts[place] += 1
        return num_modes > 0

    def note(self, new: list[Peak]) -> int:
        """Take new optima in, the heaviest first, and how many new modes they are.

        Looks count anew from these, unless they are negligible: a spike on each datum of many would never let it end.
        """
        before = len(set(self.group))
        for peak in new:
            joined = {self.group[i] for i in self.neighbours(peak)}
            own = max(self.group, default=-1) + 1
            self.group = [own if group in joined else group for group in self.group] + [own]
            self.peaks, self.counts = [*self.peaks, peak], [*self.counts, 0]
        self.cosine = np.maximum(self.cosine, explained(self.rows, self.gradients, new))
        number = len(set(self.group)) - before
        if number > 0:
            heaviest = max(peak.log_mass for peak in self.peaks)
            if max(peak.log_mass for peak in new) > heaviest - NEGLIGIBLE:
                self.looks_at_last = self.num_looks
            self.num_random_unexplained = self.num_random_explained = 0
        order = sorted(range(len(self.peaks)), key=lambda i: -self.peaks[i].log_mass)
        self.peaks, self.counts = [self.peaks[i] for i in order], [self.counts[i] for i in order]
        self.group = [self.group[i] for i in order]
        return number

    def neighbours(self, peak: Peak) -> list[int]:
        """Near known optima of this one's height, of different modes, to which a ridge leads: then all are one mode."""
        level = [i for i, other in enumerate(self.peaks) if abs(other.log_density - peak.log_density) < LEVEL]
        if not level:
            return []
        spread = np.std([other.highest for other in [*self.peaks, peak]], axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        apart = [np.linalg.norm((self.peaks[i].highest - peak.highest) / spread) for i in level]
        by_group = {self.group[level[place]]: level[place] for place in np.argsort(apart, kind="stable")[::-1]}
        nearest = sorted(by_group.values(), key=lambda i: apart[level.index(i)])[:NUM_NEIGHBOURS]
        return [i for i in nearest if self.is_ridge(np.stack([peak.highest, self.peaks[i].highest]), spread)]

    def is_ridge(self, points: np.ndarray, spread: np.ndarray) -> bool:
        """Whether points halfway between, and halfway between these, ascend to as high as the ends and stay between.

        So a ring or a shell is followed, which a chord would leave; the points between two modes end at either.
        """
        floor = self.evaluate.values(points).min() - BARRIER
        for _ in range(NUM_HALVINGS):
            ends = maximise(self.evaluate, (points[1:] + points[:-1]) / 2, root=self.peaks[0].root, confirms=False)
            sides = [np.linalg.norm((ends.position - side) / spread, axis=1) for side in (points[:-1], points[1:])]
            lengths = np.linalg.norm((points[1:] - points[:-1]) / spread, axis=1)
            if np.any(ends.log_density < floor) or np.any(np.minimum(*sides) < BETWEEN * lengths):
                return False
            points = np.insert(points, np.arange(1, len(points)), ends.position, axis=0)
        return bool(np.all(self.evaluate.values((points[1:] + points[:-1]) / 2) > floor))

    def raised(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Where a mode without an optimum is highest, by draws: at an edge ascents may end short of that."""
        best = np.argsort(-values, kind="stable")[:NUM_HIGHEST]
        home = np.argmin([peak.distance(rows[best]) for peak in self.peaks], axis=0)
        for place, row in zip(home[::-1], best[::-1], strict=True):  # the highest last
            peak = self.peaks[place]
            if not peak.is_optimum and values[row] > peak.log_density:
                self.peaks[place] = peak._replace(highest=rows[row], log_density=float(values[row]))

    def found(self) -> Found:
        peaks = massive(self.peaks)  # the first, as these are in order
        volumes = [peak.log_volume for peak in peaks]
        record = SearchRecord(
            self.num_looks,
            self.num_ascents,
            self.num_lost,
            self.share_unexplained,
            self.num_random_unexplained,
            self.num_random_explained,
            float(np.ptp(volumes)) if volumes else 0.0,
            self.cut_short_by,
        )
        groups = self.group[: len(peaks)]
        numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
        return Found(peaks, self.counts[: len(peaks)], np.array([numbers[group] for group in groups], int), record)
