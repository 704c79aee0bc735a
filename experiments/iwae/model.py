"""An importance weighted autoencoder (Burda, Grosse and Salakhutdinov 2016) with one stochastic layer."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

NUM_PIXELS, NUM_HIDDEN, NUM_LATENTS = 784, 200, 50


class Layer(NamedTuple):
    """An affine map of row vectors."""

    weights: jax.Array
    biases: jax.Array

    def __call__(self, rows: jax.Array) -> jax.Array:
        return rows @ self.weights + self.biases


class Autoencoder(NamedTuple):
    """Latents are N(0, I), pixels Bernoulli given them; the encoder gives a diagonal Gaussian over latents."""

    encoder: tuple[Layer, Layer]
    mean: Layer
    log_scale: Layer
    decoder: tuple[Layer, Layer, Layer]

    def encode(self, images: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Mean and standard deviation of every latent given the image."""
        hidden = tanh_layers(self.encoder, images)
        return self.mean(hidden), jnp.exp(self.log_scale(hidden))

    def logits(self, latents: jax.Array) -> jax.Array:
        """Log odds of every pixel given the latents."""
        *hidden, output = self.decoder
        return output(tanh_layers(hidden, latents))

    def log_joint(self, latents: jax.Array, image: jax.Array) -> jax.Array:
        """Log p(image, latents)."""
        logits = self.logits(latents)
        log_likelihood = jnp.sum(image * logits - jax.nn.softplus(logits), axis=-1)
        return log_likelihood + log_normal(latents, 0.0, 1.0)


def tanh_layers(layers: Sequence[Layer], rows: jax.Array) -> jax.Array:
    for layer in layers:
        rows = jnp.tanh(layer(rows))
    return rows


def log_normal(x: jax.Array, mean: jax.Array | float, scale: jax.Array | float) -> jax.Array:
    """Log density of independent normals, summed over the last axis."""
    standard = (x - mean) / scale
    return jnp.sum(-0.5 * standard**2 - jnp.log(scale) - 0.5 * jnp.log(2 * jnp.pi), axis=-1)


def log_weights(key: jax.Array, model: Autoencoder, images: jax.Array, num_samples: int) -> jax.Array:
    """Log p(image, z) - log q(z | image) for z from the encoder; a leading axis over samples."""
    mean, scale = model.encode(images)
    latents = mean + scale * jax.random.normal(key, (num_samples, *mean.shape), mean.dtype)
    return model.log_joint(latents, images) - log_normal(latents, mean, scale)


def importance_bound(key: jax.Array, model: Autoencoder, images: jax.Array, num_samples: int) -> jax.Array:
    """The importance weighted bound on log p(image), of each image: log of the mean weight."""
    return jax.nn.logsumexp(log_weights(key, model, images, num_samples), axis=0) - jnp.log(num_samples)


def generate(key: jax.Array, model: Autoencoder, number: int) -> tuple[jax.Array, jax.Array]:
    """Latents from the prior and binary images given them: each pair is an exact draw of the posterior too."""
    key_latents, key_pixels = jax.random.split(key)
    dtype = model.decoder[0].weights.dtype
    latents = jax.random.normal(key_latents, (number, len(model.decoder[0].weights)), dtype)
    chances = jax.nn.sigmoid(model.logits(latents))
    return latents, (jax.random.uniform(key_pixels, chances.shape, dtype) < chances).astype(dtype)


def initial(
    key: jax.Array, pixel_means: jax.Array, num_hidden: int = NUM_HIDDEN, num_latents: int = NUM_LATENTS
) -> Autoencoder:
    """Glorot's weights, and biases of the last layer that give every pixel its mean."""
    keys = iter(jax.random.split(key, 7))

    def layer(rows: int, columns: int) -> Layer:
        weights = jax.nn.initializers.glorot_uniform()(next(keys), (rows, columns), pixel_means.dtype)
        return Layer(weights, jnp.zeros(columns, pixel_means.dtype))

    num_pixels = len(pixel_means)
    encoder = layer(num_pixels, num_hidden), layer(num_hidden, num_hidden)
    mean, log_scale = layer(num_hidden, num_latents), layer(num_hidden, num_latents)
    decoder = layer(num_latents, num_hidden), layer(num_hidden, num_hidden), layer(num_hidden, num_pixels)
    chances = jnp.clip(pixel_means, 1e-3, 1 - 1e-3)
    output = decoder[2]._replace(biases=jnp.log(chances) - jnp.log1p(-chances))
    return Autoencoder(encoder, mean, log_scale, (*decoder[:2], output))


def save(path: Path, model: Autoencoder) -> None:
    """Half precision, compressed: half a megabyte a model."""
    path.parent.mkdir(parents=True, exist_ok=True)
    leaves: dict[str, Any] = {
        f"leaf{i:02d}": np.asarray(leaf, np.float16) for i, leaf in enumerate(jax.tree.leaves(model))
    }
    with path.open("wb") as file:
        np.savez_compressed(file, **leaves)


def load(path: Path) -> Autoencoder:
    """The model that `save` wrote, in single precision."""
    with np.load(path) as file:
        leaves: list[Any] = [file[name].astype(np.float32) for name in sorted(file.files)]
    layers = [Layer(*leaves[i : i + 2]) for i in range(0, len(leaves), 2)]
    return Autoencoder((layers[0], layers[1]), layers[2], layers[3], (layers[4], layers[5], layers[6]))


def load_authors(folder: Path) -> Autoencoder:
    """The paper's own model, from the four files of its repository."""

    def layers(name: str, *numbers: int) -> list[Layer]:
        with np.load(folder / f"{name}_params.npz") as file:
            return [Layer(file[f"W{i}"], file[f"b{i}"][0]) for i in numbers]

    first, second = layers("encoder_h", 0, 2)
    (mean,), (log_scale,) = layers("encoder_mean", 0), layers("encoder_std", 0)
    one, two, three = layers("decoder", 0, 2, 4)
    return Autoencoder((first, second), mean, log_scale, (one, two, three))
