"""Frozen dataclasses that JAX sees through: how every object of the library is made."""

from dataclasses import dataclass, field
from typing import Any, dataclass_transform

import jax


def static(**options: Any) -> Any:
    """A field that is code or a flag, not an array: part of the PyTree's structure."""
    return field(metadata={"static": True}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(field, static))
def pytree(cls: type) -> Any:
    """A frozen dataclass registered with JAX. No `==`: comparing arrays is not a bool."""
    return jax.tree_util.register_dataclass(dataclass(frozen=True, eq=False)(cls))
