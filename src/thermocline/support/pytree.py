"""Frozen dataclasses that JAX sees through: how every object of the library is made."""

from dataclasses import dataclass, field
from typing import Any, dataclass_transform

import jax

from thermocline.support.keywords import suggesting


def static(**options: Any) -> Any:
    """A field that is code or a flag, not an array: part of the PyTree's structure."""
    return field(metadata={"static": True}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(field, static))
def pytree(cls: type) -> Any:
    """A frozen dataclass registered with JAX. No `==`: comparing arrays is not a bool."""
    made = dataclass(frozen=True, eq=False)(cls)
    made.__init__ = suggesting(made.__init__, cls.__name__)
    return jax.tree_util.register_dataclass(made)
