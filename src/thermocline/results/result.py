"""What a run leaves: draws, numbers with errors, and a verdict; never the target."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from typing import Any

import jax
import numpy as np

from thermocline.checks import Check, Context, Verdict, run_checks, verdict_of
from thermocline.estimators import chains
from thermocline.estimators import two_state_answers as together
from thermocline.estimators.batches import Batches, batches_of_groups
from thermocline.estimators.chains import Bounds, Curve, Interval, systematic_resample
from thermocline.estimators.two_states import Pair, TwoStates, pooled, states_of
from thermocline.modes.table import basins, mode_rows
from thermocline.paths import Law, TemperatureSchedule, ladder_of
from thermocline.records import BaseDraws, Cost, Draws, Estimate, Mode, ModeTable, RunInfo, SearchRecord
from thermocline.results import weighing as of_draws
from thermocline.results.continuation import Continuation
from thermocline.results.output import Pictures
from thermocline.results.weighing import Weighing, as_betas, as_sampled, by_component, log_prior, moments
from thermocline.support import large
from thermocline.support.errors import ThermoclineError, brief
from thermocline.support.options import is_whole
from thermocline.support.precision import computing_in
from thermocline.support.tables import Rows


@dataclass(frozen=True, eq=False)
class Result(Pictures):
    """Draws of a finished run and everything that follows from them.

    `parameters` are the draws in the user's coordinates by name, `unconstrained` as they were sampled; both are
    (chain, draw, ...) and belong with the weights in `draws`. `template` is the PyTree of one draw, of names.
    """

    draws: Draws
    parameters: dict[str, np.ndarray]
    unconstrained: dict[str, np.ndarray]
    template: Any
    law: Law | None  # that beta was drawn from, where it was; a user's own class is kept as a table
    schedule: TemperatureSchedule | None  # of fixed temperatures, where there was one
    log_zeta: float
    log_support: Estimate  # log of the base's mass where the target is positive
    base_draws: BaseDraws
    info: RunInfo
    continuation: Continuation
    mode_table: ModeTable | None = None  # what is known of the modes without the chains
    mode_locations: dict[str, np.ndarray] = field(default_factory=dict)  # by name, (mode, ...)
    log_likelihood: dict[str, np.ndarray] = field(default_factory=dict)  # by observation, at draws of `to_arviz`
    base_parameters: dict[str, np.ndarray] = field(default_factory=dict)  # those of `base_draws`, by name
    prior_parameters: dict[str, np.ndarray] = field(default_factory=dict)  # draws of the prior, where there is one
    predictive: dict[str, Any] = field(default_factory=dict)  # by name: what was observed, (draw, ...) in its place

    def __post_init__(self) -> None:
        """Lay the draws out in C order, whatever made them: then a loaded copy rounds its sums alike."""
        object.__setattr__(self, "draws", Draws(*map(np.ascontiguousarray, self.draws)))

    @cached_property
    @np.errstate(all="ignore")  # where weights are beyond numbers the answer is NaN or has no error, and checks say so
    def log_evidence(self) -> Estimate | None:
        """The log evidence with its standard error, or None for a method without evidence (a check says why).

        From draws of the base and of the chains together, where beta has a law; else as `log_evidence_chains`.
        """
        if not self.info.has_evidence:
            return None
        return together.log_evidence_of(self.states, self.draws, self.log_zeta, self.log_support, self._batches)

    @cached_property
    def states(self) -> TwoStates | None:
        """Draws of the base and of the chains as one weighted sample; None where beta has no law."""
        if self.law is None or not self.info.has_evidence:
            return None
        return states_of(self.law, self.base_draws.log_ratio, self.draws)

    @cached_property
    def log_evidence_chains(self) -> Estimate | None:
        """The log evidence from the chains alone: the paper's estimator (eq. ct-norm-const-estimator)."""
        if not self.info.has_evidence:
            return None
        return chains.log_evidence(self.draws, self.log_zeta, self.log_support, self._batches)

    def expectation(self, function: Callable[[Any], Any]) -> Estimate:
        """E[function(draw)] under the target, of a draw in the user's coordinates; arrays elementwise."""
        return self._elementwise(self.weighing.mean, function)

    def base_expectation(self, function: Callable[[Any], Any]) -> Estimate:
        """The same under the base, from the same draws (eq. ct-base-expc-estimator)."""
        self.need_joint("expectations under the base")
        return self._elementwise(lambda pair: chains.expectation(pair[1], self.draws.log_weight_base), function)

    def quantile(self, function: Callable[[Any], Any], probability: float) -> Estimate:
        """Quantile of function(draw) under the target."""
        of_draws.check_probability(probability)
        return self._elementwise(lambda pair: self.weighing.quantile(pair, probability), function)

    def interval(self, function: Callable[[Any], Any], probability: float = 0.9) -> Interval:
        """Central interval of function(draw) under the target; each end has its own error."""
        of_draws.check_probability(probability)
        tail = (1 - probability) / 2
        return Interval(self.quantile(function, tail), self.quantile(function, 1 - tail))

    def posterior(self, num_draws: int = 1000, *, seed: int = 0, mode: int | None = None) -> dict[str, np.ndarray]:
        """Equally weighted draws of the target by name: systematic resampling of the base's draws and all chains'.

        With `mode=2` those of "mode 2" alone, as `result.modes` and the summary number them.
        """
        if not (is_whole(num_draws) and num_draws > 0):
            raise ThermoclineError(f"num_draws is {brief(num_draws)}; give a positive integer.")
        if not (is_whole(seed) and seed >= 0):
            raise ThermoclineError(f"seed is {brief(seed)}; give an integer of at least 0.")
        index = systematic_resample(self.log_weight_of(mode), int(num_draws), int(seed))
        return {name: values[index] for name, values in self.pool.items()}

    def log_partition(self, betas: Any) -> Curve:
        """The log partition function log z(beta) with errors, at any beta in [0, 1]."""
        self.need_joint("the partition function")
        if self.states is not None:
            return together.log_partition(self.states, self.log_zeta, as_betas(betas))
        return chains.log_partition(self.draws, self.log_zeta, self.log_support, as_betas(betas))

    def log_partition_bounds(self, betas: Any) -> Bounds:
        """Appendix A's bounds on log z(beta), with both KL divergences estimated from the draws."""
        self.need_joint("bounds on the partition function")
        return chains.log_partition_bounds(self.draws, self.log_zeta, self.log_support, as_betas(betas))

    def beta_marginal(self, betas: Any) -> Curve:
        """The density of beta as it was sampled (probabilities, for a ladder's rungs), with errors."""
        law = self.need_joint("the marginal of beta")
        return chains.beta_marginal(self.draws, log_prior(law, as_betas(betas)), as_betas(betas))

    @property
    def kl_base_to_target(self) -> Estimate:
        """KL divergence from the base to the target (eq. kl-base-to-target), estimated."""
        self.need_joint("KL divergences")
        return chains.kl_base_to_target(self.draws, self.log_support)

    @property
    def kl_target_to_base(self) -> Estimate:
        """KL divergence from the target to the base, estimated."""
        self.need_joint("KL divergences")
        return chains.kl_target_to_base(self.draws, self.log_support)

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """Every mode that starts or chains have found, heaviest first: its mass, two ways, and how often it was met."""
        if self.mode_table is None:
            return ()
        names, described, number = self.mode_locations, [], len(self.mode_table.location)
        for i in range(number):
            spread = moments(self.pool, np.where(self.basins == i, self.log_weight, -np.inf))
            described.append(({name: names[name][i] for name in names}, *spread))
        with computing_in("float64"):
            basins_of_draws = self._pair(self.basins)[1]
            return Rows(mode_rows(self.mode_table, self.draws, self.log_evidence, basins_of_draws, described))

    @cached_property
    def basins(self) -> np.ndarray:
        """The row of the table of modes that explains each draw of the pool; their number where none does."""
        table = self.mode_table
        return np.zeros(self.log_weight.size, int) if table is None else basins(table, self.positions)

    @property
    def positions(self) -> np.ndarray:
        """The pool's draws as they were sampled: ravelled, unconstrained, one a row."""
        rows = self.draws.position.reshape(-1, self.draws.position.shape[-1])
        return rows if self.states is None else large.joined([self.base_draws.position, rows])

    def numbered(self, mode: int) -> np.ndarray:
        """Which draws of the pool are of "mode 1", "mode 2" and so on, where that mode has any weight."""
        if not (isinstance(mode, int | np.integer) and 1 <= mode <= len(self.modes)):
            raise ThermoclineError(f"mode is {brief(mode)}; result.modes has {len(self.modes)}, numbered from 1.")
        chosen = self.basins == self.modes[mode - 1].row
        if not np.isfinite(self.log_weight[chosen]).any():
            raise ThermoclineError(f"no draw is of mode {mode}; draw more, or give a base that covers it.")
        return chosen

    @cached_property
    @np.errstate(all="ignore")
    def checks(self) -> tuple[Check, ...]:
        """Everything the verdict rests on."""
        return Rows(run_checks(self._context()))

    @property
    def verdict(self) -> Verdict:
        """Whether to trust it. "failed": do not; "suspect": look at the checks; "ok": nothing was found against it."""
        return verdict_of(self.checks)

    def __repr__(self) -> str:
        answer = "no evidence" if self.log_evidence is None else f"log Z = {self.log_evidence}"
        chains, draws = self.draws.log_ratio.shape
        return f"<Result {self.verdict}: {answer}, {chains} chains of {draws} draws>"

    @property
    def cost(self) -> Cost:
        """Seconds and evaluations of the density, by phase."""
        return self.info.cost

    @property
    def search(self) -> SearchRecord | None:
        """How completely modes were looked for, and what may have been missed; None where they were not."""
        return None if self.mode_table is None else self.mode_table.search

    @property
    def caveats(self) -> tuple[str, ...]:
        """What log Z is the integral of, where that is not the model's evidence."""
        return self.info.caveats

    @property
    def _batches(self) -> Batches | None:
        """Independent pieces, where the method knows them beforehand."""
        group = 0 if self.schedule is None else self.schedule.group
        return batches_of_groups(len(self.draws.log_ratio), self.draws.log_ratio.shape[1], group) if group else None

    @property
    def is_joint(self) -> bool:
        """Whether draws are of x and beta together, so that each can be weighted for any beta."""
        return self.law is not None

    @property
    def weighing(self) -> Weighing:
        """How values at the draws become estimates under the target."""
        return Weighing(self.states, self.draws.log_weight_target, self._batches)

    def weighing_of(self, mode: int) -> Weighing:
        """The same under one mode of the target alone."""
        return self.weighing.within(self._pair(self.numbered(mode)))

    def log_weight_of(self, mode: int | None) -> np.ndarray:
        """For one mode of the target, or all of it, of the pool's draws."""
        return self.log_weight if mode is None else np.where(self.numbered(mode), self.log_weight, -np.inf)

    def components(self, most: int | None = None) -> dict[str, Pair]:
        """The first numbers among the parameters, or all, as one would index them: at the draws of both states."""
        components = by_component(self.pool, 1).items()
        return {name: self._pair(values) for name, values in islice(components, most)}

    def need_joint(self, what: str) -> Law:
        """The law of beta, for what needs one."""
        if self.law is not None:
            return self.law
        if self.schedule is None:
            raise ThermoclineError(f"{what} need a tempered run; this one stayed at beta = 1.")
        raise ThermoclineError(f"{what} need draws of x and beta together; {self.info.method} makes none.")

    def _elementwise(self, estimate: Callable[[Pair], Estimate], function: Callable[[Any], Any]) -> Estimate:
        """Of the function's values at the base's draws, (1, draw), and at the chains', (chain, draw)."""
        values = of_draws.map_draws(function, jax.tree.map(lambda name: self.pool[name], self.template))
        if values.shape[:1] != self.log_weight.shape:
            raise ThermoclineError(f"the function {brief(function)} gives no number a draw; map one draw to one.")
        if values.ndim == 1:
            return estimate(self._pair(values))
        axes = values.shape[1:]
        each = [estimate(self._pair(values[(..., *place)])) for place in np.ndindex(axes)]
        return of_draws.stacked_estimates(each, axes)

    def _pair(self, column: np.ndarray) -> Pair:
        """Values at the pool's draws as those at the base's and those at the chains'."""
        base, drawn = np.split(column, [len(column) - self.draws.log_ratio.size])
        return base[None], drawn.reshape(self.draws.log_ratio.shape)

    @cached_property
    def pool(self) -> dict[str, np.ndarray]:
        """Parameters by name: at the base's draws, where these count, then at those of one chain after the other."""
        flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in self.parameters.items()}
        if self.states is None:
            return flat
        return {name: large.joined([self.base_parameters[name], values]) for name, values in flat.items()}

    @property
    def log_weight(self) -> np.ndarray:
        """For the target, of the pool's draws."""
        return self.draws.log_weight_target.ravel() if self.states is None else pooled(self.states.log_weight_target)

    def _context(self) -> Context:
        law, known = self.law, self.mode_table
        prior = None if law is None or ladder_of(law) is not None else partial(log_prior, law)
        return Context(
            self.draws,
            as_sampled(self.unconstrained, self.parameters),
            self.info.has_evidence,
            self.log_evidence,
            self.log_zeta,
            self.log_support,
            prior,
            self.base_draws,
            self.modes,
            None if known is None else Estimate(known.log_total, known.log_total_error, np.inf),
            self.is_joint or not self.info.has_evidence,
            self._batches,
            1.0 if known is None else known.arrived,
            None if known is None else known.tail_index,
            self.states,
            self.info.biases,
        )
