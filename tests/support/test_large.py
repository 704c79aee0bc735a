import gc
import os

import numpy as np
import pytest

import thermocline as tc
from thermocline.support import large


def mapped(path, values):
    np.save(path, values)
    return np.load(path, mmap_mode="r")


def test_small_arrays_are_joined_in_memory(tmp_path):
    whole = large.joined([mapped(tmp_path / "a.npy", np.arange(3.0)), np.ones(2)])
    assert whole.tolist() == [0, 1, 2, 1, 1]
    assert large.folder_of(whole) is None


def test_large_ones_from_files_stay_on_the_disk_and_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(large, "LARGE", 100)
    values = np.random.default_rng(0).normal(size=(2, 3, 50))
    parts = [mapped(tmp_path / "a.npy", values), values[:, :1] + 1, mapped(tmp_path / "b.npy", values)]
    whole = large.joined(parts, axis=1)
    assert np.array_equal(whole, np.concatenate(parts, axis=1))
    again = large.joined([np.ascontiguousarray(whole).reshape(-1, 50), values[0]])  # what comes of views of it too
    assert large.folder_of(again) == tmp_path
    assert np.array_equal(again[14:], values[0])
    assert sorted(os.listdir(tmp_path)) == ["a.npy", "b.npy"]
    room = os.statvfs(tmp_path).f_bfree
    del whole, again
    gc.collect()
    assert os.statvfs(tmp_path).f_bfree >= room - 10_000


def test_a_disk_without_room_gets_a_sentence(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(large, "LARGE", 0)
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(tc.CheckpointError, match=r"cannot be joined there .*No space left.* make room"):
        large.joined([mapped(tmp_path / "a.npy", np.ones(4))] * 2)
