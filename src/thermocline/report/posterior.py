"""What does the posterior look like: the modes, on a map and in a table, then marginals, pairs and new data."""

from typing import Any, NamedTuple

import numpy as np

from thermocline.estimators.chains import systematic_resample
from thermocline.records import Mode
from thermocline.report import summary
from thermocline.report.page import (
    BASE,
    FAINT,
    GREY,
    MODES,
    TARGET,
    Figure,
    Section,
    drawing,
    figure,
    range_of,
    shortened,
    unscaled,
)
from thermocline.results.result import Result
from thermocline.results.weighing import by_component

MOST_MARGINALS, MOST_PAIRS, MOST_MODES, MOST_PREDICTED = 12, 4, 10, 3
MOST_POINTS = 2000  # of a scatter
MOST_SINGLE = 60  # observations that are drawn one by one
WIDER = 1.0  # times the posterior's range, that a prior's is drawn to on either side


class Cloud(NamedTuple):
    """Equally weighted draws of the target: ravelled, by component in the user's coordinates, and their mode."""

    position: np.ndarray
    components: dict[str, np.ndarray]
    mode: np.ndarray  # rank by mass; all 0 where there is no table of modes
    prior: dict[str, np.ndarray]  # draws of it, by component


def posterior(result: Result) -> Section:
    cloud, number = cloud_of(result), len(result.modes)
    names = list(cloud.components)
    marginals = [marginal(name, cloud) for name in names[:MOST_MARGINALS]]
    figures = (*map_drawn(result, cloud), *table_drawn(result), *marginals, *pairs(cloud), *predicted(result))
    said = {0: "Modes were not looked for.", 1: "One mode was found."}.get(number, f"{number} modes were found.")
    left = len(names) - MOST_MARGINALS
    more = ("Colours are those of the modes, the heaviest first.",) if number > 1 else ()
    more += ("Grey outlines are the prior, as far as it fits.",) if cloud.prior else ()
    more += (f"The first {MOST_MARGINALS} parameters are drawn; there are {left} more.",) if left > 0 else ()
    return Section((said, *more), figures, (summary.modes_table(result),))


def cloud_of(result: Result, mode: int | None = None) -> Cloud:
    """As many draws as a scatter may hold, the same in all figures; of one mode alone, where it is given."""
    index = systematic_resample(result.log_weight_of(mode), MOST_POINTS, 0)
    components = by_component({name: values[index].astype(float) for name, values in result.pool.items()}, 1)
    ranks = np.full(len(result.modes) + 1, len(MODES))  # grey, where no mode explains a draw
    ranks[[own.row for own in result.modes]] = np.arange(len(result.modes))
    by_draw = ranks[result.basins[index]] if result.modes else np.zeros(len(index), int)
    prior = by_component({name: values.astype(float) for name, values in result.prior_parameters.items()}, 1)
    return Cloud(result.positions[index], components, by_draw, prior)


def map_drawn(result: Result, cloud: Cloud) -> tuple[Figure, ...]:
    """The map, where there is more than a line to show."""
    if cloud.position.shape[1] < 2 or result.mode_table is None:
        return ()
    with drawing(height=3.0) as (canvas, axes):
        return (figure(canvas, draw_map(axes, result, cloud)),)


def draw_map(axes: Any, result: Result, cloud: Cloud) -> str:
    """Draws and modes in the plane that shows them best."""
    assert result.mode_table is not None
    centres = result.mode_table.location[[mode.row for mode in summary.met_modes(result)]]  # the heaviest first
    origin, axes_of_plane, words = plane(cloud.position, centres, list(by_component(result.unconstrained)))
    points, tops = ((array - origin) @ axes_of_plane.T for array in (cloud.position, centres))
    for rank in np.unique(cloud.mode)[::-1]:
        chosen = points[cloud.mode == rank]
        axes.scatter(*chosen.T, s=4, color=colour_of(rank), alpha=0.35, linewidths=0, rasterized=True)
    x_range, y_range = (range_of(np.append(points[:, i], tops[:8, i])) for i in range(2))
    axes.set(xlabel=shortened(words[0], 40), ylabel=shortened(words[1], 30), xlim=x_range, ylim=y_range)
    for rank, top in enumerate(tops[: len(MODES)]):
        axes.plot(*top, marker="o", markersize=9, color="white", markeredgecolor=colour_of(rank), clip_on=True)
        axes.annotate(str(rank + 1), top, ha="center", va="center", fontsize=7, clip_on=True)
    caption = "Draws of the target, coloured by mode, with the modes' highest points numbered as in the table"
    return f"{caption} (unconstrained coordinates)."


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


def table_drawn(result: Result) -> tuple[Figure, ...]:
    """The table of modes as a picture, where there are several: the mass of each, and where it lies."""
    if len(result.modes) < 2:
        return ()
    names, modes = summary.telling(result.modes), summary.met_modes(result)[:MOST_MODES]
    size = 5.8, 1.3 + 0.26 * len(modes)
    with drawing(*size, ncols=1 + len(names), sharey=True, squeeze=False) as (canvas, grid):
        first, *rest = grid[0]
        caption = draw_masses(first, modes)
        for axes, name in zip(rest, names, strict=True):
            draw_places(axes, name, modes)
        return (figure(canvas, f"{caption} Beside it, mean and standard deviation within each mode.", wide=True),)


def draw_masses(axes: Any, modes: tuple[Mode, ...]) -> str:
    """The mass of each of the heaviest modes, from the chains and from its own fit."""
    rows = np.arange(len(modes))
    for offset, name, label, colour in (
        (-0.15, "mass", "from the chains", TARGET),
        (0.15, "mass_by_importance", "from its own fit", BASE),
    ):
        values = np.array([getattr(mode, name).value for mode in modes])
        errors = np.array([getattr(mode, name).standard_error for mode in modes])
        known = np.isfinite(values) & (errors < np.maximum(values, 0.05))
        options = {"color": colour, "fmt": "o", "markersize": 4, "label": label}
        axes.errorbar(values[known], rows[known] + offset, xerr=1.96 * errors[known], **options)
    axes.set_yticks(rows, [mode.name for mode in modes])
    axes.set(xlabel="share of the posterior", ylim=(len(modes) - 0.4, -0.6))
    axes.set_xlim(left=0)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=1)
    axes.grid(axis="x", color=FAINT, linewidth=0.5)
    return "How much each mode holds, with 95% intervals, two ways that should agree."


def draw_places(axes: Any, name: str, modes: tuple[Mode, ...]) -> None:
    """Mean and standard deviation of one parameter within each mode."""
    for row, mode in enumerate(modes):
        mean, deviation = (float(by_component(table, 0)[name]) for table in (mode.mean, mode.deviation))
        axes.plot([mean - deviation, mean + deviation], [row, row], color=colour_of(row))
        axes.plot(mean, row, "o", color=colour_of(row), markersize=4.5)
    axes.set_xlabel(shortened(name, 18))
    axes.grid(axis="x", color=FAINT, linewidth=0.5)


def marginal(name: str, cloud: Cloud) -> Figure:
    with drawing(height=2.0) as (canvas, axes):
        draw_marginal(axes, name, cloud)
        unscaled(axes, name)
        return figure(canvas, "", f"Histogram of {name}")


def draw_marginal(axes: Any, name: str, cloud: Cloud) -> None:
    """A histogram of one parameter, stacked by mode, and its prior's outline."""
    values, prior, ranks = cloud.components[name], cloud.prior.get(name, np.zeros(0)), np.unique(cloud.mode)
    low, high = range_of(values)
    prior = prior[np.isfinite(prior)]
    if prior.size:
        reach, ends = WIDER * (high - low), np.quantile(prior, (0.01, 0.99))
        low, high = min(low, max(ends[0], low - reach)), max(high, min(ends[1], high + reach))
    edges = np.linspace(low, high, 61)
    width = edges[1] - edges[0]
    parts = [values[cloud.mode == rank] for rank in ranks]
    axes.hist(
        parts,
        edges.tolist(),
        weights=[np.full(part.size, 1 / (values.size * width)) for part in parts],
        stacked=True,
        histtype="stepfilled",
        color=[colour_of(rank) for rank in ranks],
        alpha=0.65,
        linewidth=0,
    )
    if prior.size:
        coarse = edges[::3]
        heights = np.histogram(prior, coarse)[0] / (prior.size * (coarse[1] - coarse[0]))
        axes.stairs(heights, coarse, color=GREY, linewidth=1)


def pairs(cloud: Cloud) -> tuple[Figure, ...]:
    """Every two of the first few parameters against each other."""
    names = list(cloud.components)[:MOST_PAIRS]
    is_on_the_map = len(names) == 2 and np.array_equal(np.stack(list(cloud.components.values()), 1), cloud.position)
    if len(names) < 2 or is_on_the_map:
        return ()
    side = max(1.5 * len(names), 4.0)
    with drawing(side, 0.85 * side, nrows=len(names), ncols=len(names), squeeze=False) as (canvas, grid):
        draw_pairs(grid, names, cloud)
        return (figure(canvas, f"The first {len(names)} parameters, two by two.", wide=True),)


def draw_pairs(grid: Any, names: list[str], cloud: Cloud) -> None:
    """Scatters below the diagonal, histograms on it, nothing above."""
    colours = [colour_of(rank) for rank in cloud.mode]
    for row, column in np.ndindex(*grid.shape):
        axes, name = grid[row, column], names[column]
        if column > row:
            axes.set_visible(False)
            continue
        if column == row:
            draw_marginal(axes, name, cloud._replace(prior={}))
            unscaled(axes, "")
        else:
            x, y = cloud.components[name], cloud.components[names[row]]
            axes.scatter(x, y, s=3, c=colours, alpha=0.3, linewidths=0, rasterized=True)
            axes.set_ylim(range_of(y))
        axes.set_xlim(range_of(cloud.components[name]))
        axes.tick_params(color=FAINT, labelbottom=row == len(names) - 1, labelleft=column == 0 < row)
        axes.locator_params(axis="x", nbins=4)
        axes.set_xlabel(shortened(name, 18) if row == len(names) - 1 else "")
        axes.set_ylabel(shortened(names[row], 18) if column == 0 < row else "")


def predicted(result: Result) -> tuple[Figure, ...]:
    """What was observed among new data of the model, drawn at draws of the posterior."""
    figures = []
    for name, (observed, drawn) in list(result.predictive.items())[:MOST_PREDICTED]:
        seen, new = np.ravel(observed).astype(float), np.reshape(drawn, (len(drawn), -1)).astype(float)
        with drawing() as (canvas, axes):
            draw = _one_by_one if seen.size <= MOST_SINGLE else _as_histogram
            draw(axes, seen, new, name)
            axes.legend(loc="best")
            caption = f"{name}: what was observed, and 90% of {len(new)} sets of new data that the model draws"
            figures.append(figure(canvas, f"{caption} with parameters of the posterior."))
    return tuple(figures)


def _one_by_one(axes: Any, seen: np.ndarray, new: np.ndarray, name: str) -> None:
    place, (low, high) = np.arange(seen.size), np.quantile(new, (0.05, 0.95), axis=0)
    axes.vlines(place, low, high, color=TARGET, alpha=0.35, linewidth=4, label="new data, 90%")
    axes.plot(place, seen, "o", color=BASE, markersize=4, label="observed")
    axes.set(xlabel="observation", ylabel=shortened(name, 30))


def _as_histogram(axes: Any, seen: np.ndarray, new: np.ndarray, name: str) -> None:
    low, high = range_of(np.append(seen, new))
    edges = np.linspace(min(low, seen.min()), max(high, seen.max()), 31)
    heights = np.array([np.histogram(each, edges)[0] for each in new])
    below, above = np.quantile(heights, (0.05, 0.95), axis=0)
    axes.stairs(above, edges, baseline=below, fill=True, color=TARGET, alpha=0.35, label="new data, 90%")
    axes.stairs(np.histogram(seen, edges)[0], edges, color=BASE, label="observed")
    axes.set(xlabel=shortened(name, 40), ylabel="number of observations")
