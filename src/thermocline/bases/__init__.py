"""Bases: normalised densities that can be sampled exactly."""

from thermocline.bases.base import Base, BaseFit, NormalisedDensity, base_name, check_base, fresh_draws, sampled_rows
from thermocline.bases.gaussian import Gaussian, LowRankGaussian, StudentT
from thermocline.bases.mixture import Mixture, TiedMixture

BASES: dict[str, type] = {
    "gaussian": Gaussian,
    "low rank": LowRankGaussian,
    "student t": StudentT,
    "mixture": Mixture,
    "tied mixture": TiedMixture,
    "base": Base,
}
