"""Bases: normalised densities that can be sampled exactly."""

from thermocline.bases.base import Base, BaseFit, NormalisedDensity, check_base, fresh_draws, initial_scale
from thermocline.bases.gaussian import Gaussian

BASES: dict[str, type] = {"gaussian": Gaussian, "base": Base}

__all__ = ["BASES", "Base", "BaseFit", "Gaussian", "NormalisedDensity", "check_base", "fresh_draws", "initial_scale"]
