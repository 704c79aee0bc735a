"""Bring your own sampler: the paper's density of (x, u) for any HMC, and a Result from the draws that it made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.bases import BaseFit, NormalisedDensity
from thermocline.engine.prepare import log_ratio_at
from thermocline.methods.method import Temperatures
from thermocline.methods.tuning import Tuning
from thermocline.opinions.own_draws import Ground, ground_of, in_force, result_of
from thermocline.paths import Continuous, Extended, Law, Logistic, Monotone, ladder_of
from thermocline.paths.control import ControlMap, control_at, control_given
from thermocline.paths.laws import log_masses
from thermocline.records import Draws, restored
from thermocline.results.result import Result
from thermocline.support.errors import ThermoclineError
from thermocline.support.flat import ravelled_rows, unravelled
from thermocline.support.optional import require
from thermocline.support.precision import cast, computing_in, to_numpy
from thermocline.support.pytree import pytree
from thermocline.target import Target, named_leaves

SAMPLER_ALONE = "The draws are those of a sampler outside the library; what it evaluated is counted only if it told."
NO_DIVERGENCES = "It did not say which of its draws diverged (`diverging=`), so that there is no check of them."


@pytree
class OwnSampler:
    """Stands where a run has its method: what drew (x, u) is not ours."""

    law: Law
    control_map: ControlMap

    has_evidence = True
    temperatures = Temperatures.LAW
    biases = ()


@dataclass(frozen=True, eq=False)
class ExtendedTarget:
    """The paper's density of (x, u), for any sampler that takes a JAX function of a dict of arrays.

    A position is a dict: the target's parameters by name and, beside them, the temperature control u, whose name is
    `control`: "u", with as many underscores as keep it from being a parameter's. `log_density` works in whatever
    precision is in force; `result` in double.
    """

    ground: Ground
    law: Law
    control_map: ControlMap
    control: str

    def log_density(self, position: Mapping[str, Any]) -> jax.Array:
        """Log base(x) + beta(u) r(x) - f(beta(u)) + log |d beta/du|, one number (eq. x-u-joint-density)."""
        if set(position) != set(self._shapes):
            raise ThermoclineError(f"a position has {', '.join(self._shapes)}; this one has {', '.join(position)}.")
        leaves = [jnp.asarray(position[name], float) for name in self._shapes]
        density = Extended(*in_force((self.ground.path, self.law, self.control_map)))
        value = density.log_density_at(jnp.concatenate([leaf.ravel() for leaf in leaves]))
        return value.astype(jnp.result_type(*(position[name] for name in self._shapes)))

    def potential(self, position: Mapping[str, Any]) -> jax.Array:
        """Minus `log_density`: NumPyro's `potential_fn`."""
        return -self.log_density(position)

    @property
    def initial_position(self) -> dict[str, jax.Array]:
        """Where the target starts, halfway along the path."""
        position = named_leaves(self.ground.path.target.initial_position)
        with computing_in("float64"):
            halfway = np.round(control_at(in_force(self.control_map), jnp.asarray(0.5)), 12)
        return _as_floats(position | {self.control: halfway})

    def initial_positions(self, num_chains: int, *, seed: int = 0) -> dict[str, jax.Array]:
        """A start for every chain, (chain, ...): exact draws of the base, and u given each."""
        draws = self.ground.base_draws()
        inside = np.flatnonzero(np.isfinite(draws.log_ratio))
        chosen = inside[np.arange(num_chains) % len(inside)]
        with computing_in("float64"):
            controls = np.asarray(_controls(seed, self.law, self.control_map, draws.log_ratio[chosen]))
        rows = np.concatenate([draws.position[chosen], controls[:, None]], axis=1)
        return _as_floats(self._by_name(rows))

    def to_nutpie(self) -> Any:
        """The density as a model that `nutpie.sample` takes, in double precision whatever is in force."""
        nutpie = require("nutpie", "nutpie.compiled_pyfunc", "nutpie")
        like, starts = dict(self._shapes), self.initial_positions(256)
        first = ravelled_rows([np.asarray(starts[name], float) for name in like])
        program = jax.jit(jax.value_and_grad(lambda row: self.log_density(_split(row, like))))

        def log_density(row: np.ndarray) -> tuple[float, np.ndarray]:
            with computing_in("float64"):
                value, gradient = program(jnp.asarray(row))
                return float(value), np.asarray(gradient)

        def by_name(row: np.ndarray) -> dict[str, np.ndarray]:
            return self._by_name(np.asarray(row))

        return nutpie.from_pyfunc(
            first.shape[1],
            lambda: log_density,
            lambda *_: by_name,
            [np.dtype(float)] * len(like),
            list(like.values()),
            list(like),
            make_initial_point_fn=lambda seed: first[seed % len(first)],
        )

    def result(
        self,
        draws: Any,
        *,
        diverging: Any = None,
        num_gradients: Any = None,
        search: bool = True,
        progress: bool = True,
    ) -> Result:
        """What `tc.sample` would give, from draws of `log_density` that any sampler has made after its warm-up.

        `draws` is a dict of arrays (chain, draw, ...) by name, an ArviZ InferenceData or xarray Dataset, or one array
        (chain, draw, parameter) in the order of `ravel_pytree(initial_position)`. `diverging` and `num_gradients`,
        (chain, draw), are taken from `sample_stats` where there is one. `search=False` leaves out the table of modes.
        """
        statistics = getattr(draws, "sample_stats", {})
        diverging = statistics.get("diverging") if diverging is None else diverging
        num_gradients = statistics.get("n_steps") if num_gradients is None else num_gradients
        rows = self._rows(getattr(draws, "posterior", draws))
        recorded = self._recorded(rows[..., :-1], rows[..., -1], diverging, num_gradients)
        notes = (SAMPLER_ALONE,) if diverging is not None else (SAMPLER_ALONE, NO_DIVERGENCES)
        unknown: Any = None  # how the sampler moved is its own affair
        method, tuning = OwnSampler(self.law, self.control_map), Tuning(unknown, unknown, self.law)
        return result_of(self.ground, method, tuning, recorded, search=search, progress=progress, notes=notes)

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Of every array of a position, by name, in our order: the target's, then u."""
        leaves = named_leaves(self.ground.path.target.initial_position)
        return {name: np.shape(leaf) for name, leaf in leaves.items()} | {self.control: ()}

    def _by_name(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Rows in our order as arrays by name."""
        return _split(rows, self._shapes)

    def _rows(self, draws: Any) -> np.ndarray:
        """Draws (chain, draw, coordinate), u last, in double precision."""
        if not hasattr(draws, "keys"):
            flat, like = np.asarray(draws, float), self._by_name(np.zeros(self._dimension))
            if flat.ndim != 3 or flat.shape[-1] != self._dimension:
                raise ThermoclineError(
                    f"draws have shape {flat.shape}; give (chain, draw, {self._dimension}), the parameters in the "
                    "order of ravel_pytree(extended.initial_position), or a dict of arrays by name."
                )
            draws = unravelled(flat, like)
        missing = [name for name in self._shapes if name not in draws]
        if missing:
            raise ThermoclineError(
                f"draws lack {', '.join(missing)}; give all of {', '.join(self._shapes)} as arrays (chain, draw, ...)."
            )
        leaves = {name: _values(draws[name]) for name in self._shapes}
        lead = leaves[self.control].shape
        for name, shape in self._shapes.items():
            if len(lead) != 2 or leaves[name].shape != (*lead, *shape):
                raise ThermoclineError(
                    f"draws of {name} have shape {leaves[name].shape}, those of {self.control} {lead}; "
                    f"give (chain, draw{''.join(f', {length}' for length in shape)}) for {name}, one chain as [None]."
                )
        return np.concatenate([leaf.reshape(*lead, -1) for leaf in leaves.values()], axis=-1)

    @property
    def _dimension(self) -> int:
        return self.ground.path.dimension + 1

    def _recorded(self, positions: np.ndarray, control: np.ndarray, diverging: Any, num_gradients: Any) -> Draws:
        """The draws as ours are recorded: their weights depend on x alone, through r."""
        unknown = np.full(control.shape, np.nan)
        with computing_in("float64"):
            log_ratio = log_ratio_at(self.ground.path, positions.reshape(-1, positions.shape[-1]))
            log_mass = log_masses(self.law, log_ratio).reshape(control.shape)
            beta = np.asarray(jax.vmap(self.control_map)(jnp.asarray(control.ravel()))).reshape(control.shape)
        log_ratio = log_ratio.reshape(control.shape)
        bad = ~np.isfinite(log_ratio)
        if bad.any():
            raise ThermoclineError(
                f"log density minus the base's is {log_ratio[bad][0]} at {bad.sum()} of {bad.size} draws: they are "
                "no draws of extended.log_density, or are of other, constrained coordinates."
            )
        counted = np.zeros(control.shape, int) if num_gradients is None else _shaped(num_gradients, control, int)
        known = {
            "position": positions,
            "inverse_temperature": beta,
            "log_ratio": log_ratio,
            "log_weight_target": log_ratio - log_mass,
            "log_weight_base": -log_mass,
            "acceptance": unknown,
            "is_divergent": unknown if diverging is None else _shaped(diverging, control, bool),
            "is_nonfinite": unknown,
            "num_gradients": counted,
            "jump_acceptance": np.zeros(control.shape),
        }
        return restored(known)


def extended(
    target: Target,
    *,
    base: NormalisedDensity | BaseFit | Callable[..., BaseFit] | None = None,
    control_map: ControlMap | None = None,
    law: Law | None = None,
    seed: int = 0,
    progress: bool = True,
) -> ExtendedTarget:
    """The paper's density of (x, u) on the path from a base to `target`, for a sampler of your own.

    Without a `base`, one is looked for as in `sample`. `control_map` takes u to beta, by default `tc.Logistic()`; any
    smooth increasing function onto (0, 1) will do. `law` is that of beta, by default the paper's: uniform but for
    z(beta) and log zeta. The law of another run's Result fits better where the path is long: `law=result.law`.
    """
    chosen_law: Law = Continuous() if law is None else law
    if ladder_of(chosen_law) is not None:
        raise ThermoclineError("u moves beta continuously and cannot use a Ladder; give tc.Continuous(...) as the law.")
    chosen = Logistic() if control_map is None else control_map
    if jax.tree_util.treedef_is_leaf(jax.tree.structure(chosen)):  # a plain function
        chosen = Monotone(chosen)
    with computing_in("float64"):
        chosen_law, chosen = to_numpy(cast((chosen_law, chosen), "float64"))
    ground = ground_of(target, base, seed, progress)
    names, control = named_leaves(ground.path.target.initial_position), "u"
    while control in names:
        control += "_"
    return ExtendedTarget(ground, chosen_law, chosen, control)


@jax.jit
def _controls(seed: int, law: Law, control_map: ControlMap, log_ratio: jax.Array) -> jax.Array:
    """U given x at each of many r."""
    keys = jax.random.split(jax.random.key(seed), log_ratio.size)
    return jax.vmap(lambda key, one: control_given(key, law, control_map, one))(keys, log_ratio)


def _split(rows: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Vectors along the last axis as arrays by name; of NumPy or of JAX, as they come."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])
    firsts = [0, *ends[:-1]]
    return {
        name: rows[..., first:end].reshape((*rows.shape[:-1], *shape))
        for (name, shape), first, end in zip(shapes.items(), firsts, ends, strict=True)
    }


def _as_floats(position: Mapping[str, Any]) -> dict[str, jax.Array]:
    return {name: jnp.asarray(leaf, float) for name, leaf in position.items()}


def _values(draws: Any) -> np.ndarray:
    """In double precision; axes of xarray in the order (chain, draw, ...)."""
    dims = getattr(draws, "dims", ())
    ordered = draws.transpose("chain", "draw", ...) if {"chain", "draw"} <= set(dims) else draws
    return np.asarray(ordered, float)


def _shaped(values: Any, control: np.ndarray, dtype: type) -> np.ndarray:
    """What was told of every draw, (chain, draw)."""
    array = _values(values)
    if array.shape != control.shape:
        raise ThermoclineError(f"what is told of the draws has shape {array.shape}; give one a draw, {control.shape}.")
    return array.astype(dtype)
