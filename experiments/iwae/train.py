"""Train the two autoencoders of this experiment: `python -m experiments.iwae.train mnist` (or omniglot).

Images are read from the folder that THERMOCLINE_DATA names; the weights written here are all that run.py needs.
"""

import argparse
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.common import REPOSITORY
from experiments.iwae.model import Autoencoder, importance_bound, initial, save

FOLDER = Path(__file__).parent
NUM_SAMPLES, TEST_SAMPLES = 5, 1000  # of the bound, in training and at the end
BATCH = 100
FIRST_RATE, LAST_RATE = 1e-3, 1e-4
EPOCHS = {"mnist": 80, "omniglot": 240}


def data_folder() -> Path:
    return Path(os.environ.get("THERMOCLINE_DATA", REPOSITORY.parent / "shared" / "data"))


def images_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Grey levels from 0 to 1 of the images to learn and of those to test, as rows."""
    with np.load(data_folder() / f"{name}28.npz") as file:
        if name == "mnist":
            train, test = file["train"], file["test"]
        else:
            shuffled = np.random.default_rng(0).permutation(file["images"])
            train, test = shuffled[: -len(shuffled) // 10], shuffled[-len(shuffled) // 10 :]
    return rows_of(train), rows_of(test)


def rows_of(images: np.ndarray) -> np.ndarray:
    return (images.reshape(len(images), -1) / 255).astype(np.float32)


@partial(jax.jit, static_argnames="optimiser")
def train_epoch(key: jax.Array, model: Autoencoder, state: Any, images: jax.Array, *, optimiser: Any) -> Any:
    """One pass over the images, binarised at random anew; returns the model, the optimiser's state and the bound."""
    key_order, key_pixels, key_latents = jax.random.split(key, 3)
    number = len(images) // BATCH
    order = jax.random.permutation(key_order, len(images))[: number * BATCH].reshape(number, BATCH)

    def step(carry: Any, inputs: Any) -> Any:
        (model, state), (index, key_pixels, key_latents) = carry, inputs
        batch = jax.random.bernoulli(key_pixels, images[index]).astype(jnp.float32)
        loss = lambda model: -jnp.mean(importance_bound(key_latents, model, batch, NUM_SAMPLES))  # noqa: E731
        value, gradient = jax.value_and_grad(loss)(model)
        updates, state = optimiser.update(gradient, state)
        return (optax.apply_updates(model, updates), state), -value

    keys = jax.random.split(key_pixels, number), jax.random.split(key_latents, number)
    (model, state), bounds = jax.lax.scan(step, (model, state), (order, *keys))
    return model, state, jnp.mean(bounds)


@partial(jax.jit, static_argnames="num_samples")
def test_bounds(key: jax.Array, model: Autoencoder, images: jax.Array, *, num_samples: int) -> jax.Array:
    """The bound of every image, binarised once, a few at a time because samples take memory."""
    key_pixels, key_latents = jax.random.split(key)
    binary = jax.random.bernoulli(key_pixels, images).astype(jnp.float32)
    keys = jax.random.split(key_latents, len(images))
    of_image = lambda key, image: importance_bound(key, model, image, num_samples)  # noqa: E731
    return jax.lax.map(lambda inputs: of_image(*inputs), (keys, binary))


def train(name: str, num_epochs: int, out: Path) -> None:
    train_images, test_images = map(jnp.asarray, images_of(name))
    model = initial(jax.random.key(1), jnp.mean(train_images, axis=0))
    decay = (LAST_RATE / FIRST_RATE) ** (1 / num_epochs)
    optimiser = optax.adam(optax.exponential_decay(FIRST_RATE, len(train_images) // BATCH, decay))
    state, begun = optimiser.init(model), time.monotonic()
    for epoch in range(num_epochs):
        key = jax.random.fold_in(jax.random.key(2), epoch)
        model, state, bound = train_epoch(key, model, state, train_images, optimiser=optimiser)
        if epoch % max(num_epochs // 40, 1) == 0 or epoch == num_epochs - 1:
            test = float(test_bounds(jax.random.key(3), model, test_images[:500], num_samples=50).mean())
            seconds = time.monotonic() - begun
            print(f"{name} epoch {epoch + 1}: bound {bound:.2f}, test {test:.2f}, {seconds:.0f} s", flush=True)
            save(out, model)
    bounds = np.asarray(test_bounds(jax.random.key(3), model, test_images[:2000], num_samples=TEST_SAMPLES))
    error = bounds.std() / np.sqrt(len(bounds))
    print(f"{name}: test bound {bounds.mean():.2f} ± {error:.2f}, {len(bounds)} images, {TEST_SAMPLES} samples")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(EPOCHS))
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    out = given.out or FOLDER / "weights" / f"{given.name}.npz"
    train(given.name, given.epochs or EPOCHS[given.name], out)


if __name__ == "__main__":
    main()
