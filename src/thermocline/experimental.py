"""Methods to be tried with care: of interest for comparison, and not held to the gates of the others."""

from thermocline.methods.adiabatic import AdiabaticMonteCarlo
from thermocline.methods.extended_hamiltonian import ExtendedHamiltonian
from thermocline.movers import Langevin

__all__ = ["AdiabaticMonteCarlo", "ExtendedHamiltonian", "Langevin"]
