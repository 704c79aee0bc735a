"""The `thermocline` command: run a model, and look at what a run left."""

import shlex
import sys
import traceback
from collections.abc import Callable, Iterable
from enum import StrEnum
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import thermocline as tc
from thermocline.auto import FITS, FITS_OF_DRAWS
from thermocline.bases import BASES
from thermocline.checks import CHECKS
from thermocline.cli import demo as demonstration
from thermocline.cli import doctor as doctors
from thermocline.cli.stopping import status_of, stoppable
from thermocline.cli.targets import target_of
from thermocline.engine.checkpoint import STATE
from thermocline.methods import METHODS
from thermocline.report.summary import as_dict, to_json
from thermocline.support.errors import ThermoclineError
from thermocline.support.tables import Section, sections_text

FAILED, BAD_INPUT, OUR_FAULT = 1, 2, 3  # exit statuses; a run that is ok or suspect ends with 0
STATUSES = (
    "Exit status: 0 for a verdict of ok or suspect and for what only prints; 1 for a verdict of failed; 2 for a wrong "
    "option, file or model; 3 for an error of thermocline's own; 130 when interrupted, 143 by SIGTERM."
)


class Commands(TyperGroup):
    """Bad input ends with its sentence, not with a traceback; a result that failed, with a status of its own."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with stoppable():
                result = super().invoke(ctx)
        except KeyboardInterrupt as stop:
            say(str(stop) or "Interrupted.")
            raise typer.Exit(status_of(stop)) from None
        except (ThermoclineError, ValueError, OSError) as error:
            say(f"error: {error}")
            raise typer.Exit(BAD_INPUT) from error
        except RuntimeError as error:
            if isinstance(error, typer.Exit | typer.Abort):
                raise
            raise self._ours() from error
        except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError) as error:
            raise self._ours() from error
        if result is not None and result.verdict == "failed":
            raise typer.Exit(FAILED)
        return result

    def _ours(self) -> typer.Exit:
        traceback.print_exc()
        say("error: this should not happen; please report it with the output of `thermocline doctor`.")
        return typer.Exit(OUR_FAULT)


app = typer.Typer(
    name="thermocline",
    cls=Commands,
    help="Posterior draws from all modes, and the evidence with an error bar.\n\n"
    "Start with `thermocline demo`; `thermocline --install-completion` completes words in your shell.\n\n" + STATUSES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Seed = Annotated[int, typer.Option(help="The same seed gives the same answer.")]
Progress = Annotated[bool, typer.Option(help="Show a progress bar, in a terminal.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts instead of a table.")]
RunFile = Annotated[Path, typer.Argument(metavar="RUN.nc", help="A file that `run --out` or result.save wrote.")]


def starting(names: Iterable[str]) -> Callable[[str], list[str]]:
    """For completion in a shell."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


REGISTRIES: dict[str, dict[str, Any]] = {
    "methods": METHODS,
    "bases": BASES,
    "fits": FITS | FITS_OF_DRAWS,
    "checks": CHECKS,
}
Listed = StrEnum("Listed", list(REGISTRIES))  # what `list` can list


@app.command()
def run(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="model.stan; model.py, or model.py:NAME, or package.module:NAME, that is a tc.Target, a PyMC model, a "
            "NumPyro model, or a function without arguments that makes one of the first two.",
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Write the whole result here, as netCDF.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write the report here, as one HTML page.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Of a Stan file its data (.json); of a NumPyro model its arguments by name (.json, .npz); of a "
            "tc.Target the data of many targets: arrays with a leading axis, a row for each."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Keep the run in this folder; the same command then resumes it.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="How to explore: see `thermocline list methods`.", autocompletion=starting(METHODS))
    ] = "gibbs",
    base: Annotated[
        str, typer.Option(help="How to find the base: see `thermocline list fits`.", autocompletion=starting(FITS))
    ] = "auto",
    seed: Seed = 0,
    target_error: Annotated[
        float | None,
        typer.Option(help="Stop when the standard error of log Z is below this (0.05 unless --num-draws is given)."),
    ] = None,
    num_draws: Annotated[int | None, typer.Option(help="Or: draws a chain, however large the error.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Spend no more time than this.")] = None,
    max_evaluations: Annotated[float | None, typer.Option(help="Evaluate the density no more often.")] = None,
    num_chains: Annotated[
        int | None, typer.Option(help="Chains, all advanced together; 16, or 4 a target with --data.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Share the work out to so many processes, by Dask.")] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Or to the workers of this Dask scheduler: tcp://host:8786.")
    ] = None,
    progress: Progress = True,
    as_json: AsJson = False,
) -> Any:
    """Sample a model and print the answer.

    `thermocline run model.py --out run.nc --report run.html`; `thermocline run model.stan --data data.json`. A
    tc.Target with `--data` is run once for each row of the data, by the names that its own data have.
    """
    options: dict[str, Any] = {"num_draws": num_draws, "target_error": target_error, "seed": seed}
    options |= {"method": chosen("method", method, METHODS)(), "checkpoint": checkpoint, "progress": progress}
    options |= {} if num_chains is None else {"num_chains": num_chains}
    limits = {"max_seconds": max_seconds, "max_evaluations": max_evaluations}
    options |= {name: limit for name, limit in limits.items() if limit is not None}
    options |= {"workers": workers if scheduler is None else scheduler}
    fit = None if base == "auto" else chosen("fit", base, FITS)
    writable(out, report)
    result = sampled(*target_of(model, data), fit, options)
    if out is not None:
        result.save(out)
    if report is not None:
        result.report(report)
    show(result, as_json)
    return result


def sampled(target: tc.Target, data: Any, fit: Any, options: dict[str, Any]) -> Any:
    """The result, of one target or of many; an interrupted run says how to go on."""
    if data is not None and fit is not None:
        raise ThermoclineError("with --data a base is looked for by `auto`; leave --base out.")
    if data is not None and not options.keys().isdisjoint({"max_seconds", "max_evaluations"}):
        raise ThermoclineError("many targets have no --max-seconds or --max-evaluations; leave them out.")
    try:
        if data is None:
            return tc.sample(target, base=fit, **options)
        return tc.sample_many(target, data, **options)
    except KeyboardInterrupt as stop:
        raise type(stop)(how_to_resume(options["checkpoint"])) from None


@app.command()
def summary(run_file: RunFile, as_json: AsJson = False) -> Any:
    """Print the summary of a saved run."""
    result = tc.load(run_file)
    show(result, as_json)
    return result


@app.command()
def report(
    run_file: RunFile,
    out: Annotated[Path | None, typer.Option(help="Where to write the page; RUN.html unless given.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a page that is there.")] = False,
) -> Any:
    """Write the report of a saved run beside it: one HTML page to look at and to send."""
    page = run_file.with_suffix(".html") if out is None else out
    writable(page)
    result = tc.load(run_file)
    if page.exists() and not force:
        if not sys.stdin.isatty():
            raise ThermoclineError(f"{page} exists already; write over it with --force, or elsewhere with --out.")
        typer.confirm(f"{page} exists already. Write over it?", abort=True, err=True)
    say(f"{result.report(page)}")
    return result


@app.command()
def compare(
    run_files: Annotated[list[Path], typer.Argument(metavar="RUN.nc...", help="Two or more saved runs.")],
    prior: Annotated[str | None, typer.Option(help="Prior weights in the order of the runs: 1,1,2.")] = None,
    despite: Annotated[
        list[str] | None, typer.Option(help="Compare all the same: verdict, data or caveats; may be repeated.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write the figure here (.svg, .png, .pdf).")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare models by their evidences: Bayes factors and probabilities, named by the files."""
    names = distinct_names(run_files)
    results = {name: tc.load(path) for name, path in zip(names, run_files, strict=True)}
    comparison = tc.compare(results, prior=weights_of(prior, names), despite=despite or ())
    if plot is not None:
        writable(plot)
        comparison.plot()[0].figure.savefig(plot)
    print(to_json(comparison.as_dict()) if as_json else comparison.summary())


@app.command(name="list")
def list_(what: Annotated[Listed, typer.Argument(help="Which registry.")], as_json: AsJson = False) -> None:
    """List the methods, bases, fits or checks, each with a sentence."""
    rows = {name: cleandoc(item.__doc__ or "").split("\n")[0] for name, item in REGISTRIES[what].items()}
    print(to_json(rows) if as_json else sections_text([Section("", (), list(rows.items()))]))


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder for figure, report and run.")] = Path("thermocline-demo"),
    seed: Seed = 0,
    progress: Progress = True,
    as_json: AsJson = False,
) -> Any:
    """Ask a question whose answer is known: what plain HMC says, what thermocline says, and both in a picture."""
    say(demonstration.QUESTION)
    runs = demonstration.sampled(seed, progress, say)
    print(to_json(as_dict(runs.tempered)) if as_json else demonstration.told(runs))
    for line in demonstration.written(runs, out):
        say(line)
    return runs.tempered


@app.command()
def doctor() -> None:
    """Say what is installed, on which machine, and where things are kept."""
    print(sections_text(doctors.tables()))


def say(text: str) -> None:
    """To people, so that standard output holds the answer alone."""
    print(text, file=sys.stderr)


def show(result: Any, as_json: bool) -> None:
    print(to_json(as_dict(result)) if as_json else result.summary())


def chosen(kind: str, name: str, among: dict[str, Any]) -> Any:
    if name not in among:
        raise ThermoclineError(f"there is no {kind} {name!r}; choose among {', '.join(among)}.")
    return among[name]


def writable(*paths: Path | None) -> None:
    """Found out before a long run, not after it."""
    for path in paths:
        if path is not None and not path.resolve().parent.is_dir():
            raise ThermoclineError(f"the folder of {path} does not exist.")


def how_to_resume(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return "Interrupted, and nothing was kept. With --checkpoint DIR a run can be resumed."
    if not list(checkpoint.rglob(STATE)):
        return "Interrupted before the first steps of the chains; the same command starts anew."
    again = shlex.join(["thermocline", *sys.argv[1:]])
    return f"Interrupted. The run is kept in {checkpoint}; to resume it:\n  {again}"


def distinct_names(paths: list[Path]) -> list[str]:
    """Files by their stems, or by their whole paths where stems are not distinct."""
    stems = [path.stem for path in paths]
    return stems if len(set(stems)) == len(stems) else [str(path) for path in paths]


def weights_of(text: str | None, names: list[str]) -> dict[str, float] | None:
    if text is None:
        return None
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        weights = []
    if len(weights) != len(names):
        raise ThermoclineError(f"--prior is {text!r}; give {len(names)} numbers with commas between them.")
    return dict(zip(names, weights, strict=True))
