"""PyTensor's graphs of a PyMC model as JAX functions, with what PyTensor's translation and PyMC's densities lack."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from thermocline.frontends.common import check_data, off_support
from thermocline.support import special
from thermocline.support.errors import ThermoclineError


class Graphs:
    """PyTensor graphs of a model as JAX functions of (position, data)."""

    def __init__(self, model: Any, *, has_constants: bool) -> None:
        from pytensor.graph.basic import Constant
        from pytensor.graph.traversal import ancestors

        self.model = model
        self.correction = sum(lost_by_lkj(rv) + (lost_by_areas(rv) or 0.0) for rv in model.free_RVs)
        self.inputs = list(model.value_vars)
        self.variables: dict[str, Any] = {var.name: var for var in model.data_vars}
        for rv in model.observed_RVs:
            value = model.rvs_to_values[rv]
            if isinstance(value, Constant):
                self.variables[rv.name] = value
        constants = [var for var in ancestors([model.logp()]) if isinstance(var, Constant) and has_constants]
        arrays = [var for var in constants if isinstance(var.data, np.ndarray) and var.data.size > 1]
        for i, constant in enumerate(var for var in arrays if var.data.dtype.kind == "f"):
            if all(constant is not var for var in self.variables.values()):
                self.variables[constant.name or f"constant {i}"] = constant
        # Copies: JAX (0.10) remembers an array that a program of single precision holds, and would round it.
        self.values = {name: np.array(value_of(var)) for name, var in self.variables.items()}

    def observed(self, data: dict[str, Any]) -> tuple[str, ...]:
        """The data that are observed as they are, if that is all that is observed."""
        held = {id(var): name for name, var in self.variables.items() if name in data}
        names = [held.get(id(self.model.rvs_to_values[rv])) for rv in self.model.observed_RVs]
        return tuple(name for name in names if name) if all(names) else ()

    def log_density(self, variables: list[Any] | None) -> Any:
        """The log density of some of the variables, or of the model.

        Off the support are numbers of pm.LKJCorr, each in (-1, 1), that are no correlation matrix, for one.
        """
        call = self.function([self.model.logp(variables)], ["log density"])

        def log_density(position: Any, data: Any) -> jax.Array:
            return off_support(jnp.asarray(call(position, data)["log density"]) + self.correction)

        return log_density

    def function(self, outputs: list[Any], names: list[str] | None = None) -> Any:
        """Graphs as a function to a dict by name."""
        from pymc.sampling.jax import get_jaxified_graph
        from pytensor.graph.replace import clone_replace
        from pytensor.tensor.type import tensor

        names = [var.name for var in outputs] if names is None else names
        inputs = {
            name: tensor(f"data {i}", dtype=value.dtype.name, shape=value.shape)
            for i, (name, value) in enumerate(self.values.items())
        }
        replaced: list[Any] = clone_replace(outputs, {self.variables[name]: new for name, new in inputs.items()})
        compiled = get_jaxified_graph([*self.inputs, *inputs.values()], replaced)
        order, values = [var.name for var in self.inputs], self.values

        def call(position: Any, data: Any) -> Any:
            check_data(data, values)
            given = (data.get(name, value) for name, value in values.items())
            results = compiled(*(position[name] for name in order), *given)
            return dict(zip(names, results, strict=True))

        return call


def translated(model: Any, guess: dict[str, np.ndarray]) -> tuple[Graphs, Any]:
    """The model in JAX; its constants are data unless JAX lacks an operation on them: PyTensor then does it itself."""
    for has_constants in (True, False):
        try:
            graphs = Graphs(model, has_constants=has_constants)
            log_density = graphs.log_density(None)
            jax.eval_shape(log_density, guess, {})
        except Exception as error:
            if isinstance(error, ValueError | TypeError) and not has_constants:  # the model's own shapes
                raise
            said = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        else:
            return graphs, log_density
    raise ThermoclineError(
        f"PyTensor cannot translate the model to JAX ({said}); write it with other operations, or give its log density "
        "and gradient to tc.from_numpy."
    )


def give_erfcx() -> None:
    """Let PyTensor translate what normal tails need; where a branch not taken overflows, slopes would be NaN."""
    from pytensor.link.jax.dispatch.basic import jax_funcify
    from pytensor.scalar.math import Erfcx

    def erfcx(x: Any) -> jax.Array:
        x = jnp.asarray(x)
        lowest = -((0.9 * jnp.log(jnp.finfo(x.dtype).max)) ** 0.5)
        return jax.scipy.special.erfcx(jnp.maximum(x, lowest.astype(x.dtype)))

    translations: Any = jax_funcify
    translations.register(Erfcx)(lambda op, **_: erfcx)


def lost_by_lkj(rv: Any) -> float:
    """What PyMC's log density of an LKJ variable lacks: its constant is added with the wrong sign (5.28).

    Measured at the identity matrix, where the log density is the constant alone (Lewandowski et al. 2009, eq. 17),
    so that it is zero where PyMC is right.
    """
    import pymc

    kind = type(rv.owner.op).__name__
    if "LKJCorr" not in kind and "LKJCholeskyCov" not in kind:
        return 0.0
    place = -2 if "LKJCorr" in kind else 1
    size, shape = int(rv.owner.inputs[place].eval()), float(rv.owner.inputs[place + 1].eval())
    pairs = size * (size - 1) // 2
    stated = pymc.logp(pymc.LKJCorr.dist(n=size, eta=shape, return_matrix=False), np.zeros(pairs)).eval()
    half, k = 0.5 * (size - 1), np.arange(1, size)
    true = -np.sum(0.5 * k * np.log(np.pi) + special.gammaln(shape + half - 0.5 * k) - special.gammaln(shape + half))
    own = pairs if place == -2 else pairs + size
    return float(true - stated) * (np.size(rv.eval()) // own)


def lost_by_areas(rv: Any) -> float | None:
    """What PyMC's log density of a pm.CAR lacks: half log |D| of its areas' numbers of neighbours, and (2 pi)^(-n/2).

    None where nobody knows: the neighbours are no constant, or there are several fields in one variable.
    """
    from pytensor.graph.basic import Constant

    if type(rv.owner.op).__name__ != "CARRV":
        return 0.0
    neighbours = rv.owner.inputs[-4]
    while neighbours.owner is not None and len(neighbours.owner.inputs) == 1:  # made dense, or with more axes
        neighbours = neighbours.owner.inputs[0]
    if not isinstance(neighbours, Constant) or rv.ndim != 1:
        return None
    numbers = np.ravel(np.asarray(neighbours.data.sum(axis=0)))
    return float(0.5 * np.sum(np.log(numbers)) - 0.5 * numbers.size * np.log(2 * np.pi))


def can_be_drawn(model: Any) -> bool:
    """Whether PyMC can draw from the prior: not from pm.ICAR, nor from a user's distribution that does not say how."""
    import pymc
    from pymc.distributions.custom import CustomDistRV

    def is_doubtful(op: Any) -> bool:
        is_own = not type(op).__module__.startswith(("pymc.", "pytensor."))
        return is_own or isinstance(op, CustomDistRV) or type(op).__name__ == "ICARRV"

    doubtful = [rv for rv in model.free_RVs if is_doubtful(rv.owner.op)]
    if not doubtful:
        return True
    try:
        pymc.draw(doubtful, random_seed=0)
    except NotImplementedError:
        return False
    return True


def value_of(variable: Any) -> Any:
    """What a constant, a shared variable or an expression of these holds."""
    if hasattr(variable, "get_value"):
        return variable.get_value()
    return variable.data if hasattr(variable, "data") else variable.eval()
