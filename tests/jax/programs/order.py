# SPDX-License-Identifier: Apache-2.0
"""24 calls that do not depend on one another, in one function, large enough for XLA to run them at the same time.

Without the tokens between them the first step already fails: XLA's threads make the calls in another order on each
rank.
"""

import re

import ccom
import ccom.jax as cj
import jax
import jax.numpy as jnp
import numpy as np

world = ccom.init(timeout=60)
rank, size = world.rank, world.size
CALLS, STEPS = 24, 100


@jax.jit
def step(arrays):
    late = [jnp.tanh(x @ jnp.ones((64, 64))) + i * rank for i, x in enumerate(arrays)]
    return [jnp.sin(cj.allreduce(x, comm=world)) for x in late], cj.allgather(jnp.float32(rank), comm=world)


arrays = [jnp.full((64 + i, 64), 1e-3 * i) for i in range(CALLS)]
text = step.lower(arrays).compile().as_text()
calls = re.findall(r"(\S+) = \([^=]*custom-call\(([^)]*)\).*custom_call_target=\"ccom_", text)
assert len(calls) == CALLS + 1, text
for _ in range(STEPS):
    sums, ranks = step(arrays)
other = step([x + rank for x in arrays])  # two functions behind each other, without waiting for the first
jax.block_until_ready((sums, ranks, other))
np.testing.assert_array_equal(ranks, np.arange(size))
for i, found in enumerate(sums):
    value = size * np.tanh(64 * 1e-3 * i) + i * size * (size - 1) / 2
    np.testing.assert_allclose(found, np.full((64 + i, 64), np.sin(value)), atol=1e-4)
print("all right", rank)
