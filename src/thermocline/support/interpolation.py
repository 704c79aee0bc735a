"""Linear interpolation along the last axis, for many tables at once."""

import numpy as np


def interpolate(places: np.ndarray, grid: np.ndarray, values: np.ndarray) -> np.ndarray:
    """`np.interp(places, grid, values)` along the last axis of each; leading axes broadcast.

    Where a point of the grid is repeated, the last of its values counts, as it does for `jnp.interp`.
    """
    leading = np.broadcast_shapes(places.shape[:-1], grid.shape[:-1], values.shape[:-1])
    places, grid, values = (np.broadcast_to(array, (*leading, array.shape[-1])) for array in (places, grid, values))
    places = np.clip(places, grid[..., :1], grid[..., -1:])
    right = np.clip(np.sum(grid[..., None, :] <= places[..., None], axis=-1), 1, grid.shape[-1] - 1)
    (start, stop), (low, high) = (
        [np.take_along_axis(table, index, axis=-1) for index in (right - 1, right)] for table in (grid, values)
    )
    width = np.where(stop > start, stop - start, 1.0)
    return low + (places - start) / width * np.where(stop > start, high - low, 0.0)
