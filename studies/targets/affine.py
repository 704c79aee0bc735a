"""A random affine map: rotations, odd units and a shift, so that no coordinate and no scale is special."""

from typing import Any, NamedTuple

import jax
import numpy as np

LARGEST_CONDITION = 1e6  # of the covariance that the map gives to a round cloud
LARGEST_UNIT = 1e3  # and its inverse


class AffineMap(NamedTuple):
    """Target's coordinates x = `shift` + `matrix` u of canonical ones, u."""

    matrix: np.ndarray
    shift: np.ndarray

    @property
    def whitener(self) -> np.ndarray:
        return np.linalg.inv(self.matrix)

    @property
    def log_determinant(self) -> float:
        return float(np.linalg.slogdet(self.matrix)[1])

    def forward(self, rows: np.ndarray) -> np.ndarray:
        """Rows of canonical coordinates as rows of the target's."""
        return self.shift + rows @ self.matrix.T

    def backward(self, rows: np.ndarray) -> np.ndarray:
        """Rows of the target's coordinates as canonical ones."""
        return (rows - self.shift) @ self.whitener.T

    @property
    def leaves(self) -> dict[str, np.ndarray]:
        """What a density needs of the map."""
        return {"whitener": self.whitener, "shift": self.shift}


def canonical(position: jax.Array, leaves: dict[str, Any]) -> jax.Array:
    """Canonical coordinates of one position, inside a density."""
    return leaves["whitener"] @ (position - leaves["shift"])


def random_rotation(generator: np.random.Generator, dimension: int) -> np.ndarray:
    """Uniform over orthogonal matrices (the signs make QR unique)."""
    axes, triangle = np.linalg.qr(generator.normal(size=(dimension, dimension)))
    return axes * np.sign(np.diagonal(triangle))


def random_map(generator: np.random.Generator, dimension: int) -> AffineMap:
    """Units log-uniform over six decades, a condition number log-uniform up to a million, a shift of many units.

    The canonical axes are always rotated. The scales then act along the target's coordinates (parameters in odd
    units) or, as often, along directions of no meaning (correlations).
    """
    unit = LARGEST_UNIT ** generator.uniform(-1, 1)
    log_ratio = 0.5 * generator.uniform(0, np.log(LARGEST_CONDITION))
    scales = unit * np.exp(log_ratio * generator.uniform(-0.5, 0.5, dimension))
    matrix = scales[:, None] * random_rotation(generator, dimension)
    if generator.random() < 0.5:
        matrix = random_rotation(generator, dimension) @ matrix
    shift = unit * 10 ** generator.uniform(-1, 2.5) * generator.normal(size=dimension)
    return AffineMap(matrix, shift)
