"""Front ends: models written elsewhere, as targets. A new one is one file and one line here."""

from thermocline.frontends.host import from_numpy
from thermocline.frontends.numpyro import from_numpyro
from thermocline.frontends.pymc import from_pymc
from thermocline.frontends.stan import from_stan

__all__ = ["from_numpy", "from_numpyro", "from_pymc", "from_stan"]
