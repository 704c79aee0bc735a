"""The problems on which peers are compared: each with an exact evidence, none of them used to make the library."""

from collections.abc import Callable
from functools import partial

from benchmarks.peers.models import poisson_mixture, regression, simplex
from benchmarks.peers.record import Problem
from benchmarks.peers.synthetic import asymmetric, crossed_funnel, log_normal, ring, student, von_mises

THREE, TWO = "asymmetric 2-D", "asymmetric 15-D"

PROBLEMS: dict[str, Callable[[], Problem]] = {
    THREE: partial(asymmetric, THREE, [0.55, 0.3, 0.15], [1.0, 0.4, 0.7], 12.0, 2, 1),
    "ring 3-D": ring,
    "Poisson mixture 5-D": poisson_mixture,
    "von Mises 5-D": von_mises,
    "crossed funnel 8-D": crossed_funnel,
    "simplex 9-D": simplex,
    "Student's t 10-D": student,
    "log-normal 12-D": log_normal,
    TWO: partial(asymmetric, TWO, [0.72, 0.28], [1.0, 0.75], 15.0, 15, 2),
    "regression 30-D": partial(regression, 30),
    "regression 100-D": partial(regression, 100),
}
