import numpy as np

from thermocline.bases import LowRankGaussian
from thermocline.fits.spectrum import deviations_at, lanczos, spectrum_at

SCALES, CENTRE = np.exp(np.linspace(-6, 6, 80)), np.linspace(-2, 3, 80)


class Quadratic:
    """-½ (x - m)ᵀ P (x - m) as an evaluator gives it."""

    precision = "float64"

    def __init__(self, matrix, centre=CENTRE):
        self.matrix, self.centre, self.num_rows = matrix, centre, 0

    def __call__(self, rows):
        self.num_rows += len(rows)
        slope = (self.centre - rows) @ self.matrix
        return 0.5 * np.sum(slope * (rows - self.centre), axis=1), slope


def test_deviations_of_independent_coordinates_are_exact():
    density = Quadratic(np.diag(SCALES**-2))
    found = deviations_at(density, CENTRE)
    assert np.allclose(found, SCALES, rtol=1e-5)  # differences of numbers near 3, by steps of a hundredth of 0.002
    assert density.num_rows < 6 * 2 * 80


def test_beyond_an_edge_steps_are_shorter():
    class Edge(Quadratic):
        def __call__(self, rows):
            values, slopes = super().__call__(rows)
            return np.where(rows[:, 3] > CENTRE[3] + 1e-4, -np.inf, values), slopes

    assert np.allclose(deviations_at(Edge(np.eye(80)), CENTRE), 1.0, rtol=1e-5)


def test_a_coordinate_without_curvature_has_the_largest_deviation_of_the_others():
    flat = SCALES**-2
    flat[7] = 0.0
    assert deviations_at(Quadratic(np.diag(flat)), CENTRE)[7] == deviations_at(Quadratic(np.diag(flat)), CENTRE).max()


def test_lanczos_finds_eigenvalues_that_stand_out():
    generator = np.random.default_rng(0)
    vectors = np.linalg.qr(generator.normal(size=(300, 3)))[0]
    wanted = np.array([0.001, 0.2, 40.0])
    matrix = np.eye(300) + (vectors * (wanted - 1)) @ vectors.T
    values, found = lanczos(lambda row: matrix @ row, generator.normal(size=300), 20)
    for value, vector in zip(wanted, vectors.T, strict=True):
        place = np.argmin(np.abs(values - value))
        assert np.isclose(values[place], value, rtol=1e-6)
        assert np.isclose(abs(found[:, place] @ vector), 1, rtol=1e-6)


def test_directions_that_are_wider_become_columns():
    """A covariance of that form is found again: its matrix and its volume."""
    generator = np.random.default_rng(1)
    truth = LowRankGaussian(CENTRE, SCALES, SCALES[:, None] * generator.normal(size=(80, 2)) * 2)
    covariance = truth.covariance()
    spectrum = spectrum_at(generator, Quadratic(np.linalg.inv(covariance)), CENTRE)
    assert spectrum.factor.shape == (80, 2)
    found = spectrum.base(CENTRE, CENTRE).covariance() / np.outer(SCALES, SCALES)
    share = np.linalg.eigvals(np.linalg.solve(covariance / np.outer(SCALES, SCALES), found)).real
    assert np.all((share > 0.5) & (share < 2))  # the diagonal is that of the inverse, which is not the deviations'
    half = 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    assert abs(spectrum.log_volume - half) < 0.01 * 80


def test_narrow_directions_do_not_make_the_others_narrow():
    """Three observations of 80 parameters: the prior is what most directions have."""
    rows = np.random.default_rng(2).normal(size=(3, 80))
    spectrum = spectrum_at(np.random.default_rng(3), Quadratic(np.eye(80) + rows.T @ rows), CENTRE)
    ratio = np.linalg.eigvalsh((np.eye(80) + rows.T @ rows) * np.outer(spectrum.deviations, spectrum.deviations))
    assert np.median(ratio) > 0.2  # units of these deviations, in which the diagonal alone has 0.03 or so
