"""scipy.special, loaded at the first use of a function: its import takes almost half as long as JAX's."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("scipy.special"), name)
