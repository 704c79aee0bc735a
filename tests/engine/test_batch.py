"""One engine: a target alone is `sample`'s run; company, place, rest, runners and kills change none of its draws."""

import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path as FilePath

import jax
import numpy as np
import pytest

import thermocline as tc
from tests.engine.test_loop import python
from tests.test_sample_many import TARGET, assert_same, data_of, encoder, run
from thermocline.checks.stopping import is_sound
from thermocline.engine.checkpoint import Checkpoint
from thermocline.engine.explore import explore_batch
from thermocline.engine.given import paths_from
from thermocline.engine.plan import Sizes, lengths_of
from thermocline.engine.progress import Silent
from thermocline.records import Draws
from thermocline.support.precision import computing_in, to_numpy
from thermocline.support.runner import in_process

BETAS = tc.sigmoidal_betas(6)
SIZED = {
    "gibbs": tc.GibbsTempering(),
    "joint": tc.JointTempering(),
    "simulated": tc.SimulatedTempering(betas=BETAS),
    "NUTS": tc.GibbsTempering(tc.NUTS(max_doublings=3)),
    "parallel": tc.ParallelTempering(num_replicas=4),
    "annealed": tc.AnnealedImportance(betas=BETAS),
    "transitions": tc.TemperedTransitions(num_temperatures=5),
    "sequential": tc.SequentialMonteCarlo(num_particles=8),
    "untempered": tc.Untempered(),
    "extended": tc.experimental.ExtendedHamiltonian(),
    "adiabatic": tc.experimental.AdiabaticMonteCarlo(),
}
SLOW = {"simulated", "NUTS", "transitions", "sequential", "extended", "adiabatic"}


def one_datum(place=0):
    return {name: leaf[place] for name, leaf in data_of().items()}


def alone(**options):
    """`sample` of the first of `data_of`, with the base that `encoder` gives it."""
    datum = one_datum()
    base = tc.Gaussian({"x": datum["mean"] + 0.4, "y": np.asarray(0.3)}, 1.3 * np.append(datum["widths"], 1.0))
    arguments = {"seed": 1, "num_chains": 4, "progress": False, "search": False, **options}
    return tc.sample(replace(TARGET, data=datum), base=base, **arguments)


def first_of(data):
    return {name: leaf[:1] for name, leaf in data.items()}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in SIZED]
)
def test_many_of_one_target_is_the_run_of_sample(name):
    """Every method whose sizes are given, to rounding, until a Metropolis test flips by it."""
    options = {"method": SIZED[name], "num_warmup": 0, "num_draws": 32}
    one, many = alone(**options), run(first_of(data_of()), **options)[0]
    for field in ("position", "inverse_temperature", "log_ratio", "log_weight_target", "acceptance"):
        expected, actual = (getattr(result.draws, field)[:, :20] for result in (one, many))
        np.testing.assert_allclose(actual, expected, rtol=1e-8, atol=1e-8, err_msg=field)
    assert np.array_equal(one.draws.num_gradients[:, :20], many.draws.num_gradients[:, :20])


def test_warm_up_begins_as_in_sample_and_ends_with_the_same_answer():
    one, many = alone(num_warmup=200, num_draws=400), run(first_of(data_of()), num_warmup=200, num_draws=400)[0]
    error = np.hypot(one.log_evidence.standard_error, many.log_evidence.standard_error)
    assert abs(one.log_evidence.value - many.log_evidence.value) < 4 * error
    assert one.base_draws.position == pytest.approx(many.base_draws.position, rel=1e-12)
    assert one.cost.evaluations.warmup == pytest.approx(many.cost.evaluations.warmup, rel=0.1)


def explored(places, seeds, *, runner=in_process, size=4, method=None):
    """The engine itself on some of the data, with seeds that stay with their targets."""
    with computing_in("float64"):
        data = {name: np.asarray(leaf)[places] for name, leaf in data_of().items()}
        target = replace(TARGET, initial_position=to_numpy(TARGET.initial_position))
        paths = paths_from(encoder, target, data, size, "float64")
        chosen = tc.GibbsTempering() if method is None else method
        lengths, sizes = lengths_of(chosen, 4, 40, 30, None, is_sound), Sizes(size, 64)
        return explore_batch(
            3, np.asarray(seeds, np.uint32), paths, chosen, lengths, sizes, Silent(), lambda paths: None, runner=runner
        )


def draws_at(explored, place) -> Draws:
    return explored.outcomes.drawn.of_target(place)


def assert_same_draws(first: Draws, second: Draws):
    for name, one, other in zip(Draws._fields, first, second, strict=True):
        assert np.array_equal(one, other), name


def test_place_and_neighbours_change_no_draw():
    """Bit for bit: another place in its block, another block, other neighbours."""
    places = np.arange(8)
    first = explored(places, 10 + places)
    turned = np.array([5, 2, 7, 0, 9, 8, 1, 3])
    second = explored(turned, 10 + turned)
    for place, target in enumerate(turned):
        if target < 8:
            assert_same_draws(draws_at(first, target), draws_at(second, place))


def test_any_runner_gives_the_same_bits():
    """Blocks are pure functions: in any order, in threads, computed twice."""

    def threads(function, blocks):
        def in_precision(block):
            with computing_in("float64"):
                return function(block)

        with ThreadPoolExecutor(2) as pool:
            return iter(list(pool.map(in_precision, list(blocks)[::-1]))[::-1])

    def twice(function, blocks):
        for block in blocks:
            function(block)
            yield function(block)

    places = np.arange(8)
    here = explored(places, 10 + places)
    for runner in (threads, twice):
        there = explored(places, 10 + places, runner=runner)
        for place in places:
            assert_same_draws(draws_at(here, place), draws_at(there, place))


def test_a_block_of_which_all_rest_is_skipped():
    """Targets of one block climb in fewer rounds than those of the other."""
    sizes = []

    def counting(function, blocks):
        blocks = list(blocks)
        sizes.append(len(blocks))
        return map(function, blocks)

    places = np.arange(8)
    explored(places, 10 + places, runner=counting)
    assert set(sizes) == {1, 2}


@pytest.fixture(scope="module")
def stopped():
    return run(data_of(), num_draws=200, target_error=0.012)


def test_a_target_that_has_its_error_rests(stopped):
    drawn = stopped.runs.by_target.num_draws
    assert set(drawn) <= {200 * 2**k for k in range(8)}
    assert len(set(drawn)) > 1
    assert np.all(stopped.log_evidences.standard_error <= 0.012)
    assert "draws a target" in stopped.summary()
    assert stopped.stacked("log_ratio").shape == (10, 4, drawn.max())


def test_who_rests_changes_no_draw_of_the_others(stopped):
    longest = run(data_of(), num_draws=int(stopped.runs.by_target.num_draws.max()))
    for place, number in enumerate(stopped.runs.by_target.num_draws):
        for one, other in zip(stopped[place].draws, longest[place].draws, strict=True):
            assert np.array_equal(one, other[:, :number])


def test_a_run_of_many_can_go_on(stopped):
    """As far as a longer run would have come, also from where targets ended at different steps."""
    longer = tc.extend(stopped, num_draws=50, progress=False)
    drawn = stopped.runs.by_target.num_draws
    assert np.array_equal(longer.runs.by_target.num_draws, drawn + 50)
    reference = run(data_of(), num_draws=int(drawn.max()) + 50)
    for place in range(len(stopped)):
        for one, other in zip(longer[place].draws, reference[place].draws, strict=True):
            assert np.array_equal(one, other[:, : drawn[place] + 50])
    assert np.all(longer.log_evidences.standard_error < 0.03)


def test_a_checkpoint_changes_no_draw_and_holds_them(stopped, tmp_path):
    stored = run(data_of(), num_draws=200, target_error=0.012, checkpoint=tmp_path, chunk_size=33)
    for place in range(len(stopped)):
        assert_same(stored[place], stopped[place])
    chunks = [chunk for part in stored.runs.parts for chunks in part.explored.outcomes.drawn.chunks for chunk in chunks]
    assert all(isinstance(chunk.read("position")[0], np.memmap) for chunk in chunks)
    files = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.npz")}
    assert_same(run(data_of(), num_draws=200, target_error=0.012, checkpoint=tmp_path)[3], stopped[3])
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.npz")} == files
    with pytest.raises(tc.CheckpointError, match="data, log zeta differ"):
        run(data_of() | {"constant": np.ones(10)}, num_draws=200, target_error=0.012, checkpoint=tmp_path)


@pytest.mark.parametrize("method", [tc.GibbsTempering(), tc.ParallelTempering(num_replicas=4)])
def test_a_run_that_is_cut_off_resumes_to_the_same_draws(method, tmp_path, monkeypatch):
    """In two groups of blocks; the second method has a pilot, whose checkpoint lies aside."""
    monkeypatch.setattr("thermocline.api_many.BLOCKS_AT_ONCE", 1)
    options = {"method": method, "num_warmup": 80, "num_draws": 60, "group_size": 8}
    whole, store = run(data_of(), **options), Checkpoint.store
    for number in (2, 5, 7, 6):
        count = iter(range(number))

        def interrupted(self, *arguments, count=count):
            store(self, *arguments)
            if next(count, None) is None:
                raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Checkpoint, "store", interrupted)
            with pytest.raises(KeyboardInterrupt):
                run(data_of(), **options, checkpoint=tmp_path, chunk_size=11)
    resumed = run(data_of(), **options, checkpoint=tmp_path, chunk_size=7)
    for place in range(len(whole)):
        assert_same(resumed[place], whole[place])


def many_job(number, folder=None):
    """Targets enough for several groups of blocks."""
    data = {name: np.resize(leaf, (number, *leaf.shape[1:])) for name, leaf in data_of().items()}
    return run(data, num_warmup=40, num_draws=60, checkpoint=folder)


def killed_at_random(number, folder: FilePath, cache, seconds):
    """Start the run in a process, and kill it without warning some time after its first state."""
    code = f"from tests.engine.test_batch import many_job; many_job({number}, {str(folder)!r})"
    process = python(code, cache=cache)
    while not list(folder.rglob("state.npz")) and process.poll() is None:
        time.sleep(0.002)
    time.sleep(seconds)
    process.kill()
    output, _ = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), output
    return process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("number", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_resumes_to_the_same_draws(number, tmp_path):
    generator, folder = random.Random(number), tmp_path / "checkpoint"
    kills = [
        killed_at_random(number, folder, str(tmp_path / "cache"), generator.uniform(0, 0.002 * number))
        for _ in range(1 if number < 1000 else 3)
    ]
    assert kills[0]
    resumed, whole = many_job(number, folder), many_job(number)
    for name in ("position", "log_weight_target", "num_gradients"):
        assert np.array_equal(resumed.stacked(name), whole.stacked(name)), name
    assert np.array_equal(resumed.log_evidences.value, whole.log_evidences.value)


def test_one_program_serves_all_blocks_and_phases(caplog):
    with jax.log_compiles():
        run({name: np.resize(leaf, (7, *leaf.shape[1:])) for name, leaf in data_of().items()}, group_size=3)
    compiled = [record.getMessage() for record in caplog.records if "XLA compilation of jit(" in record.getMessage()]
    assert sum("jit(advance)" in message for message in compiled) == 1
    assert not [message for message in compiled if "tuning" in message or "adapt" in message]


def test_without_a_base_each_target_gets_a_search():
    """Two modes for some and one for others: bases of different shapes, in one call."""

    def log_density(x, datum):
        ends = jax.numpy.stack([x - datum["shift"], x + datum["shift"]])
        return jax.nn.logsumexp(-0.5 * jax.numpy.sum(ends**2, axis=-1)) + datum["constant"]

    data = {"shift": np.array([[0.0, 0.0], [5.0, 1.0], [0.0, 0.0]]), "constant": np.array([1.0, 2.0, 3.0])}
    target = tc.Target(log_density, np.zeros(2))
    some = tc.sample_many(target, data, num_warmup=100, num_draws=200, progress=False, search=True)
    truths = data["constant"] + np.log(2 * np.pi) + np.log(2.0)
    assert np.all(np.abs(some.log_evidences.value - truths) < 5 * some.log_evidences.standard_error + 1e-6)
    assert [len(some[i].modes) for i in range(3)] == [1, 2, 1]
    assert len(some[1].info.notes) > 1
