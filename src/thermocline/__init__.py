"""Continuously tempered Hamiltonian Monte Carlo: all the modes, and the evidence with its error."""

from thermocline.bases import Base, BaseFit, Gaussian
from thermocline.errors import CheckpointError, ThermoclineError, ThermoclineWarning
from thermocline.estimators import Estimate
from thermocline.methods import GibbsTempering, JointTempering, SimulatedTempering, Untempered
from thermocline.movers import HMC, NUTS
from thermocline.paths import Continuous, Ladder, Learned, Logistic, Monotone
from thermocline.result import Result, load, thermodynamic_integration
from thermocline.sample import extend, sample
from thermocline.target import Target

__all__ = [
    "HMC",
    "NUTS",
    "Base",
    "BaseFit",
    "CheckpointError",
    "Continuous",
    "Estimate",
    "Gaussian",
    "GibbsTempering",
    "JointTempering",
    "Ladder",
    "Learned",
    "Logistic",
    "Monotone",
    "Result",
    "SimulatedTempering",
    "Target",
    "ThermoclineError",
    "ThermoclineWarning",
    "Untempered",
    "extend",
    "load",
    "sample",
    "thermodynamic_integration",
]
