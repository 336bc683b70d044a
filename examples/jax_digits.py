# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training in JAX on real data: handwritten digits, with the network and the settings of
torch_ddp_digits.py.

    ccom-run -n 4 python examples/jax_digits.py

The whole step is one compiled function; the gradients of all parameters are one call. Each rank takes its share of
every global batch, so any number of ranks learns the same, up to rounding.
"""

import argparse
import json
import os

import ccom
import ccom.jax
import jax
import jax.numpy as jnp
import numpy as np

DIGITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "digits.csv")


def read_digits():
    """Training pictures and their digits, test pictures and theirs. Every fifth picture is for the test."""
    rows = np.loadtxt(DIGITS, delimiter=",", dtype=np.float32)
    pictures, digits = rows[:, :64].reshape(-1, 8, 8, 1) / 16, rows[:, 64].astype(np.int32)
    test = np.arange(len(rows)) % 5 == 4
    return pictures[~test], digits[~test], pictures[test], digits[test]


def new_parameters(key):
    shapes = {"conv1": (3, 3, 1, 16), "conv2": (3, 3, 16, 16), "dense1": (256, 64), "dense2": (64, 10)}
    parameters = {}
    for (name, shape), one in zip(shapes.items(), jax.random.split(key, len(shapes))):
        bound = 1 / np.sqrt(np.prod(shape[:-1]))
        parameters[name] = {
            "weight": jax.random.uniform(one, shape, minval=-bound, maxval=bound),
            "bias": jnp.zeros(shape[-1]),
        }
    return parameters


def network(parameters, pictures):
    def layer(name, x):
        weight = parameters[name]["weight"]
        if weight.ndim == 4:
            x = jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        else:
            x = x @ weight
        return x + parameters[name]["bias"]

    x = jax.nn.relu(layer("conv1", pictures))
    x = jax.nn.relu(layer("conv2", x))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return layer("dense2", jax.nn.relu(layer("dense1", x.reshape(len(x), -1))))


def loss_of(parameters, pictures, digits):
    chances = jax.nn.log_softmax(network(parameters, pictures))
    return -jnp.take_along_axis(chances, digits[:, None], axis=1).mean()


def make_step(world, rate):
    def step(parameters, momentum, pictures, digits):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, pictures, digits)
        loss, gradients = ccom.jax.allreduce((loss, gradients), "avg", comm=world, in_place=True)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
        return jax.tree.map(lambda p, m: p - rate * m, parameters, momentum), momentum, loss

    return jax.jit(step, donate_argnums=(0, 1))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--epochs", type=int, default=20)
    options.add_argument("--batch", type=int, default=48, help="of all ranks together")
    options.add_argument("--rate", type=float, default=0.02)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--save", metavar="FILE", help="losses, as JSON")
    options = options.parse_args()
    world = ccom.init()
    pictures, digits, test_pictures, test_digits = read_digits()
    if options.batch % world.size:
        raise SystemExit(f"--batch {options.batch} cannot be divided among {world.size} ranks")

    # Every rank may start from other parameters: those of rank 0 are taken.
    parameters = ccom.jax.broadcast(new_parameters(jax.random.key(options.seed + world.rank)), comm=world)
    momentum = jax.tree.map(jnp.zeros_like, parameters)
    step = make_step(world, options.rate)
    losses = []
    for epoch in range(options.epochs):
        order = np.random.default_rng(options.seed * 1000 + epoch).permutation(len(digits))
        of_steps = []
        for begin in range(0, len(order) - options.batch + 1, options.batch):
            rows = order[begin + world.rank : begin + options.batch : world.size]
            parameters, momentum, loss = step(parameters, momentum, pictures[rows], digits[rows])
            of_steps.append(loss)
        losses.append(float(jnp.stack(of_steps).mean()))
        if world.rank == 0:
            print(f"epoch {epoch + 1:2}  loss {losses[-1]:.6f}", flush=True)

    mine = slice(world.rank, None, world.size)
    right = (network(parameters, test_pictures[mine]).argmax(axis=1) == test_digits[mine]).sum()
    accuracy = int(ccom.jax.allreduce(right, comm=world)) / len(test_digits)
    same = jax.tree.map(
        lambda x: (ccom.jax.allreduce(x, "max", comm=world) == ccom.jax.allreduce(x, "min", comm=world)).all(),
        parameters,
    )
    if not all(jax.tree.leaves(same)):
        raise SystemExit(f"rank {world.rank}: ranks hold different parameters")
    if world.rank == 0:
        if options.save:
            with open(options.save, "w", encoding="ascii") as file:
                json.dump(losses, file)
        print(f"{world.size} ranks: loss {losses[0]:.4f} to {losses[-1]:.4f}, test accuracy {accuracy:.4f}", flush=True)


if __name__ == "__main__":
    main()
