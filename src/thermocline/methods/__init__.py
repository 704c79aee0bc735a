"""Methods: ways to explore the path from base to target."""

from thermocline.methods.annealing import AnnealedImportance, TemperedTransitions
from thermocline.methods.continuous import GibbsTempering, JointTempering, SimulatedTempering, Untempered
from thermocline.methods.method import Method, Temperatures, check_method, describe_method, method_fingerprint
from thermocline.methods.parallel_tempering import ParallelTempering
from thermocline.methods.sequential import SequentialMonteCarlo

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
