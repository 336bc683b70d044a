# SPDX-License-Identifier: Apache-2.0
"""Two runs of the same program with JAX's compilation cache: the second compiles nothing, and its communicators lie
elsewhere.
"""

import sys

import ccom
import ccom.jax as cj
import jax
import jax.numpy as jnp
import numpy as np

hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event) if event.endswith("/cache_hits") else None)
others = [bytearray(1 << 20) for _ in range(50)] if sys.argv[1] == "again" else []  # moves what is allocated later
world = ccom.init(timeout=60)
turned = world.split(0, -world.rank)


def rows(x):
    return cj.allgather(x, comm=world), cj.allgather(x, comm=turned)


found = jax.jit(rows)(jnp.float32(world.rank))
np.testing.assert_array_equal(found[0], np.arange(world.size))
np.testing.assert_array_equal(found[1], np.arange(world.size)[::-1])
assert hits or sys.argv[1] == "first"  # of the first run a rank may read what the other has compiled
assert hex(world.handle)[2:] not in jax.jit(rows).lower(jnp.float32(0)).as_text()
print("all right", world.rank)
