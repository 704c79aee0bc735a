"""Searches in the checkpoint of a run: one that resumes does not search again."""

import os
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from thermocline.bases import BaseFit
from thermocline.engine.checkpoint import Checkpoint
from thermocline.results import storage
from thermocline.support import fingerprint
from thermocline.support.errors import CheckpointError
from thermocline.target import Target


class Searches:
    """What searches have found, in a folder of the checkpoint; nothing is kept without one."""

    def __init__(
        self, checkpoint: str | os.PathLike[str] | None, target: Target, data: Any, **options: Any
    ) -> None:
        self.store = None
        if checkpoint is not None:
            density = lambda target, position: target(position)  # noqa: E731
            found = (target.initial_position, target.prior, target.known_modes)
            marks = {
                "target": fingerprint.of_function(density, target, target.initial_position),
                "data": fingerprint.of_arrays(data),
                "start": fingerprint.of_arrays(found),
                "version": version("thermocline"),
            }
            self.store = Checkpoint(Path(checkpoint) / "search", marks | {k: str(v) for k, v in options.items()})

    def all(self, find: Callable[[Iterable[int]], Iterator[BaseFit]], number: int) -> list[BaseFit]:
        """The fit of each target: as it was kept, or found now, and then kept."""
        known = {place: self._kept(place) for place in range(number)}
        missing = [place for place in known if known[place] is None]
        for place, fit in zip(missing, find(missing) if missing else (), strict=True):
            known[place] = fit
            if self.store is not None:
                arrays: dict[str, Any] = {}
                description = storage.encode(fit, arrays)
                self.store.put(f"target-{place:06d}", description, arrays)
        return [fit for fit in known.values() if fit is not None]

    def _kept(self, place: int) -> BaseFit | None:
        found = None if self.store is None else self.store.get(f"target-{place:06d}")
        if found is None:
            return None
        fit = storage.decode(*found)
        if not isinstance(fit, BaseFit):
            raise CheckpointError("the search in the checkpoint is of another version; choose an empty folder.")
        return fit
