"""Compiled programs of users' functions: the last few are kept, where JAX alone would keep all."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

import jax

KEPT = 64  # functions; a process that calls with ever new ones would grow until it has no memory maps left


def jit_by(key: Callable[..., Any] | None = None, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`jax.jit`, with programs of their own for each user's function, which `key` finds among the arguments.

    Without `key` it is the first argument, and is bound: as a static argument JAX would hold it for ever.
    """

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @lru_cache(maxsize=KEPT)
        def program(of: Any) -> Callable[..., Any]:
            @wraps(function)
            def own(*arguments: Any, **named: Any) -> Any:
                return function(of, *arguments, **named) if key is None else function(*arguments, **named)

            return jax.jit(own, **options)

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            if key is None:
                return program(arguments[0])(*arguments[1:], **named)
            return program(key(*arguments, **named))(*arguments, **named)

        return call

    return decorated
