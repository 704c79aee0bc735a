"""Wrong targets, bases, options and methods, and the sentence that each gets."""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

import thermocline as tc
from tests.bad_cases import base, case, check_sentence, each_of, option
from tests.spoiled import BASE, START, WithoutDensity, WithoutSample, log_density, of, sample

WITH_NAN = np.array([1.0, np.nan, 2.0])
LADDER = tc.Ladder(np.array([0.0, 1.0]), np.zeros(2))
ELSEWHERE = ("the base draws positions of shape", "'x': (2,)", "same PyTree as `initial_position`")
SEED, INTEGER = "give an integer from 0 to 2**32 - 1", "give an integer of at least"
ERROR, CHUNK = "give a positive standard error of log Z, or None", "give a positive number of steps, or None"
PRECISION = "choose one of float64, float32"


def target_with(part: str, value: Any) -> Any:
    return sample(tc.Target(log_density, START, **{part: value}))


TABLE = [
    # the target
    case("a function for a target", lambda: sample(log_density), "the target is of type function", "tc.Target("),
    *(
        case(
            f"log density {shown} at the start",
            partial(of, lambda p, value=value: jnp.where(p["scale"] > 1, log_density(p), value)),
            f"log density is {shown} at the initial position",
            "scale = 0.25",
            "x = [0.5, -1]",
            "`initial_position` inside the support",
        )
        for value, shown in ((-jnp.inf, "-inf"), (jnp.nan, "nan"), (jnp.inf, "inf"))
    ),
    case(
        "NaN gradient at the start",
        lambda: of(
            lambda p: log_density(p) + jnp.where(p["scale"] == 0, 0.0, jnp.sqrt(p["scale"])), {**START, "scale": 0.0}
        ),
        "gradient of log density with respect to scale is not finite",
        "(scale = 0)",
        "start elsewhere",
    ),
    case(
        "NaN in the start",
        lambda: of(log_density, {"x": np.array([0.5, np.nan]), "scale": 0.0}),
        "parameter x is [0.5 nan]",
        "give finite values",
    ),
    case(
        "a vector for a density", lambda: of(lambda p: -0.5 * p["x"] ** 2), "(2,)", "one number is needed; sum the log"
    ),
    case(
        "an integer for a density", lambda: of(lambda p: jnp.sum(p["x"]).astype(int)), "of type int", "return a float"
    ),
    case("no density at all", lambda: of(lambda p: None), "returns None where one number is needed"),
    case(
        "a density that wants data",
        lambda: of(lambda p, data: log_density(p)),
        "log_density(position) could not be called",
        "data",
    ),
    case(
        "a data entry that is not there",
        lambda: sample(tc.Target(lambda p, data: -((p - data["mu"]) ** 2), 0.5, {"y": 1.0})),
        "test_bad_input.py, line ",
        "KeyError: 'mu', which is among neither: parameters are x; data are y.",
    ),
    case(
        "data of another shape",
        lambda: sample(tc.Target(lambda p, data: -jnp.sum((p - data) ** 2), np.zeros(3), np.zeros(4))),
        "test_bad_input.py, line ",
        "incompatible shapes for broadcasting: (3,), (4,)",
    ),
    case(
        "a Python branch on a parameter",
        lambda: of(lambda p: p["scale"] if p["scale"] > 0 else -p["scale"]),
        "Write it with jax.numpy and jnp.where",
    ),
    case(
        "NaN in the data",
        lambda: sample(tc.Target(lambda p, data: -jnp.sum((p - data["y"]) ** 2), 0.5, {"n": 2.0, "y": WITH_NAN})),
        "log density is nan at the initial position (x = 0.5)",
        "data y is NaN or infinite at 1 of 3 places, first at [1]",
        "leave these observations out",
    ),
    case(
        "NaN in an array around the density",
        lambda: of(lambda p: -jnp.sum((p["scale"] - WITH_NAN) ** 2)),
        "data WITH_NAN is NaN or infinite at 1 of 3 places",
    ),
    case(
        "a constant density",
        lambda: of(lambda p: 0.0 * p["scale"]),
        "log density does not change with scale, moved as far as 1e+12 from the start",
        "Give the parameter a proper prior",
    ),
    case(
        "a parameter that nothing depends on",
        lambda: of(lambda p: -jnp.sum(p["x"] ** 2)),
        "log density does not change with scale",
        "or leave it out",
    ),
    case(
        "an improper posterior that runs away",
        lambda: tc.sample(tc.Target(lambda x: jnp.sum(x), np.zeros(2)), progress=False),
        "the log density rises without end",
        "Give every parameter a proper prior",
    ),
    case(
        "a discrete parameter",
        lambda: of(log_density, {"x": np.array([1, 2]), "scale": 0.0}),
        "parameter x is of type int",
        "sum a discrete latent out",
    ),
    *(
        case(f"an empty model {start!r}", partial(of, lambda p: jnp.zeros(()), start), "the model has no parameters")
        for start in ({}, {"x": np.zeros(0)}, [])
    ),
    case(
        "two parameters of one name",
        lambda: of(lambda p: jnp.zeros(()), {"a.b": 0.0, "a": {"b": 0.0}}),
        "two parameters share a name",
        "rename one",
    ),
    case(
        "-inf wherever the base draws",
        lambda: of(lambda p: jnp.where(p["scale"] > 50, log_density(p), -jnp.inf), {**START, "scale": 60.0}),
        "log density is -inf at all 4096 draws of the base",
        "Give a base that covers it",
    ),
    case(
        "NaN where the base draws",
        lambda: of(lambda p: log_density(p) + 0 * jnp.log(1.5 - p["scale"])),
        "is nan at",
        "of 4096 draws of the base, first at scale = ",
        "return -inf off the support",
    ),
    *(
        case(f"{name} of the target", partial(target_with, name, 3.0), f"{name} of the target is 3.0", remedy)
        for name, remedy in (
            ("caveats", "give a tuple of strings"),
            ("observed", "give a tuple of strings"),
            ("labels", "give thermocline.target.Labels"),
            ("predict", "give a function, or None"),
            ("prior", "which has no `log_density`"),
            ("name", "give a string"),
        )
    ),
    case(
        "an observed datum that is not there",
        partial(target_with, "observed", ("y",)),
        "observed names y, which is not among the target's data",
    ),
    case(
        "a prior of another shape",
        lambda: sample(tc.Target(log_density, START, prior=tc.Gaussian.diagonal({"x": np.zeros(2)}, 1.0)), base=None),
        "the prior draws positions of shape",
        "same PyTree as `initial_position`",
    ),
    # the base
    base("of another shape", tc.Gaussian.diagonal({"x": np.zeros(3), "scale": 0.0}, 1.0), *ELSEWHERE),
    base("with a parameter missing", tc.Gaussian.diagonal({"x": np.zeros(2)}, 1.0), *ELSEWHERE),
    base("with another name", tc.Gaussian.diagonal({"x": np.zeros(2), "width": 0.0}, 1.0), *ELSEWHERE),
    base("of another structure", tc.Gaussian.diagonal(np.zeros(3), 1.0), *ELSEWHERE),
    base(
        "whose scale does not fit",
        tc.Gaussian(BASE.mean, np.ones(4)),
        "the base cannot be sampled",
        "of the same size?",
    ),
    base("without sample", WithoutSample(1.0), "the base has no `sample`", "tc.Base(log_density, sample)"),
    base("without log_density", WithoutDensity(1.0), "the base has no `log_density`"),
    base("with None for a function", tc.Base(log_density, None), "the base has no `sample`"),
    base("that is a word", "laplace", "the base has no `log_density`"),
    base(
        "with a vector for a density",
        tc.Base(lambda p: -0.5 * p["x"] ** 2, lambda key: START),
        "the base's log_density returns",
        "one number is needed",
    ),
    # options
    case("a misspelt option", lambda: sample(sed=0), "sample has no option 'sed'; did you mean seed?"),
    case("an option of nothing", lambda: sample(colour="red"), "sample has no option 'colour'; there are target, seed"),
    case("a misspelt option of a method", lambda: tc.HMC(stepsize=0.1), "HMC has no option 'stepsize'", "step_size?"),
    case("a misspelt field", lambda: tc.Target(log_density, initial=0), "did you mean initial_position?"),
    *(option("seed", value, SEED) for value in (-1, 2**32, 1.5, "1", None)),
    *(option("num_chains", value, INTEGER) for value in (0, 2.5)),
    option("num_warmup", -1, INTEGER),
    option("num_draws", 0, INTEGER),
    *(option("target_error", value, ERROR) for value in (0.0, -0.1, float("nan"), "small")),
    *(option("chunk_size", value, CHUNK) for value in (0, "many")),
    *(option("precision", value, PRECISION) for value in ("float16", 64)),
    # methods
    case("a method by name", lambda: sample(method="gibbs"), "method is 'gibbs'", "such as tc.GibbsTempering()"),
    case(
        "a class for a method",
        lambda: sample(method=tc.JointTempering),
        "method is <class",
        "such as tc.GibbsTempering()",
    ),
    *(
        case(
            f"joint tempering on a {type(law).__name__}",
            partial(sample, method=tc.JointTempering(law=law)),
            "cannot use a Ladder; use GibbsTempering",
        )
        for law in (LADDER, tc.Learned(LADDER))
    ),
    case(
        "an error to aim at without evidence",
        lambda: sample(method=tc.Untempered(), target_error=0.1, num_draws=None),
        "target_error is of the log evidence, which this method cannot give; set num_draws",
    ),
]


@each_of(TABLE)
def test_bad_input_gets_its_sentence(wrong):
    check_sentence(wrong)
