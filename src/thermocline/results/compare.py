"""Models side by side: evidences, Bayes factors and model probabilities, with errors; or a reason not to."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from thermocline.records import Estimate
from thermocline.results.output import Tables
from thermocline.results.result import Result
from thermocline.support import fingerprint, special
from thermocline.support.errors import ThermoclineError, brief
from thermocline.support.keywords import suggesting
from thermocline.support.optional import require
from thermocline.support.options import is_number
from thermocline.support.tables import Section

STRENGTHS = {1.0: "not worth more than a bare mention", 3.0: "positive", 5.0: "strong", np.inf: "very strong"}
SCALE = "Strength of evidence by Kass and Raftery (1995), Journal of the American Statistical Association 90, 773-795."
REASONS = ("verdict", "data", "caveats")  # not to compare; each can be overridden by its name


@suggesting
def compare(
    results: Mapping[str, Result], *, prior: Mapping[str, float] | None = None, despite: Collection[str] = ()
) -> "Comparison":
    """Evidences of models of the same data, by name; `prior` weights the models, equally unless given.

    Refuses when a verdict is not "ok", when the data differ, or when an evidence is not the model's own (improper or
    unnormalised pieces). `despite` names the reasons to go on all the same: "verdict", "data", "caveats".
    """
    _check_results(results)
    despite = {despite} if isinstance(despite, str) else set(despite)
    if unknown := sorted(despite - set(REASONS)):
        raise ThermoclineError(f"despite names {', '.join(unknown)}; choose among {', '.join(REASONS)}.")
    against = objections(results)
    for reason, sentence in against.items():
        if reason not in despite:
            raise ThermoclineError(f"{sentence} To compare all the same: despite={brief(reason)}.")
    evidences = {name: result.log_evidence for name, result in results.items() if result.log_evidence is not None}
    notes = [f"Compared although: {sentence}" for sentence in against.values()]
    if all(result.info.observations == fingerprint.of_arrays(None) for result in results.values()):
        notes.append("The targets were given no data, so it could not be checked that they are about the same.")
    return Comparison(evidences, _log_weights(list(results), prior), tuple(notes))


@dataclass(frozen=True)
class Comparison(Tables):
    """Log evidences by model, and what follows from them; the estimates of different models are independent."""

    log_evidences: dict[str, Estimate]
    log_prior: dict[str, float]  # of the models, normalised
    notes: tuple[str, ...] = ()

    @property
    def ranking(self) -> list[str]:
        """The models, most probable first."""
        return sorted(self.log_evidences, key=lambda name: -self.log_evidences[name].value - self.log_prior[name])

    def log_bayes_factor(self, model: str, other: str) -> Estimate:
        """Log Z of `model` less that of `other`."""
        first, second = (self._evidence(name) for name in (model, other))
        less = Estimate(-second.value, second.standard_error, second.dof)
        return Estimate(0.0, 0.0, np.inf) if model == other else first + less

    def bayes_factor(self, model: str, other: str, probability: float = 0.95) -> tuple[float, float, float]:
        """Z of `model` over that of `other`, and the ends of its confidence interval."""
        estimate = self.log_bayes_factor(model, other)
        with np.errstate(over="ignore"):
            value, low, high = np.exp([estimate.value, *estimate.interval(probability)])
        return float(value), float(low), float(high)

    def strength(self, model: str, other: str) -> str:
        """A word for the evidence for `model` against `other`, by Kass and Raftery; two where the interval has both."""
        low, high = self.log_bayes_factor(model, other).interval()
        if low < 0:
            return "undecided" if high > 0 else "against it"
        words = [next(word for limit, word in STRENGTHS.items() if log < limit) for log in (low, high)]
        return " to ".join(dict.fromkeys(words))

    def log_odds(self, model: str) -> Estimate:
        """Log of the model's posterior probability over that of all others together.

        By the delta method its variance is that of the model's own log Z, plus those of the others weighted
        by the squares of their shares among themselves.
        """
        own = self._evidence(model) + self.log_prior[model]
        others = [name for name in self.log_evidences if name != model]
        logs = np.array([self.log_evidences[name].value + self.log_prior[name] for name in others])
        total = float(np.logaddexp.reduce(logs))
        for name, log in zip(others, logs, strict=True):
            estimate = self.log_evidences[name]
            own = own + Estimate(0.0, float(np.exp(log - total)) * estimate.standard_error, estimate.dof)
        return own + -total

    def probability(self, model: str) -> Estimate:
        """Posterior probability of the model, with its error by the delta method."""
        odds = self.log_odds(model)
        value = float(special.expit(odds.value))
        return Estimate(value, value * float(special.expit(-odds.value)) * odds.standard_error, odds.dof)

    def probability_interval(self, model: str, probability: float = 0.95) -> tuple[float, float]:
        """A confidence interval of the model's probability, made on the scale of log odds: it stays within 0 and 1."""
        low, high = self.log_odds(model).interval(probability)
        return float(special.expit(low)), float(special.expit(high))

    @property
    def probabilities(self) -> dict[str, Estimate]:
        """Posterior probability of every model."""
        return {name: self.probability(name) for name in self.log_evidences}

    def as_dict(self) -> dict[str, Any]:
        """All numbers, for scripts."""
        best = self.ranking[0]
        return {
            "models": {
                name: {
                    "log_evidence": vars(self.log_evidences[name]),
                    "log_bayes_factor_to_best": vars(self.log_bayes_factor(name, best)),
                    "bayes_factor_of_best": self.bayes_factor(best, name),
                    "strength": None if name == best else self.strength(best, name),
                    "prior": float(np.exp(self.log_prior[name])),
                    "probability": vars(self.probability(name)),
                    "probability_interval": self.probability_interval(name),
                }
                for name in self.ranking
            },
            "notes": list(self.notes),
        }

    def plot(self) -> Any:
        """Log evidences relative to the best, and probabilities: two axes of Matplotlib."""
        require("report", "matplotlib")
        from thermocline.report.plots import plot_comparison

        return plot_comparison(self)

    def __repr__(self) -> str:
        best = self.ranking[0]
        return f"<Comparison of {len(self.log_evidences)} models: {best} has probability {self.probability(best)}>"

    def _tables(self) -> list[Section]:
        best = self.ranking[0]
        rows = []
        for name in self.ranking:
            factor = "best" if name == best else str(self.log_bayes_factor(name, best))
            prior, probability = f"{np.exp(self.log_prior[name]):.3g}", f"{self.probability(name).value:.3g}"
            low, high = self.probability_interval(name)
            rows.append((name, str(self.log_evidences[name]), factor, prior, probability, f"{low:.3g} to {high:.3g}"))
        columns = ("model", "log Z", "log Bayes factor", "prior", "probability", "95% interval")
        factors = [self._factor_row(best, name) for name in self.ranking[1:]]
        columns_of_factors = ("", "Bayes factor", "95% interval", "evidence")
        return [
            Section("Models", columns, rows, self.notes),
            Section("Bayes factors of the best", columns_of_factors, factors, (SCALE,)),
        ]

    def _factor_row(self, best: str, other: str) -> tuple[str, ...]:
        value, low, high = (f"{factor:.3g}" for factor in self.bayes_factor(best, other))
        return f"{best} over {other}", value, f"{low} to {high}", self.strength(best, other)

    def _evidence(self, name: str) -> Estimate:
        if name not in self.log_evidences:
            raise ThermoclineError(f"there is no model {name!r}; there are {', '.join(self.log_evidences)}.")
        return self.log_evidences[name]


def objections(results: Mapping[str, Result]) -> dict[str, str]:
    """Reasons not to compare, in sentences, by what would override them."""
    found = {}
    doubtful = [f"{name} ({result.verdict})" for name, result in results.items() if result.verdict != "ok"]
    if doubtful:
        found["verdict"] = f"the verdict is not ok for {', '.join(doubtful)}; see result.checks."
    if len({result.info.observations for result in results.values()}) > 1:
        found["data"] = (
            f"the data of {', '.join(results)} are not the same, and evidences of different data cannot be compared."
        )
    caveats = [f"{name}: {caveat}" for name, result in results.items() for caveat in result.info.caveats]
    if caveats:
        found["caveats"] = f"not every evidence is the model's own ({'; '.join(caveats)})."
    return found


def _check_results(results: Any) -> None:
    if not isinstance(results, Mapping) or len(results) < 2:
        raise ThermoclineError("compare takes a dict of at least two results by model name: {'linear': result, ...}.")
    for name, result in results.items():
        if not isinstance(result, Result):
            raise ThermoclineError(f"{name} is a {type(result).__name__}; compare takes results of tc.sample.")
        if result.log_evidence is None:
            raise ThermoclineError(f"{name} has no evidence: it is an untempered run; use a tempered method.")
        if not np.isfinite(result.log_evidence.value):
            raise ThermoclineError(f"the log evidence of {name} is {result.log_evidence.value}; it cannot be compared.")


def _log_weights(names: list[str], prior: Mapping[str, float] | None) -> dict[str, float]:
    if not (prior is None or isinstance(prior, Mapping)):
        raise ThermoclineError(f"prior is {brief(prior)}; give a dict of weights by model name.")
    weights = dict.fromkeys(names, 1.0) if prior is None else dict(prior)
    if set(weights) != set(names):
        raise ThermoclineError(f"prior weights {', '.join(map(str, weights))}, but the models are {', '.join(names)}.")
    for name, weight in weights.items():
        if not (is_number(weight) and 0 < weight < np.inf):
            raise ThermoclineError(
                f"the prior weight of {name} is {brief(weight)}; give a positive number, or leave it out."
            )
    total = sum(weights.values())
    return {name: float(np.log(weights[name] / total)) for name in names}
