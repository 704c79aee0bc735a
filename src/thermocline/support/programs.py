"""Compiled programs of users' functions: the last few are kept, where JAX alone would keep all."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any
from weakref import WeakSet

import jax

KEPT = 64  # functions; a process that calls with ever new ones would grow until it has no memory maps left


def jit_by(key: Callable[..., Any] | None = None, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`jax.jit`, with programs of their own for each user's function, which `key` finds among the arguments.

    Without `key` it is the first argument, and is bound: as a static argument JAX would hold it for ever. Like a
    program of JAX's it tells by `_cache_size()` how many are compiled.
    """

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        made: WeakSet[Any] = WeakSet()

        @lru_cache(maxsize=KEPT)
        def program(of: Any) -> Callable[..., Any]:
            @wraps(function)
            def own(*arguments: Any, **named: Any) -> Any:
                return function(of, *arguments, **named) if key is None else function(*arguments, **named)

            compiled = jax.jit(own, **options)
            made.add(compiled)
            return compiled

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            if key is None:
                return program(arguments[0])(*arguments[1:], **named)
            return program(key(*arguments, **named))(*arguments, **named)

        told: Any = call
        told._cache_size = lambda: sum(compiled._cache_size() for compiled in made)
        return told

    return decorated
