# SPDX-License-Identifier: Apache-2.0
"""Derivatives against the whole problem on one rank, vmap against a loop, control flow, checkpointing."""

import functools

import ccom
import ccom.jax as cj
import jax
import jax.numpy as jnp
import numpy as np

world = ccom.init(timeout=60)
rank, size = world.rank, world.size
last = size - 1
close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)
key = jax.random.split(jax.random.key(0), size)
all_of = np.stack([np.asarray(jax.random.normal(k, (size, 3))) for k in key])  # [rank][part][...]
x = jnp.asarray(all_of[rank])
ring = [(i, (i + 1) % size) for i in range(size)]

# Linear maps of all ranks' x together, as a function of an array [rank][...], and whether the sum over ranks of what is
# behind them is meant: then the transpose is that of the whole map. allreduce's result is one value that all ranks
# share instead.
CALLS = {
    "allgather": (lambda y: cj.allgather(y, comm=world), lambda a: jnp.stack([a] * size)),
    "allgather tiled": (
        lambda y: cj.allgather(y, comm=world, tiled=True),
        lambda a: jnp.stack([a.reshape(-1, 3)] * size),
    ),
    "reduce_scatter": (lambda y: cj.reduce_scatter(y, comm=world), lambda a: a.sum(axis=0)),
    "reduce_scatter avg": (lambda y: cj.reduce_scatter(y, "avg", comm=world), lambda a: a.mean(axis=0)),
    "alltoall": (lambda y: cj.alltoall(y, comm=world), lambda a: a.swapaxes(0, 1)),
    "broadcast": (lambda y: cj.broadcast(y, last, comm=world), lambda a: jnp.stack([a[last]] * size)),
    "reduce": (lambda y: cj.reduce(y, root=last, comm=world), lambda a: jnp.zeros_like(a).at[last].set(a.sum(axis=0))),
    "ppermute": (lambda y: cj.ppermute(y, ring, comm=world), lambda a: jnp.roll(a, 1, axis=0)),
    "ppermute of one": (
        lambda y: cj.ppermute(y, ring[:1], comm=world),
        lambda a: jnp.zeros_like(a).at[1 % size].set(a[0]),
    ),
    "gather": (
        lambda y: cj.gather(y, last, comm=world).sum(axis=0),
        lambda a: jnp.zeros_like(a).at[last].set(a.sum(axis=0)),
    ),
    "scatter": (lambda y: cj.scatter(y, last, comm=world), lambda a: a[last]),
}
for name, (call, whole) in CALLS.items():
    weights = jnp.cos(jnp.arange(whole(all_of).size, dtype=jnp.float32)).reshape(whole(all_of).shape)
    own = jax.jit(jax.value_and_grad(lambda y: (jnp.sin(call(y * y)) * weights[rank]).sum()))
    value, gradient = own(x)
    close(cj.allreduce(value, comm=world), (jnp.sin(whole(all_of**2)) * weights).sum(), err_msg=name)
    close(gradient, jax.grad(lambda a: (jnp.sin(whole(a * a)) * weights).sum())(all_of)[rank], err_msg=name)
    primal, tangent = jax.jvp(call, (x,), (x + 1,))
    close(tangent, jax.jvp(whole, (all_of,), (all_of + 1,))[1][rank], err_msg=name)
    # Twice transposed is what it was.
    there = jax.linear_transpose(lambda c: jax.linear_transpose(call, x)(c)[0], primal)
    close(there(x)[0], primal, err_msg=name)

# allreduce: with a loss that all ranks share, each rank has the derivative by its own x.
for op, factor in (("sum", 1.0), ("avg", 1 / size)):
    loss = lambda y: jnp.sin(cj.allreduce((y**2).sum(), op, comm=world))
    whole = lambda a: jnp.sin((a**2).sum() * factor)
    close(jax.jit(jax.grad(loss))(x), jax.grad(whole)(all_of)[rank], rtol=1e-4)
    close(jax.jvp(loss, (x,), (x,))[1], jax.jvp(whole, (all_of,), (all_of,))[1], rtol=1e-4)
    twice = jax.linear_transpose(lambda c: jax.linear_transpose(lambda y: cj.allreduce(y, op, comm=world), x)(c)[0], x)
    close(twice(x)[0], cj.allreduce(x, op, comm=world))
# Shared parameters, each rank's own data: pvary sums the gradients.
shared = jnp.arange(3.0)
close(jax.grad(lambda w: (x @ cj.pvary(w, comm=world)).sum())(shared), all_of.sum(axis=(0, 1)))
tree = jax.grad(lambda t: cj.allreduce({"b": t["a"] ** 2, "n": jnp.int32(3)}, comm=world)["b"].sum())({"a": x})
close(tree["a"], 2 * x)
for call, name in (
    (lambda y: cj.allreduce(y, "max", comm=world), "all_reduce"),
    (lambda y: cj.send(y, rank, comm=world) or y, "send"),
):
    try:
        jax.grad(lambda y: call(y).sum())(x)
        raise SystemExit(f"{name} has a derivative")
    except NotImplementedError as error:
        assert f"ccom_{name}" in str(error) and "derivative" in str(error), error

# vmap is one call.
for name, (call, _) in CALLS.items():
    batch = jnp.stack([x, x + 1, 2 * x, -x], axis=1)
    for axis_in, axis_out in ((1, 0), (1, -1)):
        found = jax.jit(jax.vmap(call, in_axes=axis_in, out_axes=axis_out))(batch)
        close(found, np.stack([call(batch[:, i]) for i in range(4)], axis=axis_out), err_msg=name)
    calls = str(jax.make_jaxpr(jax.vmap(call, in_axes=1))(batch)).count(" ccom_")
    assert calls == 1, (name, calls)
mixed = jax.vmap(lambda y, z: cj.allreduce((y, z), comm=world), in_axes=(0, None))(x, x)
close(mixed[0], cj.allreduce(x, comm=world))
close(mixed[1][0], cj.allreduce(x, comm=world))


# Control flow, in the order of the program.
@jax.jit
def in_loops(y):
    def body(carry, row):
        carry = cj.allreduce(carry, "avg", comm=world) + row
        return carry, cj.ppermute(carry, ring, comm=world)

    y, rows = jax.lax.scan(body, y[0], y)
    y = jax.lax.fori_loop(0, 3, lambda i, v: cj.allreduce(v, "max", comm=world) + i, y)
    y = jax.lax.cond(y.sum() > -1e9, lambda v: cj.allreduce(v, comm=world), lambda v: v, y)
    return jax.lax.while_loop(lambda v: v.sum() < 100, lambda v: cj.allreduce(jnp.abs(v) + 1, comm=world), y), rows


carries = all_of[:, 0]
for part in range(size):
    carries = carries.mean(axis=0) + all_of[:, part]
v = carries
for i in range(3):
    v = np.broadcast_to(v.max(axis=0), v.shape) + i
v = np.broadcast_to(v.sum(axis=0), v.shape)
while v[0].sum() < 100:
    v = np.broadcast_to((np.abs(v) + 1).sum(axis=0), v.shape)
y, rows = in_loops(x)
close(y, v[rank])
close(rows[-1], carries[(rank - 1) % size])

# A function that is computed again in the backward pass calls again, on all ranks.
layer = jax.checkpoint(lambda y: jnp.sin(cj.allreduce(jnp.sin(y), comm=world)))
close(
    jax.jit(jax.grad(lambda y: layer(layer(y)).sum()))(x),
    jax.grad(lambda y: (lambda f: f(f(y)).sum())(lambda z: jnp.sin(cj.allreduce(jnp.sin(z), comm=world))))(x),
)


@jax.custom_vjp
def own_rule(y):
    return cj.allreduce(y, comm=world)


own_rule.defvjp(lambda y: (own_rule(y), None), lambda _, c: (cj.allreduce(c, comm=world),))
close(jax.jit(jax.grad(lambda y: own_rule(y).sum()))(x), np.full_like(x, size))
print("all right", rank)
