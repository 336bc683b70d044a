# SPDX-License-Identifier: Apache-2.0
"""Every collective in one compiled function and outside of one, against numpy; every type; every operator."""

import jax

jax.config.update("jax_enable_x64", True)
import ccom  # noqa: E402
import ccom.jax as cj  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

world = ccom.init(timeout=60)
rank, size = world.rank, world.size


def of(rank, shape=(3, 2)):
    """What a rank gives."""
    return (np.arange(np.prod(shape)).reshape(shape) * (rank + 1) + rank).astype(np.float32)


mine, all_of = of(rank), np.stack([of(i) for i in range(size)])
parts = np.stack([np.stack([of(i * size + j) for j in range(size)]) for i in range(size)])  # [from][to]
last = size - 1
ring = [(i, (i + 1) % size) for i in range(size)]
lonely = [(0, last)] if size > 1 else []


def every_collective(x, mine_of_all):
    cj.barrier(comm=world)
    return {
        "allreduce": cj.allreduce(x, comm=world),
        "in place": cj.allreduce(x + 0, comm=world, in_place=True),
        "allgather": cj.allgather(x, comm=world),
        "allgather tiled": cj.allgather(x, comm=world, tiled=True),
        "reduce_scatter": cj.reduce_scatter(mine_of_all, comm=world),
        "reduce_scatter tiled": cj.reduce_scatter(mine_of_all.reshape(size * 3, 2), comm=world, tiled=True),
        "alltoall": cj.alltoall(mine_of_all, comm=world),
        "alltoall of rows": cj.alltoall(mine_of_all.reshape(size * 3, 2), comm=world),
        "broadcast": cj.broadcast(x, last, comm=world),
        "reduce": cj.reduce(x, root=last, comm=world),
        "gather": cj.gather(x, root=last, comm=world),
        "scatter": cj.scatter(mine_of_all if rank == last else x[None][:0], root=last, comm=world),
        "ppermute": cj.ppermute(x, ring, comm=world),
        "ppermute of one": cj.ppermute(x, lonely, comm=world),
        "send_recv": cj.send_recv(x, (rank + 1) % size, (rank - 1) % size, comm=world),
        "tree": cj.allreduce({"a": x, "b": (x[0], jnp.int32(rank))}, comm=world),
        "empty tree": cj.allreduce([], comm=world),
        "nothing": cj.allreduce(jnp.zeros((0, 4)), comm=world),
    }


total = all_of.sum(axis=0)
expected = {
    "allreduce": total,
    "in place": total,
    "allgather": all_of,
    "allgather tiled": all_of.reshape(-1, 2),
    "reduce_scatter": parts[:, rank].sum(axis=0),
    "reduce_scatter tiled": parts[:, rank].sum(axis=0),
    "alltoall": parts[:, rank],
    "alltoall of rows": parts[:, rank].reshape(-1, 2),
    "broadcast": all_of[last],
    "reduce": total if rank == last else np.zeros_like(total),
    "gather": all_of if rank == last else all_of[:0],
    "scatter": parts[last, rank],
    "ppermute": all_of[(rank - 1) % size],
    "ppermute of one": all_of[0] if size > 1 and rank == last else np.zeros_like(mine),
    "send_recv": all_of[(rank - 1) % size],
    "tree": {"a": total, "b": (total[0], np.int32(size * (size - 1) // 2))},
    "empty tree": [],
    "nothing": np.zeros((0, 4)),
}
for run in (every_collective, jax.jit(every_collective)):
    for _ in range(3):
        found = run(jnp.asarray(mine), jnp.asarray(parts[rank]))
        jax.tree.map(np.testing.assert_array_equal, found, expected)
        assert jax.tree.map(jnp.shape, found) == jax.tree.map(np.shape, expected)
        assert found["allreduce"].dtype == jnp.float32

# Messages: every rank sends to the next one, the first begins.
if size > 1:

    @jax.jit
    def pass_on(x):
        if rank == 0:
            cj.send((x, x[0]), 1, comm=world)
            return cj.recv((x, x[0]), size - 1, comm=world)
        like = (jax.ShapeDtypeStruct(x.shape, x.dtype), x[0])
        got = cj.recv(like, rank - 1, comm=world)
        cj.send(jax.tree.map(lambda y: y + 1, got), (rank + 1) % size, comm=world)
        return got

    got = pass_on(jnp.asarray(of(0)))
    np.testing.assert_array_equal(got[0], of(0) + (size - 1 if rank == 0 else rank - 1))
    np.testing.assert_array_equal(got[1], got[0][0])

# Types and operators.
results = {}
for name in sorted(cj.TYPES):
    x = jnp.asarray([0, 1, 1, rank % 2]).astype(name)
    assert x.dtype.name == name
    total = cj.allreduce(x, comm=world)
    assert total.dtype == x.dtype
    odd = size // 2
    want = np.array([0, 1, 1, odd > 0]) if name == "bool" else np.array([0, size, size, odd])
    np.testing.assert_array_equal(np.asarray(total).astype(np.complex128), want)
    for call in (lambda y: cj.allgather(y, comm=world)[rank], lambda y: cj.broadcast(y, rank * 0, comm=world)[:3]):
        np.testing.assert_array_equal(np.asarray(call(x)), np.asarray(x)[: len(call(x))])
x = np.int32([rank + 1, 6, 1 << (rank % 3), rank == 0])
each = np.stack([np.int32([i + 1, 6, 1 << (i % 3), i == 0]) for i in range(size)])
for op, fold in {
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}.items():
    np.testing.assert_array_equal(cj.allreduce(jnp.asarray(x), op, comm=world), fold.reduce(each), op)
np.testing.assert_array_equal(cj.allreduce(jnp.asarray(x), "land", comm=world), (each != 0).all(axis=0))
np.testing.assert_array_equal(cj.allreduce(jnp.asarray(x), "lor", comm=world), (each != 0).any(axis=0))
np.testing.assert_allclose(cj.allreduce(jnp.asarray(mine), "avg", comm=world), all_of.mean(axis=0))
np.testing.assert_array_equal(
    cj.reduce_scatter(jnp.asarray(parts[rank]), "max", comm=world), parts[:, rank].max(axis=0)
)

# A part of the ranks.
if size > 2:
    half = world.split(rank % 2, rank)
    np.testing.assert_array_equal(
        jax.jit(lambda y: cj.allgather(y, comm=half))(jnp.int32(rank)), range(rank % 2, size, 2)
    )
print("all right", rank)
