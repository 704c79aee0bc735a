"""What does the posterior look like: the modes, on a map, then marginals and pairs."""

from typing import NamedTuple

import numpy as np

from thermocline.estimators.chains import systematic_resample
from thermocline.modes.table import basins
from thermocline.report import summary
from thermocline.report.page import FAINT, GREY, MODES, Figure, Section, drawing, figure, range_of, shortened, unscaled
from thermocline.results.result import Result
from thermocline.results.weighing import by_component

MOST_MARGINALS, MOST_PAIRS = 12, 4
MOST_POINTS = 2000  # of a scatter


class Cloud(NamedTuple):
    """Equally weighted draws of the target: ravelled, by component in the user's coordinates, and their mode."""

    position: np.ndarray
    components: dict[str, np.ndarray]
    mode: np.ndarray  # rank by mass; all 0 where there was no census


def posterior(result: Result) -> Section:
    cloud = cloud_of(result)
    marginals = [marginal(name, cloud) for name in list(cloud.components)[:MOST_MARGINALS]]
    figures, number = (*census_map(result, cloud), *marginals, *pairs(cloud)), len(result.modes)
    said = {0: "No census of modes was taken.", 1: "One mode was found."}.get(number, f"{number} modes were found.")
    left = len(cloud.components) - MOST_MARGINALS
    more = ("Colours are those of the modes on the map.",) if number > 1 and cloud.position.shape[1] > 1 else ()
    more += (f"The first {MOST_MARGINALS} parameters are drawn; there are {left} more.",) if left > 0 else ()
    return Section((said, *more), figures, (summary.modes_table(result),))


def cloud_of(result: Result) -> Cloud:
    """As many draws as a scatter may hold, the same in all figures."""
    draws = result.draws
    index = systematic_resample(draws.log_weight_target.ravel(), MOST_POINTS, 0)
    position = draws.position.reshape(-1, draws.position.shape[-1])[index]
    components = by_component(result.parameters)
    mode = np.zeros(len(index), int)
    if result.mode_table is not None:
        ranks = np.append(_ranks(result), len(MODES))  # grey, where no mode explains a draw
        mode = ranks[basins(result.mode_table, position)]
    return Cloud(position, {name: values.ravel()[index].astype(float) for name, values in components.items()}, mode)


def _ranks(result: Result) -> np.ndarray:
    """The place of every known mode in the census, which lists the heaviest first."""
    assert result.mode_table is not None
    by_density = {mode.log_density: rank for rank, mode in reversed(list(enumerate(result.modes)))}
    return np.array([by_density.get(float(value), 0) for value in result.mode_table.log_density])


def census_map(result: Result, cloud: Cloud) -> tuple[Figure, ...]:
    """Draws and modes in the plane that shows them best, where there is more than a line to show."""
    if cloud.position.shape[1] < 2 or result.mode_table is None:
        return ()
    centres = result.mode_table.location
    origin, axes_of_plane, words = plane(cloud.position, centres, list(by_component(result.unconstrained)))
    points, tops = ((array - origin) @ axes_of_plane.T for array in (cloud.position, centres))
    ranks = _ranks(result)
    with drawing(height=3.0) as (canvas, axes):
        for rank in np.unique(cloud.mode)[::-1]:
            chosen = points[cloud.mode == rank]
            axes.scatter(*chosen.T, s=4, color=colour_of(rank), alpha=0.35, linewidths=0, rasterized=True)
        x_range, y_range = (range_of(np.append(points[:, i], tops[:8, i])) for i in range(2))
        axes.set(xlabel=shortened(words[0], 40), ylabel=shortened(words[1], 30), xlim=x_range, ylim=y_range)
        for top, rank in sorted(zip(tops, ranks, strict=True), key=lambda pair: pair[1])[: len(MODES)]:
            axes.plot(*top, marker="o", markersize=9, color="white", markeredgecolor=colour_of(rank), clip_on=True)
            axes.annotate(str(rank + 1), top, ha="center", va="center", fontsize=7, clip_on=True)
        caption = "Draws of the target, coloured by mode, with the modes' highest points numbered as in the table"
        return (figure(canvas, f"{caption} (unconstrained coordinates)."),)


def plane(position: np.ndarray, centres: np.ndarray, names: list[str]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Two directions: the coordinates where there are two, else those along which modes, then draws, spread."""
    if position.shape[1] == 2:
        return np.zeros(2), np.eye(2), names
    spread = position.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    white, tops = (position - position.mean(axis=0)) / spread, (centres - position.mean(axis=0)) / spread
    rows = tops - tops.mean(axis=0)
    directions = list(np.linalg.svd(rows, full_matrices=False)[2][: min(2, np.linalg.matrix_rank(rows, tol=0.1))])
    words = ["between modes, first direction", "between modes, second direction"][: len(directions)]
    residual = white - sum((np.outer(white @ d, d) for d in directions), np.zeros_like(white))
    for direction in np.linalg.svd(residual, full_matrices=False)[2][: 2 - len(directions)]:
        directions.append(direction)
        words.append("largest spread" if len(directions) == 1 else "largest remaining spread")
    return position.mean(axis=0), np.array(directions) / spread, words


def colour_of(rank: int) -> str:
    return MODES[rank] if rank < len(MODES) else GREY


def marginal(name: str, cloud: Cloud) -> Figure:
    """A histogram of one parameter, stacked by mode."""
    values, ranks = cloud.components[name], np.unique(cloud.mode)
    with drawing(height=2.0) as (canvas, axes):
        parts = [values[cloud.mode == rank] for rank in ranks]
        edges = np.linspace(*range_of(values), 51).tolist()
        colours = [colour_of(rank) for rank in ranks]
        axes.hist(parts, edges, stacked=True, histtype="stepfilled", color=colours, alpha=0.65, linewidth=0)
        unscaled(axes, name)
        return figure(canvas, "", f"Histogram of {name}")


def pairs(cloud: Cloud) -> tuple[Figure, ...]:
    """Every two of the first few parameters against each other."""
    names = list(cloud.components)[:MOST_PAIRS]
    is_on_the_map = len(names) == 2 and np.array_equal(np.stack(list(cloud.components.values()), 1), cloud.position)
    if len(names) < 2 or is_on_the_map:
        return ()
    count, colours = len(names) - 1, [colour_of(rank) for rank in cloud.mode]
    size, shared = (max(1.8 * count, 4.0), max(1.5 * count, 2.6)), {"sharex": "col", "sharey": "row"}
    with drawing(*size, nrows=count, ncols=count, squeeze=False, **shared) as (canvas, grid):
        for row, column in np.ndindex(count, count):
            axes = grid[row, column]
            if column > row:
                axes.set_visible(False)
                continue
            x, y = cloud.components[names[column]], cloud.components[names[row + 1]]
            axes.scatter(x, y, s=3, c=colours, alpha=0.3, linewidths=0, rasterized=True)
            axes.set(xlim=range_of(x), ylim=range_of(y))
            axes.tick_params(color=FAINT)
            axes.locator_params(nbins=4)
            if row == count - 1:
                axes.set_xlabel(shortened(names[column], 18))
            if column == 0:
                axes.set_ylabel(shortened(names[row + 1], 18))
        return (figure(canvas, f"The first {len(names)} parameters, two by two.", wide=True),)
