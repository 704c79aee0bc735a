"""The runs behind the results of many targets: what each left, read and put together when it is asked for."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from thermocline.auto.mode_masses import table_of_modes
from thermocline.bases import BaseFit
from thermocline.engine.batch import Paths, at, joined
from thermocline.engine.explore import Exploration, Explorations, keys_of
from thermocline.engine.prepare import base_draws_of, log_support
from thermocline.engine.progress import Silent
from thermocline.evaluator import Evaluator
from thermocline.paths import Path
from thermocline.records import BaseDraws, Draws, ModeTable, Phases
from thermocline.results.assemble import assemble
from thermocline.results.result import Result
from thermocline.support.errors import ThermoclineError
from thermocline.support.precision import cast, computing_in
from thermocline.target import Target

DROPPED = "the draws of the parameters were not kept; call sample_many with positions=True for what needs them."
WEIGHTS = "log_weight_target", "log_weight_base", "stage_log_weights"


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


class Known(NamedTuple):
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


class ManyRuns(Protocol):
    """What `ManyResults` asks of the runs behind it, whether they were made in this session or read from a file."""

    @property
    def settings(self) -> Settings: ...
    @property
    def known(self) -> Known: ...
    @property
    def num_chains(self) -> int: ...
    @property
    def group(self) -> int: ...
    @property
    def seconds(self) -> Phases: ...

    def fields(self, targets: np.ndarray, *names: str) -> Iterator[tuple[np.ndarray, ...]]:
        """Some fields (chain, draw) of the draws of some targets, one after another."""
        ...

    def result(self, target: int, *, is_for_checks: bool = False) -> Result:
        """The Result of one target, as `tc.sample` would have left it."""
        ...


@dataclass(eq=False)
class Runs:
    """What the targets of a call left, part by part; draws stay where they are, in memory or in files."""

    parts: list[Part]
    settings: Settings
    _latest: Any = (None, None)

    def __len__(self) -> int:
        return sum(len(part.targets) for part in self.parts)

    @cached_property
    def places(self) -> dict[int, tuple[int, int]]:
        """The part and the row of every target."""
        return {
            int(target): (number, row)
            for number, part in enumerate(self.parts)
            for row, target in enumerate(part.targets)
        }

    @property
    def known(self) -> Known:
        return self._known

    @cached_property
    def _known(self) -> Known:
        rows = []
        for part in self.parts:
            explored = part.explored
            drawn = explored.outcomes.drawn.num_draws, explored.outcomes.warmup_gradients
            each = Known(explored.seeds, explored.log_zeta, explored.num_bad, explored.support, *drawn)
            rows.append(at(each, slice(len(part.targets))))
        return scattered(joined(rows), np.concatenate([part.targets for part in self.parts]))

    @property
    def num_chains(self) -> int:
        return self.parts[0].explored.outcomes.drawn.num_chains

    @property
    def group(self) -> int:
        """How many draws make one independent piece, where the method knows it; else 0."""
        schedule = self.parts[0].explored.outcomes.tuning.schedule
        return 0 if schedule is None else schedule.group

    @property
    def seconds(self) -> Phases:
        """Of all targets together."""
        return sum((part.explored.outcomes.seconds for part in self.parts), Phases())

    @property
    def tuning(self) -> Any:
        """What was learned of all targets, where their bases are of one family."""
        each = joined([at(part.explored.outcomes.tuning, slice(len(part.targets))) for part in self.parts])
        return at(each, np.argsort(np.concatenate([part.targets for part in self.parts])))

    def fields(self, targets: np.ndarray, *names: str) -> Iterator[tuple[np.ndarray, ...]]:
        """Some fields (chain, draw) of some targets; a block's are read at once."""
        latest, rows = None, []
        for target in targets:
            number, row = self.places[int(target)]
            drawn = self.parts[number].explored.outcomes.drawn
            block, place = drawn.blocks.place(row)
            if latest != (number, block):
                latest, rows = (number, block), list(drawn.fields(block, *names))
            yield rows[place]

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, Paths, Any]]:
        """Blocks as they ran: their targets; and of all rows, beyond those too, seeds, paths and tuning."""
        for part in self.parts:
            explored, blocks = part.explored, part.explored.outcomes.drawn.blocks
            paths, tuning = cast((explored.paths, explored.outcomes.tuning), self.settings.precision)
            for rows in map(blocks.rows, range(len(blocks))):
                yield part.targets[rows], explored.seeds[rows], paths.take(rows), at(tuning, rows)

    def base_draws(self, target: int) -> BaseDraws:
        """Fresh draws of its base, made again as they were: of its whole block, kept until another is asked for."""
        number, row = self.places[target]
        explored = self.parts[number].explored
        block, place = explored.outcomes.drawn.blocks.place(row)
        if self._latest[0] != (number, block):
            rows = explored.outcomes.drawn.blocks.rows(block)
            self._latest = (
                (number, block),
                base_draws_of(keys_of(explored.seeds[rows])[:, 0], explored.paths.take(rows)),
            )
        return self._latest[1][place]

    def exploration(self, target: int) -> Exploration:
        """The run of one target, as `tc.sample` would have left it."""
        number, row = self.places[target]
        explored, precision = self.parts[number].explored, self.settings.precision
        outcome = explored.outcomes.one(row)._replace(seconds=Phases())
        draws = outcome.draws
        if not self.known.is_usable[target]:
            nothing = np.full_like(draws.log_ratio, np.nan)
            draws = draws._replace(log_weight_target=nothing, log_weight_base=nothing)
        path = cast(explored.paths.one(row), precision)
        if not self.settings.has_positions:
            draws = draws._replace(position=np.zeros((*draws.log_ratio.shape, path.dimension)))
        of_base = self.base_draws(target), log_support(self.known.support[target])
        return Exploration(path, outcome._replace(draws=draws), *of_base)

    def result(self, target: int, *, is_for_checks: bool = False) -> Result:
        """The Result of one target, assembled as `tc.sample` does it; for checks alone, without what they need not."""
        settings = self.settings
        with computing_in(settings.precision):
            explored, method = self.exploration(target), cast(settings.method, settings.precision)
            modes = self._modes(target, explored) if settings.has_search else None
            if is_for_checks:
                explored = explored._replace(
                    path=with_target(explored.path, replace(explored.path.target, log_likelihood=None))
                )
            seed, fit = int(self.known.seed[target]), self._fit(target, explored)
            notes = (f"target {target} of a call of sample_many", *fit.notes)
            result = assemble(explored, method, seed, settings.precision, modes, notes=notes)
        return result if settings.has_positions else without_parameters(result)

    def _fit(self, target: int, explored: Exploration) -> BaseFit:
        number, row = self.places[target]
        fits = self.parts[number].fits
        return fits[row] if fits else BaseFit(explored.path.base, float(explored.path.log_zeta))

    def _modes(self, target: int, explored: Exploration) -> ModeTable:
        evaluate = Evaluator(explored.path.target, self.settings.precision)
        return table_of_modes(int(self.known.seed[target]), evaluate, self._fit(target, explored), explored, Silent())


def scattered(known: Known, targets: np.ndarray) -> Known:
    """The columns of some targets in places of their numbers."""

    def spread(column: np.ndarray) -> np.ndarray:
        found = np.zeros((int(targets.max(initial=-1)) + 1, *column.shape[1:]), column.dtype)
        found[targets] = column
        return found

    return Known(*map(spread, known))


def weights(runs: ManyRuns, targets: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """Log weights for target and base and those of stages; NaN where a target could not be sampled."""
    for target, leaves in zip(targets, runs.fields(targets, *WEIGHTS), strict=True):
        is_usable = runs.known.is_usable[target]
        yield leaves if is_usable else tuple(np.full_like(leaf, np.nan) for leaf in leaves)


def stacked(leaves: list[np.ndarray]) -> np.ndarray:
    """Arrays (chain, draw) of targets with a leading axis over them; shorter ones are filled up with NaN, or zero."""
    longest = max(leaf.shape[1] for leaf in leaves)
    return np.stack([leaf if leaf.shape[1] == longest else filled(leaf, longest) for leaf in leaves])


class EvidenceOnly(Result):
    """A Result whose draws of the parameters were dropped: it knows evidence, partition function and verdict."""

    def posterior(self, num_draws: int = 1000, *, seed: int = 0) -> Any:
        raise ThermoclineError(DROPPED)

    def to_arviz(self) -> Any:
        raise ThermoclineError(DROPPED)

    def save(self, path: Any) -> None:
        raise ThermoclineError(DROPPED)

    def _map(self, function: Any) -> Any:
        raise ThermoclineError(DROPPED)


def without_parameters(result: Result) -> Result:
    """What is left of a result without draws of the parameters."""
    kept = {entry.name: getattr(result, entry.name) for entry in fields(result)}
    draws: Draws = result.draws._replace(position=result.draws.position[..., :0])
    return EvidenceOnly(**kept | {"draws": draws, "parameters": {}, "unconstrained": {}, "template": {}})


def with_target(path: Path, target: Target) -> Path:
    return Path(target, path.base, path.log_zeta)


def filled(leaf: np.ndarray, length: int) -> np.ndarray:
    """With as many draws (chain, draw) as others have; NaN, or nothing, where there were none."""
    room = np.full((leaf.shape[0], length - leaf.shape[1], *leaf.shape[2:]), np.nan if leaf.dtype.kind == "f" else 0)
    return np.concatenate([leaf, room.astype(leaf.dtype)], axis=1)


def lean(part: Part) -> Part:
    """Without draws of the parameters."""
    outcomes = part.explored.outcomes
    return part._replace(
        explored=part.explored._replace(outcomes=outcomes._replace(drawn=outcomes.drawn.without("position")))
    )
