"""The pictures of docs/gallery.md, from runs that take seconds: `make gallery`."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

import thermocline as tc

FOLDER = Path(__file__).parent.parent / "docs" / "gallery"
DOTS = 64  # an inch: pictures of less than 60 kB


def model(slope: Any) -> tc.Target:
    """A line of slope(a) and level b in noise."""
    generator = np.random.default_rng(1)
    x = np.linspace(-1, 1, 30)
    data = {"x": x, "y": 0.5 + 1.2**2 * x + 0.6 * generator.normal(size=30)}

    def log_density(position: Any, data: Any) -> jax.Array:
        line = slope(position["a"]) * data["x"] + position["b"]
        prior = norm.logpdf(position["a"], 0, 2) + norm.logpdf(position["b"], 0, 1)
        scale = norm.logpdf(position["log_sigma"], -1, 1)
        return prior + scale + norm.logpdf(data["y"], line, jnp.exp(position["log_sigma"])).sum()

    def constrain(position: Any) -> dict[str, Any]:
        return {"a": position["a"], "b": position["b"], "sigma": jnp.exp(position["log_sigma"])}

    return tc.Target(log_density, {"a": 0.1, "b": 0.0, "log_sigma": 0.0}, data, constrain)


def main() -> None:
    import matplotlib as mpl

    mpl.use("agg")
    FOLDER.mkdir(exist_ok=True)
    result = tc.sample(model(jnp.square), seed=0, progress=False)  # the sign of a cannot be known: two modes
    line = tc.sample(model(lambda a: a), seed=0, progress=False)
    level = tc.sample(model(jnp.zeros_like), seed=0, progress=False)
    drawn = {
        "modes": result.plot_modes(),
        "temperature": result.plot_temperature(),
        "pair": result.plot_pair(),
        "one-mode": result.plot_pair(mode=1),
        "comparison": tc.compare({"a squared": result, "a": line, "no slope": level}).plot(),
    }
    for name, axes in drawn.items():
        path = FOLDER / f"{name}.png"
        np.ravel(axes)[0].figure.savefig(path, dpi=DOTS)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
