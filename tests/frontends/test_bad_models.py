"""Models that cannot be sampled get a sentence; those whose log Z is not their evidence get a caveat."""

import numpy as np
import pytest

import thermocline as tc
from tests.frontends.test_conjugate import NO_COMPILER
from thermocline.frontends.stan_caveats import caveats_of

Y = np.array([0.5, -1.0, 2.0])


def numpyro_model(*sites):
    """A model from pairs of a name and a function of the name that makes a site."""

    def model(y):
        import numpyro
        import numpyro.distributions as dist

        for name, make in sites:
            make(numpyro, dist, name)
        numpyro.sample("y", dist.Normal(0, 1), obs=y)

    return model


def pymc_model(build, *, observed=Y):
    import pymc as pm

    with pm.Model() as model:
        build(pm)
        if observed is not None:
            pm.Normal("y", 0, 1, observed=observed)
    return model


def a_normal(numpyro, dist, name):
    numpyro.sample(name, dist.Normal(0, 1))


def from_numpyro_with(make, y=Y):
    return lambda: tc.from_numpyro(numpyro_model(("x", a_normal), ("site", make)), y)


def from_pymc_with(build, **options):
    return lambda: tc.from_pymc(pymc_model(build, **options))


def subsampled(numpyro, dist, name):
    with numpyro.plate(name, 10, subsample_size=3):
        pass


def data_gone_missing(pm):
    data = pm.Data("measured", np.zeros(2))
    pm.Normal("z", pm.Normal("x"), observed=data)
    data.set_value(np.array([1.0, np.nan]))


SHORT = "parameters { real x; } model { x ~ normal(0, 1); }"
BAD = {  # what is wrong: (call, what the sentence says)
    "numpyro: no function": (lambda: tc.from_numpyro("model", Y), "model is 'model'; give a function"),
    "numpyro: wrong arguments": (
        lambda: tc.from_numpyro(numpyro_model(("x", a_normal))),
        "cannot be called with these arguments: missing a required argument: 'y'",
    ),
    "numpyro: discrete latent": (
        from_numpyro_with(lambda numpyro, dist, name: numpyro.sample(name, dist.Poisson(3.0))),
        "site site is discrete (Poisson); gradients need real parameters. Sum it out",
    ),
    "numpyro: missing data": (
        from_numpyro_with(a_normal, np.array([1.0, np.nan, 2.0])),
        "the observed site y is missing (NaN) at 1 of 3 places; leave these observations out",
    ),
    "numpyro: empty": (lambda: tc.from_numpyro(numpyro_model(), Y), "the model has no parameters"),
    "numpyro: param": (
        from_numpyro_with(lambda numpyro, dist, name: numpyro.param(name, 1.0)),
        "site site is a numpyro.param, which has no prior; write numpyro.sample",
    ),
    "numpyro: subsample": (from_numpyro_with(subsampled), "takes a random subsample of 3 of 10"),
    "numpyro: data off the support": (
        from_numpyro_with(lambda numpyro, dist, name: numpyro.sample(name, dist.Gamma(2.0, 1.0), obs=-1.0)),
        "log density is not finite at 256 positions tried as a start",
    ),
    "pymc: no model": (lambda: tc.from_pymc(Y), "model is of type ndarray; give the pm.Model itself"),
    "pymc: discrete latent": (
        from_pymc_with(lambda pm: pm.Poisson("site", 3)),
        "site is discrete; gradients need real parameters. Sum it out",
    ),
    "pymc: missing data in pm.Data": (
        from_pymc_with(data_gone_missing),
        "the observed variable z is missing (NaN) at 1 of 2 places",
    ),
    "pymc: empty": (from_pymc_with(lambda pm: None), "the model has no parameters"),
    "pymc: minibatch": (
        from_pymc_with(
            lambda pm: pm.Normal("z", pm.Normal("x"), 1, observed=pm.Minibatch(Y, batch_size=2), total_size=3)
        ),
        "z sees a random minibatch: the evidence needs all the data",
    ),
    "pymc: data off the support": (
        from_pymc_with(lambda pm: pm.Gamma("z", pm.HalfNormal("x"), 1, observed=np.array([1.0, -1.0]))),
        "log density is not finite at 256 positions",
    ),
    "stan: no program": (lambda: tc.from_stan(3), "program is of type int; give Stan code, a path, or a BridgeStan"),
    "stan: no file": (lambda: tc.from_stan("nowhere.stan"), "there is no Stan program at nowhere.stan"),
    "stan: empty text": (lambda: tc.from_stan("  "), "the Stan program is empty"),
    "stan: syntax": (
        lambda: tc.from_stan("parameters { real x } model { }"),
        "stanc refuses the program: Syntax error in 'model.stan'",
    ),
    "stan: discrete latent": (
        lambda: tc.from_stan("parameters { int k; } model { k ~ poisson(3); }"),
        "stanc refuses the program",
    ),
    "stan: data of no kind": (lambda: tc.from_stan(SHORT, 3), "data are of type int; give a dict"),
    "stan: no data file": (lambda: tc.from_stan(SHORT, "nowhere.json"), "there are no data at nowhere.json"),
    "stan: missing data": (
        lambda: tc.from_stan(SHORT, {"y": [1.0, None, np.nan]}),
        "data y is of type object; Stan takes numbers",
    ),
    "stan: NaN in the data": (
        lambda: tc.from_stan(SHORT, {"y": [1.0, np.nan]}),
        "data y is missing or infinite at 1 of 2 places",
    ),
    "stan: ragged data": (
        lambda: tc.from_stan(SHORT, {"y": [[1.0], [1.0, 2.0]]}),
        "data y is ragged; Stan needs arrays",
    ),
    "numpy: no function": (lambda: tc.from_numpy(3, 0.0), "value_and_grad is 3; give a function of a position"),
    "numpy: no pair": (lambda: tc.from_numpy(lambda x: -(x**2), 1.0), "where a pair is needed: log density, gradient"),
    "numpy: no number": (lambda: tc.from_numpy(lambda x: (-(x**2), -2 * x), np.ones(2)), "where one number is needed"),
    "numpy: shape of the gradient": (
        lambda: tc.from_numpy(lambda x: (-np.sum(x**2), 0.0), np.ones(2)),
        "a gradient of shapes [()] where the position has [(2,)]; return it as the same PyTree",
    ),
    "numpy: not finite": (
        lambda: tc.from_numpy(lambda x: (-np.inf, x), 0.5),
        "log density is -inf at the initial position (x = 0.5)",
    ),
    "numpy: discrete": (lambda: tc.from_numpy(lambda x: (0.0, x), 3), "parameter x is of type int"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_model_that_cannot_be_sampled_gets_a_sentence(what):
    call, said = BAD[what]
    with pytest.raises(tc.ThermoclineError) as caught:
        call()
    assert said in str(caught.value)
    print(f"{what}: {caught.value}")


def test_a_support_without_coordinates_is_named_with_its_site():
    """NumPyro knows no bijection onto an annulus."""
    from numpyro import distributions, sample

    class Annulus(distributions.constraints.Constraint):
        event_dim = 1

    class OnAnnulus(distributions.Distribution):
        support = Annulus()

    with pytest.raises(tc.ThermoclineError, match="the site 'ring' cannot be mapped to unconstrained coordinates"):
        tc.from_numpyro(lambda: sample("ring", OnAnnulus(event_shape=(2,))))


def test_an_error_of_the_models_own_is_not_disguised():
    with pytest.raises(KeyError, match="wind"):
        tc.from_numpyro(lambda data: data["wind"], {"rain": np.zeros(3)})

    def unfinished():
        raise NotImplementedError("the likelihood")

    with pytest.raises(NotImplementedError, match="the likelihood"):
        tc.from_numpyro(unfinished)


@pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")
def test_missing_values_that_pymc_would_impute():
    with pytest.raises(tc.ThermoclineError, match="the observed variable z has missing values"):
        tc.from_pymc(pymc_model(lambda pm: pm.Normal("z", pm.Normal("x"), observed=np.array([1.0, np.nan]))))


def test_a_package_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "numpyro", None)
    with pytest.raises(tc.ThermoclineError, match=r"numpyro is not installed .*pip install 'thermocline\[numpyro\]'"):
        tc.from_numpyro(numpyro_model(("x", a_normal)), Y)


@NO_COMPILER
def test_data_that_stan_does_not_take():
    from tests.frontends.conjugate import PROGRAM

    with pytest.raises(tc.ThermoclineError, match=r"Stan does not take the data: .*variable name=which"):
        tc.from_stan(PROGRAM, {"N": 3})


def improper(numpyro, dist, name):
    numpyro.sample(name, dist.ImproperUniform(dist.constraints.positive, (), ()))


def masked(numpyro, dist, name):
    with numpyro.handlers.mask(mask=False):
        numpyro.sample(name, dist.Normal(0, 1))


def powered(numpyro, dist, name):
    with numpyro.handlers.scale(scale=0.5):
        numpyro.sample(name, dist.Normal(0, 1))


def ordered(pm):
    pm.Normal("site", 0, 1, shape=3, transform=pm.distributions.transforms.ordered, initval=[-1, 0, 1])


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
    ],
)
def test_a_stan_program_without_an_evidence_of_its_own_says_so(parameters, model, said):
    caveats = caveats_of(program(parameters, model))
    assert len(caveats) == 1 or "function of a parameter" in said
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
    ],
)
def test_a_stan_program_with_normalised_pieces_has_no_caveats(parameters, model):
    assert caveats_of(program(parameters, model)) == ()
