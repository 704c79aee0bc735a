"""The one loop: the same draws for any chunk size, after any kill, and the same law on any number of devices."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from thermocline.engine.plan import warmup_rounds
from thermocline.engine.progress import Guarded, Silent

ROOT = Path(__file__).parent.parent.parent
METHOD = tc.GibbsTempering(tc.HMC(num_steps=4))
NUM_WARMUP, NUM_DRAWS = 60, 80


def log_density(x, data):
    """A Gaussian likelihood of many observations: slow enough to be interrupted."""
    return -0.5 * jnp.sum((data["observed"] - data["design"] @ x) ** 2) - 0.5 * x @ x


def job(checkpoint=None, *, seed=3, rows=2000, shift=0.0, method=METHOD, log_zeta=-1008.0, **options):
    """A small run whose every option a test may change; log Z is about -1008 with 2000 rows."""
    generator = np.random.default_rng(0)
    design = generator.normal(size=(rows, 5)) / np.sqrt(rows)
    data = {"design": design, "observed": design.sum(axis=1) + generator.normal(size=rows) + shift}
    target = tc.Target(log_density, np.zeros(5), data)
    base = tc.BaseFit(tc.Gaussian.diagonal(np.zeros(5), 1.2), log_zeta)
    arguments = {"num_chains": 8, "num_warmup": NUM_WARMUP, "num_draws": NUM_DRAWS, "progress": False, **options}
    return tc.sample(target, seed=seed, base=base, method=method, checkpoint=checkpoint, **arguments, search=False)


@pytest.fixture(scope="module")
def reference():
    return job()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a run that came to its end."""
    folder = tmp_path_factory.mktemp("run") / "checkpoint"
    job(folder, chunk_size=9)
    return folder


def assert_same(first, second):
    for name, one, other in zip(first.draws._fields, first.draws, second.draws, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other), name
    assert first.log_evidence == second.log_evidence
    assert first.cost.evaluations.total == second.cost.evaluations.total


@pytest.mark.parametrize("chunk_size", [1, 7, 100])
def test_chunks_change_no_draw(chunk_size, reference):
    assert reference.draws.position.shape == (8, NUM_DRAWS, 5)
    assert_same(job(chunk_size=chunk_size), reference)


def test_one_seed_one_answer_and_another_seed_another(reference):
    assert_same(job(), reference)
    other = job(seed=4)
    assert not np.any(other.draws.position == reference.draws.position)
    difference = other.log_evidence.value - reference.log_evidence.value
    assert abs(difference) < 4 * np.hypot(other.log_evidence.standard_error, reference.log_evidence.standard_error)


def test_chains_differ_from_one_another(reference):
    last = reference.draws.position[:, -1, 0]
    assert len(set(last.tolist())) == last.size


def test_a_run_compiles_its_step_once(caplog):
    with jax.log_compiles():
        job(rows=201, num_warmup=20, num_draws=10)  # a shape of its own
    compiled = [record.getMessage() for record in caplog.records if "XLA compilation of jit(" in record.getMessage()]
    assert sum("jit(advance)" in message for message in compiled) == 1
    assert not [message for message in compiled if "tuning" in message or "adapt" in message]  # NumPy, on the host


def test_warmup_rounds_double_and_add_up():
    for total in (1, 15, 40, 100, 1000, 4321):
        lengths = warmup_rounds(total)
        assert sum(lengths) == total
        assert all(later == 2 * earlier for earlier, later in pairwise(lengths[:-1]))
        assert len(lengths) == 1 or lengths[-1] >= lengths[-2]
    assert len(warmup_rounds(1000)) > 4
    assert warmup_rounds(0) == []


def python(code, **environment):
    """A process of its own that can import this file; programs are cached, so that only the first compiles."""
    cache = {"JAX_COMPILATION_CACHE_DIR": environment.pop("cache"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **cache, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def steps_done(folder):
    """How far the stored state says that the run is; 0 before there is one."""
    if not (folder / "state.npz").exists():
        return 0
    with np.load(folder / "state.npz") as state:
        return json.loads(str(state["header"]))["progress"]["step"]


def kill_after(folder, num_steps, delay, cache):
    """Start or resume the run in a process, and kill it without warning some time after it has stored `num_steps`."""
    process = python(f"from tests.engine.test_loop import job; job({str(folder)!r}, chunk_size=2)", cache=cache)
    limit = time.monotonic() + 300
    while steps_done(folder) < num_steps and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.002)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    output, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL, output


@pytest.mark.slow
def test_three_kills_lose_nothing(reference, tmp_path):
    folder, cache, generator = tmp_path / "checkpoint", str(tmp_path / "cache"), random.Random(1)
    for num_steps in (6, 50, 110):  # early in warm-up, late in it, and while sampling
        kill_after(folder, num_steps, generator.uniform(0, 0.01), cache)
        assert steps_done(folder) >= num_steps
    assert steps_done(folder) < NUM_WARMUP + NUM_DRAWS + 400
    assert_same(job(folder, chunk_size=5), reference)


def test_draws_beyond_the_state_are_ignored(finished, reference, tmp_path):
    """A kill between the draws' file and the state's leaves a chunk that the state does not count."""
    folder = tmp_path / "cut"
    folder.mkdir()
    files = sorted(finished.glob("*.npz"))
    for file in files:
        (folder / file.name).write_bytes(file.read_bytes())
    stray = folder / "draws_000000999999.npz"
    stray.write_bytes(files[0].read_bytes())
    (folder / "state.tmp").write_bytes(b"half a state")
    assert_same(job(folder), reference)


def test_a_finished_checkpoint_is_read_back(finished, reference):
    before = {file.name: file.stat().st_mtime_ns for file in finished.iterdir()}
    assert_same(job(finished, chunk_size=50), reference)
    assert {file.name: file.stat().st_mtime_ns for file in finished.iterdir()} == before


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 4}, ["seed"]),
        ({"num_chains": 4}, ["number of chains"]),
        ({"precision": "float32"}, ["precision"]),
        ({"shift": 0.5}, ["data"]),
        ({"method": tc.GibbsTempering(tc.HMC(num_steps=5))}, ["method"]),
        ({"num_draws": 90}, ["run length"]),
        ({"seed": 5, "num_draws": 90}, ["seed", "run length"]),
        ({"log_zeta": -1000.0}, ["zeta"]),
    ],
)
def test_a_foreign_checkpoint_is_refused_with_what_differs(change, named, finished):
    with pytest.raises(tc.CheckpointError, match="belongs to another run") as caught:
        job(finished, **change)
    for name in named:
        assert name in str(caught.value)
    assert "number of devices" not in str(caught.value)
    assert "choose an empty folder" in str(caught.value)


@pytest.mark.parametrize("damage", [b"", b"PK nonsense", None])
def test_a_damaged_state_is_refused(damage, finished, tmp_path):
    folder = tmp_path / "damaged"
    folder.mkdir()
    whole = (finished / "state.npz").read_bytes()
    (folder / "state.npz").write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    with pytest.raises(tc.CheckpointError, match=r"state\.npz cannot be read .*damaged or not ours"):
        job(folder)


def test_a_state_of_something_else_is_refused(tmp_path):
    np.savez(tmp_path / "state.npz", weights=np.ones(3))
    with pytest.raises(tc.CheckpointError, match="is not a thermocline checkpoint"):
        job(tmp_path)


def test_missing_draws_are_noticed(finished, tmp_path):
    """A folder that lost a file of draws must not give a shorter run that looks whole."""
    folder = tmp_path / "lost"
    folder.mkdir()
    files = sorted(finished.glob("*.npz"))
    for file in files[1:]:
        (folder / file.name).write_bytes(file.read_bytes())
    assert files[0].name.startswith("draws_")
    with pytest.raises(tc.CheckpointError):
        job(folder)


def untuned():
    """A run that learns nothing, so that only rounding can tell devices apart."""
    return job(method=tc.GibbsTempering(tc.HMC(0.3, num_steps=4), tc.Continuous()), num_warmup=0, num_draws=200)


@pytest.mark.slow
def test_devices_share_keys_and_law(tmp_path):
    alone = untuned()
    for count in (2, 4):
        code = (
            "import jax, numpy; from tests.engine.test_loop import untuned; r = untuned(); z = r.log_evidence; "
            f"numpy.savez({str(tmp_path / 'run.npz')!r}, n=jax.device_count(), x=r.draws.position, "
            "z=z.value, e=z.standard_error)"
        )
        flags = f"--xla_force_host_platform_device_count={count}"
        process = python(code, cache=str(tmp_path / "cache"), XLA_FLAGS=flags)
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output
        stored = np.load(tmp_path / "run.npz")
        assert stored["n"] == count
        assert np.allclose(stored["x"][:, :4], alone.draws.position[:, :4], rtol=1e-9, atol=1e-9)
        error = np.hypot(stored["e"], alone.log_evidence.standard_error)
        assert 0 < error < 0.5
        assert abs(stored["z"] - alone.log_evidence.value) < 4 * error


class Raising(Silent):
    """A reporter that fails whenever it is told anything."""

    def phase(self, name, total):
        raise RuntimeError("no terminal")

    figures = advance = phase

    def close(self, is_whole=True):
        raise RuntimeError("no terminal")


def test_a_reporter_that_raises_does_not_end_a_run(reference, monkeypatch):
    monkeypatch.setattr("thermocline.api.reporter_for", lambda progress: Guarded(Raising()))
    assert_same(job(), reference)


def test_a_reporter_that_failed_is_closed_all_the_same():
    """Else a bar that broke would keep the terminal's cursor and its output."""
    closed = []

    class Broken(Raising):
        def close(self, is_whole=True):
            closed.append(True)

    reporter = Guarded(Broken())
    reporter.phase("sampling", 10)
    reporter.close()
    assert closed


def test_a_display_that_cannot_open_does_not_end_a_run(reference, monkeypatch):
    def broken(console):
        raise RuntimeError("no display")

    monkeypatch.setenv("FORCE_COLOR", "1")  # Rich then takes any output for a terminal
    monkeypatch.setattr("thermocline.engine.progress.Live", broken)
    assert_same(job(progress=True), reference)


def test_silent_when_output_is_not_a_terminal(capfd, monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    job(progress=True)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""


def test_progress_shows_phases_and_the_answer_in_a_terminal(reference, monkeypatch, capfd):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr("thermocline.engine.progress.REFRESH_SECONDS", 0.0)
    assert_same(job(progress=True), reference)
    shown = capfd.readouterr().err
    for word in ("compiling", "warm-up", "sampling", "log Z", "round trips"):
        assert word in shown
