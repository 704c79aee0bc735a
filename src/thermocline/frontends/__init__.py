"""Front ends: models written elsewhere, as targets. A new one is one file and one line here."""

from collections.abc import Callable

from thermocline.frontends.numpy import from_numpy
from thermocline.frontends.numpyro import from_numpyro
from thermocline.frontends.pymc import from_pymc
from thermocline.frontends.stan import from_stan
from thermocline.target import Target

FRONT_ENDS: dict[str, Callable[..., Target]] = {
    "numpyro": from_numpyro,
    "pymc": from_pymc,
    "stan": from_stan,
    "numpy": from_numpy,
}

__all__ = ["FRONT_ENDS", "from_numpy", "from_numpyro", "from_pymc", "from_stan"]
