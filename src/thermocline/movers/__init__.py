"""Movers: transitions that leave one density of the path invariant."""

from thermocline.movers.hmc import HMC, NUTS, Keys, Langevin, Move, Mover, leapfrog, metropolis
from thermocline.movers.metric import Metric, Scale, metric_of
