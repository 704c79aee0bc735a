"""Workers: the same draws, bit for bit, for any number of them and when some are killed; searches are kept."""

import os
import signal
import threading
from concurrent.futures import CancelledError
from contextlib import contextmanager

import jax.numpy as jnp
import numpy as np
import pytest
from distributed import Client, LocalCluster

import thermocline as tc
from tests.engine.test_loop import assert_same, job
from thermocline.engine import tasks, workers
from thermocline.engine.program import advance

MANY = tc.Target(lambda x, centre: -0.5 * jnp.sum((x - centre) ** 2) - jnp.sum(jnp.log1p(x**2)), np.zeros(3))
CENTRES = np.random.default_rng(1).normal(size=(24, 3))
PROGRAMS = 4  # of steps: one target in blocks of four chains, many in full blocks; each once for one worker alone


def many(**options):
    lengths = {"num_warmup": 40, "num_draws": 60, "group_size": 4, "chunk_size": 20}
    base = lambda centre: tc.Gaussian(0.5 * centre, 1.5 * jnp.eye(3))  # noqa: E731
    return tc.sample_many(MANY, CENTRES, base=base, seed=2, progress=False, **lengths, **options)


def both(client=None):
    return job(chunk_size=20, workers=client), many(workers=client)


def assert_the_same(first, second):
    assert_same(first[0], second[0])
    for one, other in zip(first[1], second[1], strict=True):
        assert_same(one, other)


@contextmanager
def being_killed(pids, every):
    """One process after another is killed while the body runs; gives the list of those that were."""
    killed, is_over = [], threading.Event()

    def kill():
        for pid in pids:
            if is_over.wait(every):
                break
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        is_over.set()
        thread.join()


@pytest.mark.long
def test_draws_do_not_depend_on_workers(monkeypatch):
    """One, two and four processes, and two of four killed; without any the same to rounding, then in law."""
    alone = both(1)
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 60}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as four:
        assert_the_same(both(four), alone)
        cluster.scale(4)
        four.wait_for_workers(4)
        two = list(four.run(os.getpid).values())[:2]
        with being_killed(two, 1.5) as killed:
            while len(killed) < 2:
                assert_the_same(both(four), alone)
        assert max(four.run(lambda: advance._cache_size()).values()) <= PROGRAMS
        longer = tc.extend(alone[1], num_draws=20, progress=False, workers=four)
        assert np.array_equal(longer[5].draws.position[:, :60], alone[1][5].draws.position)
        monkeypatch.setattr(workers, "versions", lambda: {"jax": "0.0.1"})
        with pytest.raises(tc.ThermoclineError, match=r"has jax .* and this process 0\.0\.1"):
            many(workers=four)
    here = both()
    for name in ("position", "log_ratio", "inverse_temperature"):
        for one, other in ((here[0], alone[0]), (here[1][3], alone[1][3])):
            first, second = (getattr(result.draws, name)[:, :20] for result in (one, other))
            assert first == pytest.approx(second, rel=1e-8, abs=1e-8)
    error = np.hypot(here[0].log_evidence.standard_error, alone[0].log_evidence.standard_error)
    assert abs(here[0].log_evidence.value - alone[0].log_evidence.value) < 4 * error


class Done:
    """A task whose result is there."""

    def __init__(self, key, value):
        self.key, self.value = key, value

    def result(self):
        return self.value


class Here:
    """A client whose tasks are computed at once, in this process; it notes the bytes that travel with each."""

    def __init__(self):
        self.travelled = []

    def nthreads(self):
        return {"here": 1}

    def submit(self, function, *given, key=None, pure=True):
        if function is tasks.compute:
            self.travelled.append(len(given[3]))
        return Done(key, function(*map(self.gathered, given)))

    def gathered(self, given):
        if type(given) is list:
            return [self.gathered(each) for each in given]
        return given.value if type(given) is Done else given


def test_what_was_in_a_task_before_stays_on_the_workers(monkeypatch):
    """Tuning is the same for all chunks of the sampling: it travels with the first two at most."""
    few, all_of_it = Here(), Here()
    monkeypatch.setattr(workers, "LARGE", 256)
    results = many(workers=workers.Workers(few))
    monkeypatch.setattr(workers, "LARGE", np.inf)
    whole = many(workers=workers.Workers(all_of_it))
    assert len(few.travelled) == len(all_of_it.travelled)
    assert sum(few.travelled) < 0.7 * sum(all_of_it.travelled)
    for one, other in zip(results, whole, strict=True):
        assert_same(one, other)


def test_a_scheduler_that_is_gone_gets_a_sentence():
    class Gone(Here):
        def nthreads(self):
            raise OSError("no route")

        def submit(self, function, *given, **options):
            raise CancelledError("scheduler-connection-lost")

    with pytest.raises(tc.ThermoclineError, match=r"connection to the workers was lost \(CancelledError\).*goes on"):
        job(workers=workers.Workers(Gone()))


@pytest.mark.parametrize("given", [0, -1, 2.5, True, [1]])
def test_what_are_no_workers_is_refused(given):
    with pytest.raises(tc.ThermoclineError, match=r"workers is .*; give a number of processes"):
        job(workers=given)


def test_what_cannot_travel_is_refused():
    lock = threading.Lock()
    with pytest.raises(tc.ThermoclineError, match="cannot be sent to workers: TypeError"):
        workers._packed(lambda x: lock)


@pytest.mark.long
def test_a_run_that_resumes_does_not_search_again(tmp_path, monkeypatch):
    """The base and the modes come from the folder, as they were found, and count as spent."""
    target = tc.Target(lambda x: jnp.logaddexp(-jnp.sum((x - 2) ** 2), -2 * jnp.sum((x + 2) ** 2)), np.zeros(2))
    options = {"seed": 1, "num_draws": 40, "num_chains": 4, "progress": False}
    whole = tc.sample(target, checkpoint=tmp_path, **options)
    for file in [*tmp_path.glob("*.npz")]:
        file.unlink()  # as if it had been killed before its first step
    with monkeypatch.context() as patch:
        patch.setattr("thermocline.api.find_base", None)
        resumed = tc.sample(target, checkpoint=tmp_path, **options)
    assert_same(resumed, whole)
    assert np.array_equal(resumed.mode_table.location, whole.mode_table.location)
    assert resumed.search == whole.search
    assert resumed.cost.evaluations == whole.cost.evaluations
    with pytest.raises(tc.CheckpointError, match="another run: seed differs"):
        tc.sample(target, checkpoint=tmp_path, **options | {"seed": 2})


@pytest.mark.long
def test_searches_of_many_are_kept(tmp_path, monkeypatch):
    options = {"num_warmup": 20, "num_draws": 20, "progress": False, "checkpoint": tmp_path}
    whole = tc.sample_many(MANY, CENTRES[:2], **options)
    monkeypatch.setattr("thermocline.api_many.find_base", None)
    assert_same(tc.sample_many(MANY, CENTRES[:2], **options)[1], whole[1])


@pytest.mark.long
def test_own_processes_can_be_reached_from_this_machine_alone():
    """What they are sent is unpickled, and Dask's page of their state is for nobody else either."""
    psutil = pytest.importorskip("psutil")
    with workers.Own(1).client():
        processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
        sockets = [socket for process in processes for socket in process.net_connections("inet")]
        addresses = [socket.laddr.ip for socket in sockets if socket.status == psutil.CONN_LISTEN]
    assert len(addresses) >= 3
    assert set(addresses) == {"127.0.0.1"}
