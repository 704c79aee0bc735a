r"""What steps and falls of the gradient tell of the curvature: the inverse Hessian of L-BFGS, for many lanes at once.

A step $s$ and the fall of the gradient along it, $y = \nabla(x) - \nabla(x + s)$, are kept as a pair divided by
$\sqrt{s \cdot y}$: the formulas do not change, and no pair is large because its step was.
"""

from typing import NamedTuple

import numpy as np

MEMORY = 10  # pairs
LEAST_COSINE = 1e-10  # of step and fall: scale-free, where s·y > eps y·y would refuse all pairs of narrow targets
ROUNDING = 64.0  # a fall of fewer units in the last place of the gradients says nothing


class Pairs(NamedTuple):
    """Scaled steps and falls, (lane, pair, dimension), oldest first; places not yet taken are zero."""

    steps: np.ndarray
    falls: np.ndarray

    @classmethod
    def none(cls, number: int, dimension: int) -> "Pairs":
        return cls(np.zeros((number, MEMORY, dimension)), np.zeros((number, MEMORY, dimension)))

    @property
    def is_empty(self) -> np.ndarray:
        return np.all(self.steps[:, -1] == 0, axis=1)

    def with_one(self, step: np.ndarray, before: np.ndarray, after: np.ndarray) -> tuple["Pairs", np.ndarray]:
        """With the pair of a step and the gradients at its ends, for each lane; and where it was worth having."""
        fall = before - after
        product, lengths = np.sum(step * fall, axis=1), (np.linalg.norm(step, axis=1), np.linalg.norm(fall, axis=1))
        rounding = ROUNDING * np.finfo(before.dtype).eps * np.maximum(np.abs(before), np.abs(after)).max(axis=1)
        is_sound = (product > LEAST_COSINE * lengths[0] * lengths[1]) & np.isfinite(product)
        is_sound &= (lengths[0] > 0) & (lengths[1] > rounding)  # it bends down by more than rounding could
        scale = 1 / np.sqrt(np.where(is_sound, product, 1.0))[:, None]
        kept = [
            np.where(is_sound[:, None, None], np.concatenate([old[:, 1:], (new * scale)[:, None]], axis=1), old)
            for old, new in zip(self, (step, fall), strict=True)
        ]
        return Pairs(*kept), is_sound

    def without(self, forgotten: np.ndarray) -> "Pairs":
        """With no pairs where `forgotten`."""
        return Pairs(*(np.where(forgotten[:, None, None], 0.0, leaf) for leaf in self))

    def times(self, gradient: np.ndarray) -> np.ndarray:
        """The inverse Hessian times a gradient for each lane, from 1/|y|² of the last pair, or from 1 without any."""
        last = np.sum(self.falls[:, -1] ** 2, axis=1)
        diagonal = np.broadcast_to(1 / np.where(last > 0, last, 1.0)[:, None], gradient.shape)
        return times(diagonal, *low_rank(diagonal, self), gradient)


def low_rank(diagonal: np.ndarray, pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    r"""Rows F (lane, 2 pairs, dimension) and a small C so that the inverse Hessian is $A + F^\top C F$, A the diagonal.

    The compact form of Byrd, Nocedal & Schnabel (1994): with R the upper triangle of $S^\top Y$, of unit diagonal here,
    $F = (S, AY)$ and $C = (R^{-\top}(I + Y^\top A Y)R^{-1}, -R^{-\top}; -R^{-1}, 0)$. A place not taken adds nothing.
    """
    scaled = pairs.falls * diagonal[:, None]
    identity = np.eye(pairs.steps.shape[1])
    inverse = np.linalg.inv(np.triu(pairs.steps @ pairs.falls.swapaxes(1, 2), 1) + identity)
    transposed = inverse.swapaxes(1, 2)
    corner = transposed @ (identity + pairs.falls @ scaled.swapaxes(1, 2)) @ inverse
    return np.concatenate([pairs.steps, scaled], axis=1), np.block([[corner, -transposed], [-inverse, 0 * inverse]])


def times(diagonal: np.ndarray, factor: np.ndarray, core: np.ndarray, rows: np.ndarray) -> np.ndarray:
    r"""$A + F^\top C F$ times a row for each lane."""
    along = (core @ (factor @ rows[..., None]))[..., 0]
    return diagonal * rows + (along[:, None] @ factor)[:, 0]


def next_diagonal(diagonal: np.ndarray, step: np.ndarray, fall: np.ndarray) -> np.ndarray:
    r"""The diagonal inverse Hessian after one more pair with $s \cdot y = 1$: that of the BFGS update, inverted back.

    (Gilbert & Lemaréchal 1989.) $1/a' = \tfrac{y^\top A y}{a} + y^2 - \tfrac{y^\top A y}{s^\top A^{-1} s} (s/a)^2$.
    """
    along_fall = np.sum(diagonal * fall**2, axis=-1, keepdims=True)
    along_step = np.sum(step**2 / diagonal, axis=-1, keepdims=True)
    return 1 / (along_fall / diagonal + fall**2 - along_fall / along_step * (step / diagonal) ** 2)
