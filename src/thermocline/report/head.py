"""The first screen of the page, in words that need no statistician."""

from thermocline.checks import Check, Verdict
from thermocline.records import Estimate
from thermocline.report.page import Head, shortened
from thermocline.report.summary import MEANING, interval_of
from thermocline.results.many import ManyResults
from thermocline.results.result import Result

LONGEST = 160  # characters of the data's shapes


def head_of_one(result: Result) -> Head:
    info, number = result.info, len(result.modes)
    chains, draws = result.draws.log_ratio.shape
    data = (f"data: {shortened(info.data, LONGEST)}",) if info.data else ()
    found = "not looked for" if result.search is None else f"{number} mode{'' if number == 1 else 's'} found"
    looked = "The table of modes was left out." if result.search is None else str(result.search)
    return Head(
        info.model or "Posterior",
        (*((info.date,) if info.date else ()), *data, f"{chains} chains of {draws:,} draws"),
        _answer(result.log_evidence, _meaning(result)),
        (
            _verdict("Is the estimate sound, for the modes that are known?", result.verdict, result.checks),
            ("Were all modes found?", found, looked),
        ),
        tuple(filter(None, (info.cut_short, *(f"Caveat: {caveat}" for caveat in info.caveats)))),
    )


def head_of_many(results: ManyResults) -> Head:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in results.verdict_counts.items())
    meaning = "the sum of the log evidences of all targets"
    return Head(
        f"{len(results)} targets",
        (results.runs.settings.method_name,),
        _answer(results.log_evidence, meaning),
        (
            _verdict("Is the joint estimate sound?", results.verdict, results.checks),
            ("And each by itself?", counts, "Verdicts on the targets one by one; the worst are listed below."),
        ),
    )


def _meaning(result: Result) -> str:
    """What log Z is, in this model."""
    if result.info.caveats:
        return "the logarithm of the integral of the density as it was written (see the caveats)"
    if result.info.data:
        return "the logarithm of the evidence (how probable the data are under this model, averaged over its prior)"
    return "the logarithm of the integral of the density (of the evidence, where that is prior times likelihood)"


def _answer(estimate: Estimate | None, meaning: str) -> str:
    """What log Z is, and how sure."""
    if estimate is None:
        return "These are draws of the posterior; the method gives no evidence."
    if estimate.status == "unknown":
        return f"log Z, {meaning}, is {estimate}: this run cannot say how far off it may be."
    low, high = interval_of(estimate)
    return f"log Z, {meaning}, is {estimate}: with 95% confidence it lies between {low} and {high}."


def _verdict(question: str, verdict: Verdict, checks: tuple[Check, ...]) -> tuple[str, str, str]:
    bad = sum(not check.passed for check in checks)
    counted = f"{len(checks)} checks were made, and {f'{bad} did not pass' if bad else 'all passed'}."
    return question, verdict, f"{MEANING[verdict][0].upper()}{MEANING[verdict][1:]}. {counted}"
