"""Disks, damage, two runs in one folder, interruptions, and programs of functions that nobody asks for again."""

import gc
import json
import os
import platform
import resource
import shutil
import signal
import weakref
from contextlib import contextmanager

import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from studies import damage, interrupts
from tests.spoiled import file, result, sample, saved
from thermocline.engine.checkpoint import Checkpoint
from thermocline.engine.folder import Guarded
from thermocline.engine.loop import Work
from thermocline.results import storage
from thermocline.results.files import FORMAT
from thermocline.support import programs, sealed
from thermocline.support.interrupts import check, held


def test_a_folder_is_of_one_run_at_a_time(tmp_path):
    with Guarded(tmp_path), pytest.raises(tc.CheckpointError, match=f"in use by process {os.getpid()} on"):
        Guarded(tmp_path).__enter__()
    assert not list(tmp_path.iterdir())
    with Guarded(tmp_path):
        assert json.loads((tmp_path / "lock").read_text())["host"] == platform.node()


def test_a_stale_lock_is_taken_over_and_one_of_another_machine_is_not(tmp_path):
    stale = {"pid": 1, "host": platform.node(), "since": "long ago"}
    (tmp_path / "lock").write_text(json.dumps(stale))
    with Guarded(tmp_path):
        pass
    (tmp_path / "lock").write_text(json.dumps(stale | {"host": "elsewhere"}))
    with pytest.raises(tc.CheckpointError, match=r"in use by process 1 on elsewhere since long ago.*remove"):
        Guarded(tmp_path).__enter__()


@contextmanager
def full_disk(size):
    """No file may grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.long
def test_a_full_disk_gets_a_sentence_and_leaves_what_was_there(tmp_path):
    whole = saved().read_bytes()
    shutil.copy(saved(), tmp_path / "run.nc")
    with full_disk(3000), pytest.raises(tc.ThermoclineError, match=r"run\.nc cannot be written"):
        result().save(tmp_path / "run.nc")
    assert (tmp_path / "run.nc").read_bytes() == whole
    with full_disk(1000), pytest.raises(tc.CheckpointError, match=r"cannot be written.*the same call goes on"):
        sample(checkpoint=tmp_path / "check")
    assert not list(tmp_path.rglob("*.tmp"))
    assert sample(checkpoint=tmp_path / "check").log_evidence == result().log_evidence


@pytest.mark.long
def test_files_of_other_versions_say_what_to_do(tmp_path):
    import h5netcdf

    for form, says in ((FORMAT - 1, "older versions .* load it with that version"), (FORMAT + 1, "newer .* update")):
        path = file("other.nc", saved().read_bytes())
        with h5netcdf.File(path, "a") as stored:
            stored.attrs["thermocline"] = json.dumps(json.loads(stored.attrs["thermocline"]) | {"format": form})
        sealed.seal(path)
        with pytest.raises(tc.ThermoclineError, match=says):
            tc.load(path)


@pytest.mark.long
def test_a_saved_run_without_its_seal_is_not_believed():
    cut = file("cut.nc", saved().read_bytes()[: -sealed.LENGTH])
    with pytest.raises(tc.ThermoclineError, match="the seal at its end is gone"):
        tc.load(cut)
    assert storage.read_groups(saved())[2]


def test_draws_in_the_place_of_others_are_noticed(tmp_path):
    """Each is whole in itself: only its name tells."""
    from thermocline.engine.checkpoint import _read, _write

    _write(tmp_path / "draws_000000000000_00000.npz", {"x": np.arange(3.0)}, "run")
    content = (tmp_path / "draws_000000000000_00000.npz").read_bytes()
    (tmp_path / "draws_000000000008_00000.npz").write_bytes(content)
    assert np.array_equal(_read(tmp_path / "draws_000000000000_00000.npz", "run")["x"], np.arange(3.0))
    with pytest.raises(tc.CheckpointError, match="its seal is broken"):
        _read(tmp_path / "draws_000000000008_00000.npz", "run")
    with pytest.raises(tc.CheckpointError, match="its seal is broken"):
        _read(tmp_path / "draws_000000000000_00000.npz", "another run")


@pytest.mark.long
def test_damaged_checkpoints_and_files_get_a_sentence_or_the_right_answer(capsys):
    assert damage.study(20, seed=1) == 0, capsys.readouterr().out


def test_a_signal_waits_for_a_safe_point():
    reached = []
    with pytest.raises(KeyboardInterrupt), held():  # noqa: PT012 - what is not reached is the point
        with held():
            os.kill(os.getpid(), signal.SIGINT)
            reached.append("inside")
        reached.append("after the inner one")
        check()
        reached.append("never")
    assert reached == ["inside", "after the inner one"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_after_the_last_safe_point_is_not_lost():
    with pytest.raises(KeyboardInterrupt), held():
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.long
@pytest.mark.parametrize("is_kept", [True, False])
def test_an_interrupted_call_says_where_it_stands_and_goes_on(tmp_path, monkeypatch, is_kept):
    """Ctrl-C in the middle of a chunk, where JAX computes."""
    take, folder, chunks = Work.take_chunk, tmp_path / "run" if is_kept else None, []

    def interrupted_in(work, *arguments):
        chunks.append(1)
        if len(chunks) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return take(work, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Work, "take_chunk", interrupted_in)
        says = f"the run is kept in {folder}, and the same" if is_kept else "nothing was kept; with checkpoint="
        with pytest.raises(KeyboardInterrupt, match=says) as caught:
            sample(checkpoint=folder, chunk_size=2)
    assert not any("jax" in str(entry.path) for entry in caught.traceback)
    assert sample(checkpoint=folder, chunk_size=2).log_evidence == result().log_evidence


@pytest.mark.slow
def test_interruptions_at_random_moments(capsys):
    assert interrupts.study(8, seed=1, is_warm=True) == 0, capsys.readouterr().out


def test_programs_of_functions_long_gone_are_let_go(monkeypatch):
    monkeypatch.setattr(programs, "KEPT", 2)

    @programs.jit_by()
    def applied(function, x):
        return function(x)

    gone = []
    for power in range(5):
        function = lambda x, power=power: x**power  # noqa: E731
        assert applied(function, jnp.float32(3.0)) == 3.0**power
        gone.append(weakref.ref(function))
        del function
    gc.collect()
    assert [each() is None for each in gone] == [True, True, True, False, False]


def test_a_checkpoint_and_its_parts_are_not_mistaken_for_each_other(tmp_path):
    whole = Checkpoint(tmp_path, {"seed": "1"})
    assert whole.fingerprint != whole.aside("pilot").fingerprint
