"""The paper's Radon model from a front end, sampled whole; `python -m tests.frontends.radon numpyro` does one."""

import sys
import time

import thermocline as tc
from experiments.radon.data import radon
from experiments.radon.exact import log_evidence
from experiments.radon.models import target_of


def timed(function):
    begun = time.perf_counter()
    return function(), time.perf_counter() - begun


def main(front_end: str) -> tuple[tc.Result, float]:
    """Sample it from a variational base, as the paper does; print what it took, beside ADVI and NUTS alone."""
    exact = log_evidence(radon())
    target, made = timed(lambda: target_of(front_end))
    fit, advi = timed(lambda: tc.fit_advi(target, seed=1))
    result, sampled = timed(
        lambda: tc.sample(target, seed=1, base=fit, target_error=0.04, progress=False, search=False)
    )
    plain = tc.Untempered(tc.NUTS())
    _, nuts = timed(
        lambda: tc.sample(
            target, seed=1, base=fit, method=plain, num_chains=4, num_draws=1000, progress=False, search=False
        )
    )
    estimate = result.log_evidence
    failed = [check.name for check in result.checks if not check.passed]
    print(f"{front_end}: log Z {estimate} (exact {exact:.4f}, z {estimate.z_score(exact):.2f})")
    print(f"  {result.verdict}, not passed: {failed}")
    print(f"  seconds, compiling too: target {made:.0f}, ADVI {advi:.0f}, tempering {sampled:.0f}, NUTS {nuts:.0f}")
    print(f"  of tempering {result.cost.seconds}", flush=True)
    return result, exact


if __name__ == "__main__":
    main(sys.argv[1])
