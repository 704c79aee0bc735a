"""The evaluator: values and slopes of any number of rows, all of them counted, with nothing compiled twice."""

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np
import pytest

import thermocline as tc
from thermocline.evaluator import WIDTHS, Evaluator

MEAN, PRECISION = np.array([0.5, -1.0, 2.0]), np.array([[2.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 0.5]])
START = {"b": np.array([0.1, 0.4]), "a": 0.3}


def log_density(position, data):
    centred = jnp.concatenate([jnp.atleast_1d(position["a"]), position["b"]]) - data["mean"]
    return data["constant"] - 0.5 * centred @ data["precision"] @ centred


def data(constant=1.5):
    return {"mean": MEAN, "precision": PRECISION, "constant": constant}


def exact(rows, constant=1.5):
    centred = rows - MEAN
    return constant - 0.5 * np.einsum("ni,ij,nj->n", centred, PRECISION, centred), -centred @ PRECISION


def rows_of(number, seed=0):
    return np.random.default_rng(seed).normal(size=(number, 3))


@pytest.mark.parametrize("number", [0, 1, 15, 16, 17, 100, 255, 256, 257, 700])
def test_any_number_of_rows(number):
    evaluate, rows = Evaluator(tc.Target(log_density, START, data())), rows_of(number)
    values, gradients = evaluate(rows)
    expected = exact(rows)
    assert values.shape == (number,)
    np.testing.assert_allclose(values, expected[0], rtol=1e-12)
    np.testing.assert_allclose(gradients, expected[1], rtol=1e-12, atol=1e-12)
    assert number <= evaluate.num_rows <= 2 * number + WIDTHS[0]
    assert evaluate.num_rows % WIDTHS[0] == 0


def test_rows_may_have_more_axes():
    evaluate, rows = Evaluator(tc.Target(log_density, START, data())), rows_of(24)
    np.testing.assert_array_equal(evaluate.values(rows.reshape(2, 3, 4, 3)).ravel(), evaluate(rows)[0])


def test_the_count_is_what_a_host_function_saw():
    seen = []

    def value_and_grad(x):
        seen.append(np.atleast_2d(x).shape[0] if np.ndim(x) > 1 else 1)
        return -0.5 * np.sum(x**2, axis=-1), -x

    evaluate = Evaluator(tc.from_numpy(value_and_grad, np.zeros(3)))
    seen.clear()
    for number in (1, 7, 300):
        evaluate(rows_of(number))
    assert evaluate.num_rows == sum(seen) == 308


def test_a_second_target_of_the_same_shape_and_function_compiles_nothing():
    events = []
    jax.monitoring.register_event_duration_secs_listener(lambda name, seconds, **_: events.append(name))

    def num_compiled():
        return sum(name.endswith("backend_compile_duration") for name in events)

    def fresh_log_density(position, data):
        return log_density(position, data)

    first = Evaluator(tc.Target(fresh_log_density, START, data()))
    before = num_compiled()
    for number in (1, 1000, 30):
        first(rows_of(number))
    assert num_compiled() - before == len(WIDTHS)
    before = num_compiled()
    second = Evaluator(tc.Target(fresh_log_density, START, data(-4.0), constrain=lambda position: position))
    np.testing.assert_allclose(second(rows_of(300))[0], exact(rows_of(300), -4.0)[0], rtol=1e-12)
    assert num_compiled() == before


def test_what_is_no_number_is_remembered_and_counts_as_off_the_support():
    def broken(x):
        return jnp.where(x[0] > 5, jnp.nan, jnp.where(x[0] > 4, jnp.inf, jnp.where(x[0] > 3, -jnp.inf, -(x[0] ** 2))))

    evaluate = Evaluator(tc.Target(broken, np.zeros(1)))
    values, _ = evaluate(np.array([[1.0], [3.5], [4.5], [6.0]]))
    np.testing.assert_array_equal(values, [-1.0, -np.inf, -np.inf, -np.inf])
    assert evaluate.trouble.number == 2
    assert evaluate.trouble.value == np.inf
    np.testing.assert_array_equal(evaluate.trouble.row, [4.5])
    evaluate(np.array([[7.0]]))
    assert evaluate.trouble.number == 3
    assert "log density is inf at x = [4.5]" in evaluate.describe_trouble()
    assert Evaluator(tc.Target(broken, np.zeros(1))).describe_trouble() == ""


def test_single_precision_stays_single():
    evaluate = Evaluator(tc.Target(log_density, START, data()), "float32")
    values, gradients = evaluate(rows_of(20))
    assert values.dtype == gradients.dtype == np.float32
    np.testing.assert_allclose(values, exact(rows_of(20))[0], rtol=1e-5)


def test_rows_come_back_as_the_target_takes_them():
    evaluate = Evaluator(tc.Target(log_density, START, data()))
    position = evaluate.unravel(np.array([1.0, 2.0, 3.0]))
    assert float(position["a"]) == 1.0
    np.testing.assert_array_equal(position["b"], [2.0, 3.0])
