"""Models whose log Z is not their evidence get a caveat, and others none."""

import pytest

from tests.frontends.test_bad_models import from_numpyro_with, from_pymc_with
from thermocline.frontends.stan_caveats import caveats_of


def improper(numpyro, dist, name):
    numpyro.sample(name, dist.ImproperUniform(dist.constraints.positive, (), ()))


def masked(numpyro, dist, name):
    with numpyro.handlers.mask(mask=False):
        numpyro.sample(name, dist.Normal(0, 1))


def powered(numpyro, dist, name):
    with numpyro.handlers.scale(scale=0.5):
        numpyro.sample(name, dist.Normal(0, 1))


def ordered(pm):
    pm.modelcontext(None).add_coord("rank", range(3))
    in_order = {"transform": pm.distributions.transforms.ordered, "initval": [-1, 0, 1]}
    pm.Normal("site", 0, 1, dims="rank", **in_order)


CAVEATS = {
    "numpyro: improper": (from_numpyro_with(improper), "The prior of site is improper (ImproperUniform)"),
    "numpyro: factor": (
        from_numpyro_with(lambda numpyro, dist, name: numpyro.factor(name, -1.0)),
        "numpyro.factor site multiplies the density",
    ),
    "numpyro: masked prior": (from_numpyro_with(masked), "The prior of site is masked"),
    "numpyro: power": (from_numpyro_with(powered), "Site site is raised to a power"),
    "pymc: Flat": (from_pymc_with(lambda pm: pm.Flat("site")), "The prior of site is improper (pm.Flat)"),
    "pymc: HalfFlat": (from_pymc_with(lambda pm: pm.HalfFlat("site")), "improper (pm.HalfFlat)"),
    "pymc: Potential": (
        from_pymc_with(lambda pm: pm.Potential("site", -(pm.Normal("x") ** 2))),
        "pm.Potential site multiplies the density",
    ),
    "pymc: ordered": (from_pymc_with(ordered), "log Z then lacks a constant (log 3! for exchangeable values)"),
}


@pytest.mark.parametrize("what", CAVEATS)
def test_a_model_without_an_evidence_of_its_own_says_so(what):
    make, said = CAVEATS[what]
    target = make()
    assert len(target.caveats) == 1
    assert said in target.caveats[0]
    assert (target.prior is None) == ("improper" in said or "masked" in said)


@pytest.mark.parametrize("front_end", ["numpyro", "pymc"])
def test_proper_models_have_no_caveats(front_end):
    make = {
        "numpyro": from_numpyro_with(
            lambda numpyro, dist, name: numpyro.sample(name, dist.TruncatedNormal(0, 1, low=0))
        ),
        "pymc": from_pymc_with(lambda pm: pm.TruncatedNormal("site", 0, 1, lower=0)),
    }[front_end]
    assert make().caveats == ()


def program(parameters, model):
    return f"data {{ int N; vector[N] y; real m; }} parameters {{ {parameters} }} model {{ {model} y ~ normal(0, 1); }}"


@pytest.mark.parametrize(
    ("parameters", "model", "said"),
    [
        ("real x;", "", "x has no prior of its own in the program, so Stan takes an improper flat one"),
        ("real<lower=0> x;", "y ~ normal(0, x);", "improper flat one"),
        ("real<lower=0, upper=3> x;", "", "a density of 1 on its support, which is not normalised"),
        ("simplex[3] x;", "", "a density of 1 on its support"),
        ("real<lower=0> x;", "x ~ normal(0, 1);", "lacks the constant of the truncation. Write T[0, ] behind it"),
        ("real<lower=m> x;", "x ~ cauchy(0, 1);", "Write T[m, ] behind it"),
        ("vector<upper=2>[3] x;", "x ~ std_normal();", "Write T[, 2] behind it"),
        ("real<lower=0, upper=9> x;", "x ~ gamma(2, 1);", "Write T[0, 9] behind it"),
        ("real<lower=0, upper=0.5> x;", "x ~ beta(2, 1);", "Write T[0, 0.5] behind it"),
        ("real<lower=0, upper=5> x;", "x ~ uniform(0, 10);", "Write T[0, 5] behind it"),
        ("real<lower=0> x;", "target += normal_lpdf(x | 0, 1);", "lacks the constant of the truncation"),
        ("ordered[3] x;", "x ~ normal(0, 1);", "(log K! for K exchangeable values in order)"),
        ("real x;", "x ~ normal(0, 1); target += -x^4;", "`target += -x^4` adds something that is not visibly"),
        ("real<lower=0> x;", "log(x) ~ normal(0, 1);", "is about a function of a parameter"),
        ("real<lower=0> x;", "real s; s = sqrt(x); s ~ gamma(2, 1);", "`s ~ gamma(2, 1)` is about a function"),
        ("array[4] real<lower=0> x;", "x[{1, 3}] ~ gamma(2, 1); x[{2, 4}] ~ normal(0, 1);", "`x[{2, 4}] ~ normal"),
        ("real<lower=0, upper=1> a; real<lower=0, upper=(1 - a)> x;", "", "x has no prior of its own"),
        ("real<lower=0.5> x;", "x ~ beta(2, 1);", "Write T[0.5, ] behind it"),
        ("real<lower=0> x;", "x ~ normal(0, 1) T[, 5];", "Write T[0, ] behind it"),
        ("unit_vector[3] x;", "", "a density of 1 on its support"),
        ("positive_ordered[2] x;", "x[1] ~ normal(0, 1);", "(positive_ordered): log Z lacks a constant; add it"),
        ("real x;", "x ~ normal(0, 1); x ~ cauchy(0, 1);", "x has more than one prior (`x ~ normal(0, 1)`, `x ~"),
    ],
)
def test_a_stan_program_without_an_evidence_of_its_own_says_so(parameters, model, said):
    caveats = caveats_of(program(parameters, model))
    assert len(caveats) == 1
    assert any(said in caveat for caveat in caveats)


@pytest.mark.parametrize(
    ("parameters", "model"),
    [
        ("real x;", "x ~ normal(m, 1);"),
        ("real<lower=0> x;", "x ~ normal(0, 1) T[0, ];"),
        ("real<lower=0> x;", "target += normal_lpdf(x | 0, 1) - normal_lccdf(0 | 0, 1);"),
        ("real<lower=0> x; vector[3] z;", "x ~ gamma(2, 1); for (i in 1:3) { z[i] ~ normal(0, x); }"),
        ("real<lower=0, upper=1> x;", ""),
        ("real<lower=0, upper=1> x;", "x ~ beta(2, 3);"),
        ("real<lower=-1, upper=5> x;", "x ~ uniform(-1, 5);"),
        ("simplex[3] x; cholesky_factor_corr[2] L;", "x ~ dirichlet(rep_vector(1, 3)); L ~ lkj_corr_cholesky(2);"),
        ("matrix[2, 2] x;", "to_vector(x) ~ std_normal();"),
        (
            "real x; real<lower=0, upper=1> w;",
            "x ~ normal(0, 1); target += log_mix(w, normal_lpdf(y | x, 1), normal_lpdf(y | 0, 1));",
        ),
        (
            "real x;",
            "x ~ normal(0, 1); vector[2] lp; lp[1] = normal_lpdf(y[1] | x, 1); lp[2] = 0; target += log_sum_exp(lp);",
        ),
        ("real<lower=0> x;", "x ~ beta(2, 3);"),
        ("real<lower=-1> x; real<lower=0, upper=9> z;", "x ~ gamma(2, 1); z ~ uniform(0.0, 9.0);"),
        ("real<lower=m> x;", "x ~ pareto(m, 2);"),
        ("simplex[2] x; simplex[K] z;", ""),
        ("real<lower=0, upper=K> x;", "x ~ uniform(0, 2);"),
        ("real x;", "x ~ normal(0, 1); log(y) ~ normal(x, 1);"),
        ("real x;", "x ~ normal(0, 1); vector[N] e; e = y - x; e ~ normal(0, 1);"),
        ("vector[4] x;", "head(x, 2) ~ normal(0, 1); tail(x, 2) ~ normal(0, 5);"),
        ("real x;", "if (N > 1) { x ~ normal(0, 1); } else { x ~ cauchy(0, 1); }"),
    ],
)
def test_a_stan_program_with_normalised_pieces_has_no_caveats(parameters, model):
    assert caveats_of(program(parameters, model), {"K": 2}) == ()


def test_a_density_in_a_function_of_the_program_counts():
    functions = "functions { real of(vector y, real x) { return normal_lpdf(y | x, 1); } } "
    assert caveats_of(functions + program("real x;", "x ~ normal(0, 1); target += of(y, x);")) == ()
