"""Methods: ways to explore the path from base to target."""

from thermocline.methods.annealed_importance import AnnealedImportance
from thermocline.methods.gibbs import GibbsTempering, SimulatedTempering
from thermocline.methods.joint import JointTempering
from thermocline.methods.method import Method, Temperatures, check_method, describe_method, method_fingerprint
from thermocline.methods.parallel_tempering import ParallelTempering
from thermocline.methods.sequential import SequentialMonteCarlo
from thermocline.methods.tempered_transitions import TemperedTransitions
from thermocline.methods.untempered import Untempered

METHODS = {
    "gibbs": GibbsTempering,
    "joint": JointTempering,
    "simulated": SimulatedTempering,
    "parallel": ParallelTempering,
    "annealed": AnnealedImportance,
    "sequential": SequentialMonteCarlo,
    "transitions": TemperedTransitions,
    "untempered": Untempered,
}

__all__ = [
    "METHODS",
    "AnnealedImportance",
    "GibbsTempering",
    "JointTempering",
    "Method",
    "ParallelTempering",
    "SequentialMonteCarlo",
    "SimulatedTempering",
    "Temperatures",
    "TemperedTransitions",
    "Untempered",
    "check_method",
    "describe_method",
    "method_fingerprint",
]
