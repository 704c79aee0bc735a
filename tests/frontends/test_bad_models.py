"""Models that cannot be sampled get a sentence."""

import numpy as np
import pytest

import thermocline as tc
from tests.frontends.test_conjugate import NO_COMPILER

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


def regression(x, y):
    import numpyro
    import numpyro.distributions as dist

    numpyro.sample("y", dist.Normal(numpyro.sample("b", dist.Normal(0, 1)) * x, 1), obs=y)


def subsampled(numpyro, dist, name):
    with numpyro.plate(name, 10, subsample_size=3):
        pass


def data_gone_missing(pm):
    data = pm.Data("measured", np.zeros(2))
    pm.Normal("z", pm.Normal("x"), observed=data)
    data.set_value(np.array([1.0, np.nan]))


def without_jax(pm):
    import pytensor.tensor as pt
    from pytensor.compile.ops import as_op

    cube = as_op([pt.dscalar], [pt.dscalar])(lambda x: x**3)
    pm.Normal("z", cube(pm.Normal("x")), 1, observed=Y)


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
    "numpyro: shapes": (
        lambda: tc.from_numpyro(lambda x, y: numpyro_model(("b", a_normal))(x + y), np.zeros(3), np.zeros(4)),
        "test_bad_models.py, line ",
    ),
    "numpyro: NaN in a covariate": (
        lambda: tc.from_numpyro(regression, np.array([1.0, np.nan, 2.0]), Y),
        "Data x is NaN or infinite at 1 of 3 places, first at [1]",
    ),
    "pymc: shapes": (
        from_pymc_with(lambda pm: pm.Normal("z", pm.Normal("x") * np.zeros(4), 1, observed=Y)),
        "Do the shapes of data and parameters fit?",
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
    "pymc: an operation of Python's": (
        from_pymc_with(without_jax),
        "PyTensor cannot translate the model to JAX (NotImplementedError: No JAX conversion for the given `Op`",
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


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("typo.stan", "parameters {\n  real x;\n}\nmodel { x ~ normal(0, 1) }", "in 'typo.stan', line 4, column 25"),
        ("typo.json", '{"N": 3,\n "y": [1 2]}', "typo.json is not JSON: Expecting ',' delimiter: line 2 column 10"),
    ],
)
def test_a_typing_error_in_a_file_is_named_with_its_line(tmp_path, file, text, says):
    (tmp_path / file).write_text(text)
    given = (tmp_path / file,) if file.endswith(".stan") else (SHORT, tmp_path / file)
    with pytest.raises(tc.ThermoclineError) as caught:
        tc.from_stan(*given)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("package", ["httpstan", "matplotlib", "arviz"])
def test_an_extra_that_is_not_installed_is_named_with_its_command(package, monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    small = {"num_chains": 2, "num_warmup": 4, "num_draws": 8, "search": False, "progress": False}
    result = tc.sample(tc.Target(lambda x: -0.5 * x**2, 0.5), base=tc.Gaussian.diagonal(0.0, 1.0), **small)
    calls = {
        "httpstan": ("stan", lambda: tc.from_stan(SHORT)),
        "matplotlib": ("report", lambda: result.report(tmp_path / "page.html")),
        "arviz": ("arviz", result.to_arviz),
    }
    extra, call = calls[package]
    with pytest.raises(tc.ThermoclineError, match=rf"{package} is not installed .*'thermocline\[{extra}\]'"):
        call()


@NO_COMPILER
def test_data_that_stan_does_not_take():
    from tests.frontends.conjugate import PROGRAM

    with pytest.raises(tc.ThermoclineError, match=r"Stan does not take the data: .*variable name=which"):
        tc.from_stan(PROGRAM, {"N": 3})
