"""Wrong questions to a result, files, comparisons and draws, and the sentence that each gets."""

from functools import partial

import numpy as np

import thermocline as tc
from tests.bad_cases import case, check_sentence, each_of, evidence
from tests.spoiled import (
    START,
    checkpoint_of_another_run,
    damaged_checkpoint,
    file,
    folder,
    foreign,
    log_density,
    result,
    sample,
    saved,
    untempered,
    with_header,
)

DICT = "compare takes a dict of at least two results by model name"

TABLE = [
    # questions to a result
    evidence("the partition function", lambda r: r.log_partition([0.5])),
    evidence("bounds on the partition function", lambda r: r.log_partition_bounds([0.5])),
    evidence("the marginal of beta", lambda r: r.beta_marginal([0.5])),
    evidence("expectations under the base", lambda r: r.base_expectation(lambda p: p["scale"])),
    evidence("KL divergences", lambda r: r.kl_base_to_target),
    evidence("KL divergences", lambda r: r.kl_target_to_base),
    evidence("thermodynamic integration", tc.thermodynamic_integration),
    case(
        "a probability of one", lambda: result().quantile(lambda p: p["scale"], 1.0), "probability is 1.0", "strictly"
    ),
    case("beta beyond one", lambda: result().log_partition(1.5), "inverse temperatures lie between 0 and 1"),
    case("no draws of the posterior", lambda: result().posterior(0), "num_draws is 0; give a positive integer"),
    case(
        "a page in no folder", lambda: result().report(folder() / "no" / "r.html"), "cannot be written", "folder exist?"
    ),
    case("a file in no folder", lambda: result().save(folder() / "no" / "r.nc"), "cannot be written", "folder exist?"),
    # files and folders
    case("a file that is not there", lambda: tc.load(folder() / "missing.nc"), "missing.nc does not exist"),
    case("a folder for a file", lambda: tc.load(folder()), "does not exist or is not a file"),
    case("a text file", lambda: tc.load(file("text.nc", b"text")), "text.nc cannot be read as a thermocline result"),
    case("a file cut short", lambda: tc.load(file("cut.nc", saved().read_bytes()[:20_000])), "cut.nc cannot be read"),
    case("a foreign file", lambda: tc.load(foreign()), "is a netCDF file, but not one that Result.save wrote"),
    *(
        case(
            f"a damaged header {header}", partial(lambda header: tc.load(with_header(header)), header), "is damaged, or"
        )
        for header in ("{", "[]", "{}", '{"names": {}, "run": {"class": 1}}')
    ),
    case(
        "a checkpoint where nothing can be written",
        lambda: sample(checkpoint="/proc/thermocline/run"),
        "the checkpoint folder /proc/thermocline/run cannot be written",
        "choose another folder",
    ),
    case(
        "a file for a checkpoint",
        lambda: sample(checkpoint=file("f", b"")),
        "cannot be written",
        "choose another folder",
    ),
    case("a damaged checkpoint", lambda: sample(checkpoint=damaged_checkpoint()), "it is damaged or not ours"),
    case(
        "another run's checkpoint",
        lambda: sample(checkpoint=checkpoint_of_another_run(), seed=1),
        "belongs to another run: seed differs",
        "or choose an empty folder",
    ),
    case(
        "going on with another target",
        lambda: tc.extend(result(), tc.Target(lambda p: 2 * log_density(p), START), progress=False),
        "cannot go on with another target: what it computes differs",
    ),
    # comparisons
    case("one model to compare", lambda: tc.compare({"one": result()}), DICT),
    case("a list to compare", lambda: tc.compare([result(), result()]), DICT),
    case("a number to compare", lambda: tc.compare({"a": result(), "b": -3.0}), "b is a float", "results of tc.sample"),
    case("no evidence to compare", lambda: tc.compare({"a": result(), "b": untempered()}), "b has no evidence"),
    case(
        "a reason that is none",
        lambda: tc.compare({"a": result(), "b": result()}, despite="luck"),
        "despite names luck; choose among verdict, data, caveats",
    ),
    case(
        "prior weights of other models",
        lambda: tc.compare({"a": result(), "b": result()}, prior={"a": 1, "c": 1}, despite="verdict"),
        "prior weights a, c, but the models are a, b",
    ),
    case(
        "a prior weight of zero",
        lambda: tc.compare({"a": result(), "b": result()}, prior={"a": 0, "b": 1}, despite="verdict"),
        "the prior weight of a is 0",
        "positive number",
    ),
    # fits from draws
    case("draws that are no draws", lambda: tc.fit_moments(3.0), "give a Result, or a pair"),
    case(
        "weights of another length",
        lambda: tc.fit_moments((np.zeros((5, 2)), np.zeros(4))),
        "5 positions but log weights",
    ),
]


@each_of(TABLE)
def test_a_bad_question_gets_its_sentence(wrong):
    check_sentence(wrong)
