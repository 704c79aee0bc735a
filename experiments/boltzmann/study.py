"""One machine: its exact moments, the variational approximation, and every method's errors against run time."""

import time
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import thermocline as tc
from experiments.boltzmann.estimates import ends_of, prefix_estimates, repeats_of, squared_errors
from experiments.boltzmann.machine import (
    Machine,
    Relaxation,
    RelaxedMoments,
    enumerate_machine,
    random_machine,
    relax,
    smallest_shift,
)
from experiments.boltzmann.mean_field import matched_base, mean_field_mixture

STEP, MASS = 0.5, 1.0  # of x and of u, in their own units
CHAINS_A_REPEAT, RUNS_A_CHAIN = 10, 10  # annealed runs are as many as chains times this: 100 a repeat
BLACK_BOX = "black box"
seen_dimensions: set[int] = set()  # for which this process has compiled the black box's programs


class Form(NamedTuple):
    """How large the experiment is."""

    num_units: int = 30
    num_machines: int = 10
    num_repeats: int = 10
    repeats_a_call: int = 5
    annealings: tuple[int, ...] = (1000, 5000, 10_000)
    num_rungs: int = 1000
    num_draws: int = 30_000
    methods: tuple[str, ...] = ("simulated tempering", "Gibbs CT", "joint CT")
    has_black_box: bool = True


FULL = Form()
QUICK = Form(num_machines=2, num_repeats=5, annealings=(200,), num_draws=3000, has_black_box=False)


def hmc(num_steps: int) -> tc.HMC:
    """The paper's moves: a fixed step with a unit mass matrix, and no jitter."""
    return tc.HMC(step_size=STEP, num_steps=num_steps, jitter=0.0, scale=1.0)


def methods_of(form: Form) -> dict[str, tuple[Any, int]]:
    """Each method in the paper's setting by name, and its draws a chain."""
    rungs = tc.sigmoidal_betas(form.num_rungs, 4.0)
    tempering = {
        "simulated tempering": tc.GibbsTempering(hmc(20), tc.Ladder(rungs, np.zeros(form.num_rungs)), jumps=False),
        "Gibbs CT": tc.GibbsTempering(hmc(20), tc.Continuous(), jumps=False),
        "joint CT": tc.JointTempering(hmc(20), tc.Continuous(), mass=MASS, jumps=False),
    }
    annealing = {
        annealed_name(number): (tc.AnnealedImportance(hmc(10), tc.sigmoidal_betas(number, 4.0)), RUNS_A_CHAIN)
        for number in form.annealings
    }
    return annealing | {name: (tempering[name], form.num_draws) for name in form.methods}


def annealed_name(number: int) -> str:
    return f"AIS {number}"


def names_of(form: Form) -> list[str]:
    """Every method that a machine is measured with."""
    return [*map(annealed_name, form.annealings), *form.methods, *([BLACK_BOX] if form.has_black_box else [])]


def study(form: Form, index: int, machine: Machine | None, runs: dict[str, Any], keep: Callable[[dict[str, Any]], None]
          ) -> dict[str, Any]:
    """All that is measured on one machine, as `result.json` and the tables use it.

    Methods in `runs` have been measured before; after each of the others `keep` is given all there is.
    """
    relaxation, truth, preparation = prepared(machine or random_machine(form.num_units, index))
    mixture, num_fits = mean_field_mixture(relaxation.machine, index)
    approximation = relaxation.moments(mixture)
    scale = np.sqrt(squared_errors(approximation, truth))
    dimension = relaxation.root.shape[1]
    print(
        f"machine {index}: D = {dimension}, log Z = {truth.log_evidence:.3f}, log ζ - log Z = "
        f"{approximation.log_evidence - truth.log_evidence:+.3f} from {num_fits} mean-field fits; enumerated in "
        f"{preparation['enumeration seconds']:.1f} s and {preparation['enumeration MiB']:.0f} MiB",
        flush=True,
    )
    base, methods = matched_base(relaxation, mixture), methods_of(form)
    known = {
        "dimension": dimension,
        "log_evidence": truth.log_evidence,
        "log_zeta_error": approximation.log_evidence - truth.log_evidence,
        "num_fits": num_fits,
        "variational_rmse": scale.tolist(),
        **preparation,
    }
    for name in names_of(form):
        if name not in runs:
            run = (
                black_box(index, relaxation, truth, scale)
                if name == BLACK_BOX
                else measured(form, index, relaxation.target, base, *methods[name], truth, scale)
            )
            print(f"machine {index}: {name}, {described(run)}", flush=True)
            runs = {**runs, name: run}
            keep({**known, "runs": runs})
    return {**known, "runs": runs}


def prepared(machine: Machine) -> tuple[Relaxation, RelaxedMoments, dict[str, float]]:
    """The relaxation, its exact moments, and what they cost."""
    began = time.perf_counter()
    relaxation = relax(machine, smallest_shift(machine.weights))
    solved = time.perf_counter()
    tracemalloc.start()
    of_units = enumerate_machine(relaxation.machine)
    memory = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    seconds = {"programme seconds": solved - began, "enumeration seconds": time.perf_counter() - solved}
    return relaxation, relaxation.moments(of_units), {**seconds, "enumeration MiB": memory}


def measured(
    form: Form,
    index: int,
    target: tc.Target,
    base: tc.BaseFit,
    method: Any,
    num_draws: int,
    truth: RelaxedMoments,
    scale: np.ndarray,
) -> dict[str, Any]:
    """Errors of one method over the repeats, at numbers of draws up to all of them.

    Several repeats run side by side in a call, each on its own chains, and all methods on equally many. A repeat's
    seconds are its share of the fastest call's sampling time: calls do the same work, and a busy machine slows some.
    """
    ends, squares, seconds, last = ends_of(num_draws), [], [], None
    for call in range(form.num_repeats // form.repeats_a_call):
        last = tc.sample(
            target,
            seed=1000 * index + call,
            base=base,
            method=method,
            num_chains=CHAINS_A_REPEAT * form.repeats_a_call,
            num_warmup=0,
            num_draws=num_draws,
            progress=False,
        )
        seconds.append(last.cost.seconds.sampling / form.repeats_a_call)
        for repeat in repeats_of(last.draws, CHAINS_A_REPEAT):
            estimates = prefix_estimates(repeat, base.log_zeta, ends)
            squares.append([squared_errors(estimate, truth) for estimate in estimates])
    assert last is not None, "there is at least one call"
    return {
        "draws": ends,
        "rmse": (np.sqrt(np.mean(squares, axis=0)) / scale).tolist(),
        "seconds": min(seconds),
        "gradients": int(last.draws.num_gradients.sum()) // form.repeats_a_call,
        "acceptance": float(last.draws.acceptance.mean()),
    }


def black_box(index: int, relaxation: Relaxation, truth: RelaxedMoments, scale: np.ndarray) -> dict[str, Any]:
    """One call of `tc.sample` with nothing but the target: base, law and length are its own. Seconds are the call's."""
    began = time.perf_counter()
    result = tc.sample(relaxation.target, seed=index, progress=False)
    seconds, dimension = time.perf_counter() - began, relaxation.root.shape[1]
    num_draws = result.draws.log_ratio.shape[1]
    estimate = prefix_estimates(result.draws, result.log_zeta, [num_draws])[-1]
    is_cold = dimension not in seen_dimensions
    seen_dimensions.add(dimension)
    answer = result.log_evidence
    assert answer is not None, "the default method has evidence"
    return {
        "draws": [num_draws],
        "rmse": [(np.sqrt(squared_errors(estimate, truth)) / scale).tolist()],
        "seconds": seconds,
        "is_cold": is_cold,
        "gradients": result.cost.evaluations.total,
        "acceptance": float(result.draws.acceptance.mean()),
        "verdict": result.verdict,
        "error_in_standard_errors": (answer.value - truth.log_evidence) / answer.standard_error,
    }


def described(run: dict[str, Any]) -> str:
    log_z, mean, covariance = run["rmse"][-1]
    errors = f"{log_z:.3f} (log Z), {mean:.3f} (mean), {covariance:.3f} (covariance)"
    return f"{run['seconds']:.1f} s a repeat, relative RMSE {errors}"
