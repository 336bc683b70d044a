# SPDX-License-Identifier: Apache-2.0
"""ccom.jax: ccom's collectives in JAX, on the CPU, inside jax.jit and outside.

    import ccom, ccom.jax, jax
    world = ccom.init()                             # ccom-run -n 4 script.py
    step = jax.jit(lambda x: ccom.jax.allreduce(x ** 2, comm=world))

Every process runs the same program; all ranks must come to the same calls in the same order, which is that of the
program, also where calls do not depend on one another. x is an array or a tree of arrays (parameters, gradients), which
is one group of calls: small ones travel together. Types: ccom's 17. Results are bitwise equal on all ranks.
Derivatives, vmap, errors, what differs from mpi4jax: docs/doors/jax.md
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import ccom

if importlib.util.find_spec("jax") is None:
    raise ModuleNotFoundError("ccom.jax needs JAX, which is not installed here: pip install jax, and then ccom again "
                              "if it was built without (docs/installing.md)", name="jax")
from ccom.jax import _trampoline  # noqa: F401, before jax

# isort: split
import jax
import jax.numpy as jnp
import numpy as np

from ccom.jax import _library
from ccom.jax import _primitives as p
from ccom.jax._distributed import use_in_jax_distributed
from ccom.jax._library import forget_errors

Tree = TypeVar("Tree")  # an array, or a tree of arrays

__all__ = [
    "allgather", "allreduce", "alltoall", "barrier", "broadcast", "error_of", "errors", "forget_errors", "gather",
    "ppermute", "pvary", "recv", "reduce", "reduce_scatter", "scatter", "send", "send_recv", "use_in_jax_distributed",
]  # fmt: skip

TYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 float8_e4m3fn float8_e5m2 "
    "complex64 complex128".split()
)  # fmt: skip


def allreduce(x: Tree, op: str = "sum", *, comm: ccom.Communicator, in_place: bool = False) -> Tree:
    """The reduction of all ranks' x, on every rank; the same shape and type.

    op: "sum", "prod", "max", "min", "avg", "band", "bor", "bxor", "land", "lor". in_place: the result takes the place
    of x in memory: without a copy if x is an intermediate value that is not used again, or a donated argument; else
    with one. Derivatives of "sum" and "avg": the tangents' sum; backwards the cotangent itself (of "avg" divided by the
    ranks), since the result is one value that all ranks share (pvary).
    """
    return _call(p.all_reduce_p, x, comm, op=_op(op), in_place=bool(in_place))


def pvary(x: Tree, *, comm: ccom.Communicator) -> Tree:
    """x itself; backwards the sum of the cotangents of all ranks.

    For what all ranks share and each uses on its own: parameters, whose gradient is then the sum over ranks.
    """
    return _call(p.vary_p, x, comm, op="sum", in_place=False)


def allgather(x: Tree, *, comm: ccom.Communicator, tiled: bool = False) -> Tree:
    """All ranks' x in rank order: shape (size, *x.shape), or, tiled, one behind the other in the first dimension."""
    results = _call(p.all_gather_p, x, comm, parts=comm.size)
    return jax.tree.map(lambda y: y.reshape(y.shape[0] * y.shape[1], *y.shape[2:]), results) if tiled else results


def reduce_scatter(x: Tree, op: str = "sum", *, comm: ccom.Communicator, tiled: bool = False) -> Tree:
    """This rank's part of the reduction of all ranks' x.

    x: shape (size, ...), of which part `rank` is returned, shape (...); or, tiled, any multiple of size in the first
    dimension, of which the result has a size-th.
    """
    return _call(p.reduce_scatter_p, _parted(x, comm, tiled, "reduce_scatter"), comm, op=_op(op))


def alltoall(x: Tree, *, comm: ccom.Communicator) -> Tree:
    """x in `size` equal parts along its first dimension: part j goes to rank j, part i of the result is from rank i."""
    results = _call(p.all_to_all_p, _parted(x, comm, True, "alltoall"), comm)
    return jax.tree.map(lambda y, like: y.reshape(jnp.shape(like)), results, x)


def broadcast(x: Tree, root: int = 0, *, comm: ccom.Communicator, in_place: bool = False) -> Tree:
    """root's x, on every rank. Of other ranks' x shape and type are used. in_place: as in allreduce."""
    return _call(p.broadcast_p, x, comm, peer=_rank(root, comm, "root"), in_place=bool(in_place))


def reduce(x: Tree, op: str = "sum", root: int = 0, *, comm: ccom.Communicator) -> Tree:
    """The reduction of all ranks' x on root; zeros of the same shape elsewhere."""
    return _call(p.reduce_p, x, comm, op=_op(op), peer=_rank(root, comm, "root"))


def gather(x: Tree, root: int = 0, *, comm: ccom.Communicator) -> Tree:
    """All ranks' x in rank order on root, shape (size, *x.shape); elsewhere an empty array, shape (0, *x.shape)."""
    root = _rank(root, comm, "root")
    return _call(p.gather_p, x, comm, peer=root, parts=comm.size if comm.rank == root else 0)


def scatter(x: Tree, root: int = 0, *, comm: ccom.Communicator) -> Tree:
    """Part `rank` of root's x, which has shape (size, ...); shape (...).

    Other ranks give an array of that type whose dimensions behind the first are those of the result, an empty one for
    instance.
    """
    root = _rank(root, comm, "root")
    for leaf in jax.tree.leaves(x):
        if jnp.ndim(leaf) == 0 or (comm.rank == root and jnp.shape(leaf)[0] != comm.size):
            raise ValueError(
                f"scatter: x has shape {jnp.shape(leaf)}, needs ({comm.size}, ...) on root: a part for each rank"
            )
    if comm.rank != root:
        x = jax.tree.map(lambda leaf: jnp.asarray(leaf)[:0], x)
    return _call(p.scatter_p, x, comm, peer=root, parts=comm.size if comm.rank == root else 0)


def ppermute(x: Tree, perm: Iterable[tuple[int, int]], *, comm: ccom.Communicator) -> Tree:
    """x of the rank that sends to this one, zeros if none does. perm: pairs (source, destination), as in
    jax.lax.ppermute.
    """
    perm = [(_rank(a, comm, "perm"), _rank(b, comm, "perm")) for a, b in perm]
    for side, name in ((0, "source"), (1, "destination")):
        ranks = [pair[side] for pair in perm]
        if len(set(ranks)) != len(ranks):
            raise ValueError(f"perm: {perm} has a {name} twice")
    to = next((b for a, b in perm if a == comm.rank), p.NOBODY)
    source = next((a for a, b in perm if b == comm.rank), p.NOBODY)
    return _call(p.exchange_p, x, comm, peer=to, source=source)


def send_recv(x: Tree, dest: int, source: int, *, comm: ccom.Communicator) -> Tree:
    """Sends x to rank dest, and returns what rank source sends here, which has the same shape and type."""
    return _call(p.exchange_p, x, comm, peer=_rank(dest, comm, "dest"), source=_rank(source, comm, "source"))


def send(x: Any, dest: int, *, comm: ccom.Communicator) -> None:
    """Sends x to rank dest, which calls recv. Returns nothing; may block until dest does. Has no derivative."""
    _call(p.send_p, x, comm, peer=_rank(dest, comm, "dest"), source=p.NOBODY)


def recv(like: Any, source: int, *, comm: ccom.Communicator) -> Any:
    """What rank source sends by send; shape and type are those of `like`, an array or jax.ShapeDtypeStruct."""
    number = _library.number_of(comm)
    params = dict(comm=number, peer=p.NOBODY, source=_rank(source, comm, "source"), place=_library.place())
    leaves, tree = jax.tree.flatten(like)
    shapes = [
        (tuple(jnp.shape(leaf)), np.dtype(getattr(leaf, "dtype", None) or jnp.result_type(leaf))) for leaf in leaves
    ]
    return jax.tree.unflatten(
        tree, [p.receive_p.bind(shape=shape, dtype=_type(dtype), **params)[0] for shape, dtype in shapes]
    )


def barrier(*, comm: ccom.Communicator) -> None:
    """Returns when all ranks have called it; in a compiled function, calls behind it begin then."""
    p.barrier_p.bind(comm=_library.number_of(comm), place=_library.place())


@contextlib.contextmanager
def errors() -> Iterator[None]:
    """with ccom.jax.errors(): JAX's errors that come from ccom are raised as ccom.Error, with ranks, cure and the other
    fields.

    A computation that has been dispatched may fail later, where its result is used: wait for it within
    (block_until_ready).
    """
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        own = error_of(error)
        if own is None:
            raise
        raise own from error


def error_of(exception: BaseException) -> ccom.Error | None:
    """The ccom.Error behind an exception of JAX's; None if it is not the last error of ccom in a compiled function."""
    return _library.error_of(exception)


def _call(primitive, x, comm, **params):
    number = _library.number_of(comm)
    leaves, tree = jax.tree.flatten(x)
    arrays = [jnp.asarray(leaf) for leaf in leaves]
    for array in arrays:
        _type(array.dtype)
    if not arrays:
        return x
    results = primitive.bind(*arrays, comm=number, size=comm.size, place=_library.place(), **params)
    return jax.tree.unflatten(tree, results) if results else None


def _type(dtype):
    if dtype.name not in TYPES:
        raise TypeError(f"x: has type {dtype.name}, needs one of ccom's: {', '.join(sorted(TYPES))}")
    return dtype


def _op(op):
    if op not in p.OPS:
        raise ValueError(f"op: got {op!r}, needs one of {', '.join(p.OPS)}")
    return op


def _rank(rank, comm, argument):
    _library.number_of(comm)
    if not isinstance(rank, (int, np.integer)) or not 0 <= rank < comm.size:
        raise ValueError(f"{argument}: got {rank!r}, needs a rank from 0 to {comm.size - 1}")
    return int(rank)


def _parted(x, comm, tiled, name):
    """Leaves as (size, rest of the first dimension, ...) if tiled."""
    _library.number_of(comm)

    def parted(leaf):
        shape = jnp.shape(leaf)
        if not shape or (shape[0] % comm.size if tiled else shape[0] != comm.size):
            needed = f"a multiple of {comm.size}" if tiled else f"{comm.size}"
            raise ValueError(
                f"{name}: x has shape {shape}, needs {needed} in the first dimension: a part for each rank"
            )
        return jnp.reshape(leaf, (comm.size, shape[0] // comm.size, *shape[1:])) if tiled else leaf

    return jax.tree.map(parted, x)
