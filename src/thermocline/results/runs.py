"""The runs behind the results of many targets: what each left, read and put together when it is asked for."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from thermocline.auto.mode_masses import table_of_modes
from thermocline.bases import BaseFit
from thermocline.engine.batch import Paths, at, joined
from thermocline.engine.explore import Exploration, Explorations, streams_of
from thermocline.engine.prepare import base_draws_of, log_support
from thermocline.engine.progress import Silent
from thermocline.evaluator import Evaluator
from thermocline.paths import Law, Path, as_stored
from thermocline.records import BaseDraws, Phases
from thermocline.results.assemble import assemble
from thermocline.results.result import Result
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import cast, computing_in

DROPPED = "the draws of the parameters were not kept; call sample_many with positions=True for what needs them."
WEIGHTS = "log_ratio", "log_weight_target", "log_weight_base", "stage_log_weights"


class Settings(NamedTuple):
    """What all targets of a call have in common."""

    seed: int
    method: Any  # a Method; of a loaded result, what is left of it
    method_name: str
    has_evidence: bool
    precision: str
    has_positions: bool = True
    has_search: bool = False


class Part(NamedTuple):
    """Targets that ran together: their numbers among those of the call; rows beyond them only fill up a block."""

    targets: np.ndarray
    explored: Explorations
    fits: tuple[BaseFit, ...] = ()  # of each, where there was a search for its base


class ByTarget(NamedTuple):
    """A number or two of every target."""

    seed: np.ndarray
    log_zeta: np.ndarray
    num_bad: np.ndarray  # draws of the base where r is NaN or +inf
    support: np.ndarray  # how many draws of the base fell on the target's support, and of how many
    num_draws: np.ndarray  # a chain
    warmup_gradients: np.ndarray

    @property
    def is_usable(self) -> np.ndarray:
        return (self.num_bad == 0) & (self.support[:, 0] > 0)


@dataclass(eq=False)
class ManyRuns:
    """What `ManyResults` asks of the runs behind it, whether they were made in this session or read from a file."""

    settings: Settings
    by_target: ByTarget
    num_chains: int
    group: int  # how many draws make one independent piece, where the method knows it; else 0
    seconds: Phases  # of all targets together

    def fields(self, targets: np.ndarray, *names: str) -> Iterator[tuple[np.ndarray, ...]]:
        """Some fields (chain, draw) of the draws of some targets, one after another."""
        raise NotImplementedError

    def bases(self, targets: np.ndarray) -> Iterator[tuple[Law | None, np.ndarray]]:
        """The law of beta of some targets, where there is one, and r at draws of their base, one after another."""
        raise NotImplementedError

    def result(self, target: int, *, is_for_checks: bool = False) -> Result:
        """The Result of one target, as `tc.sample` would have left it; for checks, without what they do not need."""
        raise NotImplementedError


@dataclass(eq=False)
class Runs(ManyRuns):
    """What the targets of a call left, part by part; draws stay where they are, in memory or in files."""

    parts: list[Part]
    _latest: Any = (None, None)  # block of which base draws were made, and they

    @staticmethod
    def of(parts: list[Part], settings: Settings) -> "Runs":
        rows, first = [], parts[0].explored.outcomes
        for targets, explored, _ in parts:
            of_base = explored.seeds, explored.log_zeta, explored.num_bad, explored.support
            each = ByTarget(*of_base, explored.outcomes.drawn.num_draws, explored.outcomes.warmup_gradients)
            rows.append(at(each, slice(len(targets))))
        by_target = scattered(joined(rows), np.concatenate([part.targets for part in parts]))
        group = 0 if first.tuning.schedule is None else first.tuning.schedule.group
        seconds = sum((part.explored.outcomes.seconds for part in parts), Phases())
        return Runs(settings, by_target, first.drawn.num_chains, group, seconds, parts)

    @cached_property
    def places(self) -> dict[int, tuple[Part, int]]:
        """The part and the row of every target."""
        return {int(target): (part, row) for part in self.parts for row, target in enumerate(part.targets)}

    def fields(self, targets: np.ndarray, *names: str) -> Iterator[tuple[np.ndarray, ...]]:
        latest, rows = None, []  # a block's are read at once
        for target in targets:
            part, row = self.places[int(target)]
            drawn = part.explored.outcomes.drawn
            block, place = drawn.blocks.place(row)
            if latest != (drawn, block):
                latest, rows = (drawn, block), list(drawn.fields(block, *names))
            yield rows[place]

    def bases(self, targets: np.ndarray) -> Iterator[tuple[Law | None, np.ndarray]]:
        for target in targets:
            part, row = self.places[int(target)]
            law = at(part.explored.outcomes.tuning.law, row)
            with computing_in(self.settings.precision):
                found = None if law is None else as_stored(law), self._base_draws(part, row).log_ratio
            yield found

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, Paths, Any]]:
        """Blocks as they ran: their targets; and of all rows, beyond those too, seeds, paths and tuning."""
        for part in self.parts:
            explored, blocks = part.explored, part.explored.outcomes.drawn.blocks
            paths, tuning = cast((explored.paths, explored.outcomes.tuning), self.settings.precision)
            for rows in blocks.all_rows():
                yield part.targets[rows], explored.seeds[rows], paths.take(rows), at(tuning, rows)

    def result(self, target: int, *, is_for_checks: bool = False) -> Result:
        (part, row), settings, seed = self.places[target], self.settings, int(self.by_target.seed[target])
        with computing_in(settings.precision):
            explored, method = self._exploration(target), cast(settings.method, settings.precision)
            path, modes = explored.path, None
            fit = part.fits[row] if part.fits else BaseFit(path.base, float(path.log_zeta))
            if settings.has_search and settings.has_positions:
                evaluate = Evaluator(path.target, settings.precision)
                modes = table_of_modes(seed, evaluate, fit, explored, Silent())
            if is_for_checks:
                path = Path(replace(path.target, log_likelihood=None), path.base, path.log_zeta)
            notes = (f"target {target} of a call of sample_many", *fit.notes)
            result = assemble(explored._replace(path=path), method, seed, settings.precision, modes, notes=notes)
        if settings.has_positions:
            return result
        kept = {entry.name: getattr(result, entry.name) for entry in fields(result)}
        draws = result.draws._replace(position=result.draws.position[..., :0])
        return EvidenceOnly(**kept | {"draws": draws, "parameters": {}, "unconstrained": {}, "template": {}})

    def _exploration(self, target: int) -> Exploration:
        """The run of one target, as `tc.sample` would have left it."""
        (part, row), settings = self.places[target], self.settings
        outcome, path = part.explored.outcomes.one(row), cast(part.explored.paths.one(row), settings.precision)
        draws = outcome.draws
        if not self.by_target.is_usable[target]:
            nothing = np.full_like(draws.log_ratio, np.nan)
            draws = draws._replace(log_weight_target=nothing, log_weight_base=nothing)
        if not settings.has_positions:
            draws = draws._replace(position=np.zeros((*draws.log_ratio.shape, path.dimension)))
        outcome = outcome._replace(draws=draws, seconds=Phases())
        return Exploration(path, outcome, self._base_draws(part, row), log_support(self.by_target.support[target]))

    def _base_draws(self, part: Part, row: int) -> BaseDraws:
        """Fresh draws of its base, made again as they were: of its whole block, kept until another is asked for."""
        explored, drawn = part.explored, part.explored.outcomes.drawn
        block, place = drawn.blocks.place(row)
        if self._latest[0] != (drawn, block):
            rows = drawn.blocks.rows(block)
            made = base_draws_of(streams_of(explored.seeds[rows]), explored.paths.take(rows))
            self._latest = (drawn, block), made
        return self._latest[1][place]


def scattered(columns: ByTarget, targets: np.ndarray) -> ByTarget:
    """The columns of some targets in places of their numbers."""

    def spread(column: np.ndarray) -> np.ndarray:
        found = np.zeros((int(targets.max(initial=-1)) + 1, *column.shape[1:]), column.dtype)
        found[targets] = column
        return found

    return ByTarget(*map(spread, columns))


def weights(runs: ManyRuns, targets: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """R, log weights for target and base and those of stages; NaN where a target could not be sampled."""
    for target, leaves in zip(targets, runs.fields(targets, *WEIGHTS), strict=True):
        is_usable = runs.by_target.is_usable[target]
        yield leaves if is_usable else tuple(np.full_like(leaf, np.nan) for leaf in leaves)


def stacked(leaves: list[np.ndarray]) -> np.ndarray:
    """Arrays (chain, draw) of targets with a leading axis over them; shorter ones are filled up with NaN, or zero."""
    chains, longest = len(leaves[0]), max(leaf.shape[1] for leaf in leaves)
    nothing = np.nan if leaves[0].dtype.kind == "f" else 0
    found = np.full((len(leaves), chains, longest, *leaves[0].shape[2:]), nothing, leaves[0].dtype)
    for room, leaf in zip(found, leaves, strict=True):
        room[:, : leaf.shape[1]] = leaf
    return found


class EvidenceOnly(Result):
    """A Result whose draws of the parameters were dropped: it knows evidence, partition function and verdict."""

    def _refuse(self, *arguments: Any, **options: Any) -> Any:
        raise ThermoclineError(DROPPED)

    posterior = to_arviz = save = _elementwise = plot_modes = plot_pair = _refuse


def lean(part: Part) -> Part:
    """Without draws of the parameters."""
    outcomes = part.explored.outcomes
    outcomes = outcomes._replace(drawn=outcomes.drawn.without("position"))
    return part._replace(explored=part.explored._replace(outcomes=outcomes))
