"""Fuzz: thousands of wrong calls, each of which must be refused in a sentence or end in an honest Result.

A refusal is a ThermoclineError of one line that names the argument; a Result is honest if log Z that is no number is
not "ok", and an "ok" one is within six standard errors of the truth where that is known. All else is a fault: another
exception, a minute, silent nonsense. Batches of 100 calls are kept in build/fuzz.jsonl, so that a study that ended
goes on.

    python -m studies.fuzz [--calls 10000] [--kind options]
"""

import argparse
import collections
import faulthandler
import json
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import HealthCheck, given, seed, settings

import thermocline as tc
from studies import fuzz_calls
from studies.fuzz_calls import calls
from studies.fuzz_parts import Call

BATCH = 100
A_MINUTE = 60.0
LONGEST = 600  # characters of a refusal
KEPT = Path("build") / "fuzz.jsonl"


class Ended(NamedTuple):
    """What was called, how it ended, and what is wrong with that."""

    what: str
    ended: str
    fault: str
    seconds: float


def judged(call: Call) -> Ended:
    """Make the call, and see how it ends."""
    began, fault = time.process_time(), ""
    faulthandler.dump_traceback_later(300, exit=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = call.run()
        ended, fault = "answered", _of_answer(answer, call.truth)
    except tc.ThermoclineError as error:
        ended, fault = f"refused: {error}", _of_refusal(str(error), call.names)
    except Exception as error:  # noqa: BLE001 - what the study looks for
        ended = f"{type(error).__name__}: {error}"
        fault = f"{type(error).__name__} at {_place(error)}"
    faulthandler.cancel_dump_traceback_later()
    seconds = time.process_time() - began
    return Ended(call.what, ended, fault or ("a minute" if seconds > A_MINUTE else ""), seconds)


def _of_refusal(said: str, names: tuple[str, ...]) -> str:
    if "\n" in said or len(said) > LONGEST:
        return "not one line"
    return "" if any(name in said for name in names) else "names no argument"


def _of_answer(answer: Any, truth: float | None) -> str:
    """What is dishonest in a Result; other answers are not looked at."""
    evidence, verdict = getattr(answer, "log_evidence", None), getattr(answer, "verdict", None)
    if evidence is None or verdict != "ok":
        return ""
    if not (np.isfinite(evidence.value) and np.isfinite(evidence.standard_error)):
        return f"ok with log Z {evidence}"
    is_far = truth is not None and abs(evidence.value - truth) > 6 * evidence.standard_error + 1e-6
    return f"ok with log Z {evidence}, in truth {truth}" if is_far else ""


def _place(error: BaseException) -> str:
    """The last line of ours that the error went through."""
    places, trace = [], error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "/thermocline/" in name:
            places.append(f"{name.split('/thermocline/')[-1]}:{trace.tb_lineno}")
        trace = trace.tb_next
    return places[-1] if places else "the call itself"


def batch(number: int, size: int = BATCH, kind: str = "calls") -> Iterator[Ended]:
    """The calls of a batch, always the same."""
    found: list[Ended] = []

    @seed(number)
    @settings(max_examples=size, deadline=None, database=None, suppress_health_check=[*HealthCheck])  # pyright: ignore[reportArgumentType]
    @given(getattr(fuzz_calls, kind)() if kind != "calls" else calls())
    def each(call: Call) -> None:
        found.append(judged(call))

    each()
    return iter(found)


def study(num_calls: int, kind: str, kept: Path = KEPT) -> int:
    """Prints what went wrong, by fault, and returns how many did."""
    kept.parent.mkdir(exist_ok=True)
    lines = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {line["batch"] for line in lines if line["kind"] == kind}
    for number in range(num_calls // BATCH):
        if number in done:
            continue
        found = list(batch(number, kind=kind))
        line = {"kind": kind, "batch": number, "number": len(found), "seconds": sum(each.seconds for each in found)}
        line |= {"answered": sum(each.ended == "answered" for each in found)}
        line |= {"faults": [each._asdict() for each in found if each.fault]}
        lines.append(line)
        with kept.open("a") as file:
            print(json.dumps(line), file=file)
        print(f"batch {number}: {len(found)} calls, {len(line['faults'])} faults, {line['seconds']:.0f} s", flush=True)
    mine = [line for line in lines if line["kind"] == kind]
    faults = collections.Counter(fault["fault"] for line in mine for fault in line["faults"])
    for fault, number in faults.most_common():
        one = next(each for line in mine for each in line["faults"] if each["fault"] == fault)
        print(f"{number:4d}  {fault}\n      {one['what'][:200]}\n      {one['ended'][:300]!r}")
    number, answered = sum(line["number"] for line in mine), sum(line["answered"] for line in mine)
    print(f"{number} calls, {answered} answered, {faults.total()} faults")
    return faults.total()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--kind", default="calls", help="a strategy of studies.fuzz_calls alone")
    options = parser.parse_args()
    sys.exit(study(options.calls, options.kind) > 0)
