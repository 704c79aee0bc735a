"""A scheduler that dies and Ctrl-C cost a run with workers time only: the same call goes on, with them or without."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

import thermocline as tc
from studies.kills import BEGUN, ROOT, digest, ended, left_over, run, started
from thermocline.engine.workers import THREADS, XLA_THREADS

pytestmark = pytest.mark.slow
ENVIRONMENT = {**os.environ, **THREADS, "XLA_FLAGS": XLA_THREADS, "JAX_PLATFORMS": "cpu"}
PATIENCE = 240.0


@contextmanager
def cluster(folder):
    """A scheduler and a worker, each a process of its own; gives the scheduler's process and its address."""
    place, options = str(folder / "scheduler.json"), {"env": ENVIRONMENT, "cwd": ROOT, "stderr": subprocess.DEVNULL}
    common = ["--scheduler-file", place, "--no-dashboard"]
    words = {"scheduler": ["--port", "0"], "worker": ["--nthreads", "1", "--memory-limit", "0", "--no-nanny"]}
    processes = [
        subprocess.Popen([sys.executable, "-m", "dask", name, *common, *own], **options) for name, own in words.items()
    ]
    try:
        from distributed import Client

        with Client(scheduler_file=place, timeout="60s") as client:
            client.wait_for_workers(1, timeout=60)
            address = client.scheduler.address
        yield processes[0], address
    finally:
        for process in processes:
            process.kill()
            process.wait()


def killed_once(process, is_time):
    """Killed as soon as it is time, by a thread."""

    def wait():
        limit = time.monotonic() + PATIENCE
        while not is_time() and time.monotonic() < limit:
            time.sleep(0.05)
        process.kill()

    threading.Thread(target=wait, daemon=True).start()


@pytest.mark.parametrize("job", ["sample", "sample_many"])
def test_a_scheduler_that_dies_costs_time_only(tmp_path, job):
    folder = tmp_path / "run"
    whole = run(job, 1, None)
    with cluster(tmp_path) as (scheduler, address):
        killed_once(scheduler, lambda: any(folder.rglob("state.npz")))
        with pytest.raises(tc.ThermoclineError, match=r"connection to the workers was lost .*goes on"):
            run(job, address, str(folder))
    shutil.copytree(folder, tmp_path / "again")
    assert digest(run(job, 1, str(tmp_path / "again"))) == digest(whole)
    without = run(job, 0, str(folder))
    both = [np.atleast_1d(result.log_evidence.value) for result in (without, whole)]
    errors = [np.atleast_1d(result.log_evidence.standard_error) for result in (without, whole)]
    assert np.all(np.abs(both[0] - both[1]) < 4 * np.hypot(*errors))


@pytest.mark.parametrize("is_of_terminal", [True, False])
def test_ctrl_c_with_workers_leaves_no_process_and_the_call_goes_on(tmp_path, is_of_terminal):
    """A terminal sends it to workers too."""
    whole = ended(started("sample", 2, str(tmp_path / "whole")))
    command = [sys.executable, "-m", "studies.kills", "--child", "sample", "2", str(tmp_path / "run")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, **pipes)
    assert process.stdout.readline().strip() == BEGUN
    limit = time.monotonic() + PATIENCE
    while not any((tmp_path / "run").rglob("state.npz")) and time.monotonic() < limit:
        time.sleep(0.05)
    (os.killpg if is_of_terminal else os.kill)(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    assert "interrupted" in said.strip().splitlines()[-1]
    assert left_over(process.pid) == 0
    assert ended(started("sample", 2, str(tmp_path / "run"))) == whole
