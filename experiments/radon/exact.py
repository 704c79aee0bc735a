"""The exact log evidence of the Radon model; `python -m experiments.radon.exact` prints it."""

import numpy as np
from scipy.stats import halfcauchy

from experiments.radon.data import Data, radon

SCALE = 2.5  # of the half-Cauchy laws
NEGLIGIBLE = 1e-10  # of the largest marginal density, beyond which the integral is cut off
WIDEST = [[-25.0, 8.0], [-25.0, 8.0], [-8.0, 8.0]]  # of the logarithms of sigma_alpha, sigma_beta and epsilon


def log_likelihood_of_scales(data: Data, log_alpha: float, log_beta: np.ndarray, log_epsilon: np.ndarray) -> np.ndarray:
    r"""Log p(y | sigma_alpha, sigma_beta, epsilon) on a grid (beta, epsilon), all Gaussian coefficients integrated out.

    With $X = (1, x)$ and $\theta = (\mu_\alpha, \beta)$ it is $y \sim N(X\theta, V)$: a county's block of $V$ is
    $\epsilon^2 I + \sigma_\alpha^2 11^\top$ (the intercepts' spread), and $\theta = Fz$ with $z \sim N(0, I)$ the two
    means and the two slopes' residuals. Only sums over houses, and over those of each county, enter.
    """
    columns = np.column_stack([np.ones_like(data.y), data.x, data.y])
    counts = np.bincount(data.county, minlength=data.num_counties)
    sums = np.stack([np.bincount(data.county, column, data.num_counties) for column in columns.T], axis=1)
    noise, between = np.exp(2 * log_epsilon), np.exp(2 * log_alpha)
    total = noise[:, None] + between * counts
    within = columns.T @ columns - np.einsum("ec,ci,cj->eij", between / total, sums, sums)
    gram = within / noise[:, None, None]  # of (X, y) in the metric of V
    log_det = (len(data.y) - data.num_counties) * np.log(noise) + np.log(total).sum(axis=1)
    factor = np.zeros((log_beta.size, 1, 3, 4))
    factor[:, :, 0, 0] = factor[:, :, 1, 1] = factor[:, :, 2, 1] = 1
    factor[:, :, 1, 2] = factor[:, :, 2, 3] = np.exp(log_beta)[:, None]
    transposed = np.swapaxes(factor, -1, -2)
    widened = np.eye(4) + transposed @ gram[:, :3, :3] @ factor
    cross = (transposed @ gram[:, :3, 3:])[..., 0]
    quadratic = gram[:, 3, 3] - np.sum(cross * np.linalg.solve(widened, cross[..., None])[..., 0], axis=-1)
    log_det_all = log_det + np.linalg.slogdet(widened)[1]
    return -0.5 * (len(data.y) * np.log(2 * np.pi) + log_det_all + quadratic)


def log_integrand(data: Data, grid: list[np.ndarray]) -> np.ndarray:
    """Log of p(y, scales) over the logarithms of the three scales; scale laws and their Jacobians included."""
    log_likelihood = np.stack([log_likelihood_of_scales(data, alpha, *grid[1:]) for alpha in grid[0]])
    priors = [halfcauchy.logpdf(np.exp(axis), scale=SCALE) + axis for axis in grid]
    return log_likelihood + priors[0][:, None, None] + priors[1][:, None] + priors[2]


def log_evidence(data: Data, num_points: int = 97) -> float:
    """The trapezoid rule over the log scales, on a box that narrows until its sides hold next to nothing.

    The integrand is analytic and falls off exponentially, so the rule converges faster than any power of the step.
    """
    box = np.array(WIDEST)
    while np.any(np.diff(narrower := narrowed(data, box)) < 0.8 * np.diff(box)):
        box = narrower
    grid = [np.linspace(low, high, num_points) for low, high in box]
    values = log_integrand(data, grid)
    largest = values.max()
    cell = np.prod([axis[1] - axis[0] for axis in grid])
    return float(largest + np.log(np.exp(values - largest).sum() * cell))


def narrowed(data: Data, box: np.ndarray, num_points: int = 33) -> np.ndarray:
    """The part of the box outside which the marginal densities of the log scales, on a coarse grid, are negligible."""
    grid = [np.linspace(low, high, num_points) for low, high in box]
    values = log_integrand(data, grid)
    density = np.exp(values - values.max())
    sides = []
    for axis, points in enumerate(grid):
        marginal = density.sum(axis=tuple({0, 1, 2} - {axis}))
        held = np.flatnonzero(marginal > NEGLIGIBLE * marginal.max())
        sides.append([points[max(held[0] - 1, 0)], points[min(held[-1] + 1, num_points - 1)]])
    return np.array(sides)


if __name__ == "__main__":
    coarse, fine = (log_evidence(radon(), number) for number in (65, 129))
    print(f"log evidence of the Radon model: {fine:.4f} (half the points an axis: {coarse:.4f})")
