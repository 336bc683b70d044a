# SPDX-License-Identifier: Apache-2.0
"""What jax.distributed's collectives on ccom return, in programs without a word of ccom; and what they raise."""

import os
import signal
import sys

import ccom
import ccom.jax
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

rank, size = int(os.environ["CCOM_RANK"]), int(os.environ["CCOM_NRANKS"])
what, port = sys.argv[1:3]
shard_map = jax.shard_map
try:
    ccom.jax.use_in_jax_distributed()
    raise SystemExit("before jax.distributed.initialize")
except RuntimeError as error:
    assert "jax.distributed.initialize" in str(error)
jax.distributed.initialize(f"127.0.0.1:{port}", size, rank)
if what == "gloo":
    world = ccom.init()
else:
    world = ccom.jax.use_in_jax_distributed(*([ccom.init(timeout=20)] if what == "killed" else []))
assert (world.rank, world.size) == (rank, size)
if rank == 0:  # U12: the id, which holds the secret, stayed in a service that listens on all addresses
    assert jax._src.distributed.global_state.client.key_value_dir_get("ccom/") == []
assert jax.process_count() == size == len(jax.devices())


def spread(mesh, array, spec):
    return jax.make_array_from_process_local_data(NamedSharding(mesh, spec), array)


def own(array):
    return np.asarray(array.addressable_shards[0].data)


AUTO = jax.sharding.AxisType.Auto
mesh = jax.make_mesh((size,), ("i",), axis_types=(AUTO,))
mine = np.arange(2 * size, dtype=np.float32) + 100 * rank
all_of = np.stack([np.arange(2 * size, dtype=np.float32) + 100 * i for i in range(size)])


@jax.jit
@lambda f: shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=(P(), P(), P("i"), P("i"), P("i"), P("i"), P()))
def every(x):
    return (
        jax.lax.psum(x, "i"),
        jax.lax.pmax(x, "i"),
        jax.lax.all_gather(x, "i"),
        jax.lax.psum_scatter(x, "i", tiled=True),
        jax.lax.all_to_all(x.reshape(size, 2), "i", 0, 0),
        jax.lax.ppermute(x, "i", [(i, (i + 1) % size) for i in range(size)]),
        jax.lax.psum(x.astype(jnp.int32)[0], "i"),
    )


def plain():
    x = spread(mesh, mine, P("i"))
    for _ in range(20):
        found = every(x)
    for y, expected in zip(
        found,
        (
            all_of.sum(axis=0),
            all_of.max(axis=0),
            all_of,
            all_of.sum(axis=0)[2 * rank : 2 * rank + 2],
            all_of.reshape(size, size, 2)[:, rank],
            all_of[(rank - 1) % size],
            all_of[:, 0].sum(),
        ),
    ):
        np.testing.assert_array_equal(own(y), expected)
    # What the compiler adds: a matrix product of sharded rows.
    a = np.random.default_rng(0).normal(size=(4, 2 * size)).astype(np.float32)
    columns = spread(mesh, a[:, 2 * rank : 2 * rank + 2], P(None, "i"))
    np.testing.assert_allclose(
        own(jax.jit(lambda x: x @ x.T, out_shardings=NamedSharding(mesh, P()))(columns)), a @ a.T, rtol=1e-4
    )
    if size == 4:
        grid = jax.make_mesh((2, 2), ("r", "c"), axis_types=(AUTO, AUTO))
        x = spread(grid, np.float32([[rank]]), P("r", "c"))
        rows = jax.jit(
            shard_map(
                lambda v: (jax.lax.psum(v, "c"), jax.lax.psum(v, "r")),
                mesh=grid,
                in_specs=P("r", "c"),
                out_specs=(P("r"), P(None, "c")),
            )
        )(x)
        assert own(rows[0]).item() == [1, 1, 5, 5][rank] and own(rows[1]).item() == [2, 4, 2, 4][rank], rows

    # Many in one function, that do not depend on one another.
    @jax.jit
    @lambda f: shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P())
    def many(v):
        return [jax.lax.psum(jnp.sin(v) * 0 + v * i, "i") for i in range(24)]

    big = spread(mesh, np.full(1024, rank + 1.0, np.float32), P("i"))
    for _ in range(20):
        for i, y in enumerate(many(big)):
            np.testing.assert_array_equal(own(y), np.full(1024, i * size * (size + 1) / 2))


def killed():
    x = spread(mesh, mine, P("i"))
    jax.block_until_ready(every(x))
    if rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        for _ in range(1000):
            jax.block_until_ready(every(x))
        raise SystemExit("no error")
    except (jax.errors.JaxRuntimeError, ValueError) as error:  # JAX has both for XLA's errors
        assert f"rank {size - 1} on host" in str(error) and "CCOM-E025" in str(error), error
    print("all right", rank, flush=True)
    os._exit(0)  # jax.distributed ends a process whose peer is gone


{"plain": plain, "gloo": plain, "killed": killed}[what]()
assert jax.config.jax_cpu_collectives_implementation == ("gloo" if what == "gloo" else "mpi")
print("all right", rank)
