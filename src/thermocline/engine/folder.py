"""The door of a call that runs: its folder is its own, signals wait for safe points and end in a sentence."""

import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from thermocline.engine.checkpoint import STATE, check_folder
from thermocline.support.budget import BudgetSpentError
from thermocline.support.errors import CheckpointError, ThermoclineError
from thermocline.support.interrupts import held

LOCK = "lock"
Folder = str | os.PathLike[str] | None


class Guarded(AbstractContextManager[None]):
    """A call that runs, with the folder of its checkpoint."""

    def __init__(self, folder: Folder = None) -> None:
        self.folder, self.stack = folder, ExitStack()

    def __enter__(self) -> None:
        with ExitStack() as stack:
            stack.enter_context(held())
            if self.folder is not None:
                check_folder(self.folder)
                stack.enter_context(_locked(Path(self.folder)))
            self.stack = stack.pop_all()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            self.stack.__exit__(kind, error, trace)
        except KeyboardInterrupt as late:  # that came too late for a safe point
            error = late
        if isinstance(error, BudgetSpentError):
            raise ThermoclineError(f"{error} is too little to begin with; give more, or None for no limit.") from None
        if isinstance(error, KeyboardInterrupt):
            raise type(error)(interrupted(self.folder)) from None


def interrupted(folder: Folder) -> str:
    """Where an interrupted run stands, and how to go on."""
    if folder is None:
        return "interrupted, and nothing was kept; with checkpoint=FOLDER a run can be resumed."
    if not list(Path(folder).rglob(STATE)):
        return f"interrupted before the first steps of the chains; {folder} holds none, and the same call starts anew."
    return f"interrupted; the run is kept in {folder}, and the same call goes on from there."


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Nobody else writes there: the system lets go of the lock of a process that died, so that a stale one is known."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:  # Windows: no lock
        yield
        return
    path = folder / LOCK
    with path.open("a+") as file:
        holder = ""
        try:
            flock(file, LOCK_EX | LOCK_NB)
            holder = _holder(path, only_elsewhere=True)
        except BlockingIOError:
            holder = _holder(path) or "another process"
        except OSError:  # a file system without locks
            pass
        if os.fstat(file.fileno()).st_nlink == 0:
            holder = "another process"  # which ended just now, and took the file along
        if holder:
            raise CheckpointError(
                f"the checkpoint folder {folder} is in use by {holder}. Wait for it, or choose another folder; if it "
                f"does not run any more, remove {path}."
            )
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "host": platform.node(), "since": time.strftime("%F %T")}))
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _holder(path: Path, *, only_elsewhere: bool = False) -> str:
    """Who wrote a lock, in words; a lock of this machine that can be had is stale, of another's nobody can tell."""
    try:
        known = json.loads(path.read_text())
        pid, host, since = (str(known[name]) for name in ("pid", "host", "since"))
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return "" if only_elsewhere and host == platform.node() else f"process {pid} on {host} since {since}"
