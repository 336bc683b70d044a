# SPDX-License-Identifier: Apache-2.0
"""Errors in compiled functions, one kind a run: what is raised, with which fields, and how it goes on."""

import os
import signal
import sys
import time

import ccom
import ccom.jax as cj
import jax
import jax.numpy as jnp
import numpy as np
from harness.processes import has_ended, is_asleep, until, when_asleep

world = ccom.init(timeout=20)
rank, size = world.rank, world.size
reduce = jax.jit(lambda x: cj.allreduce(x, comm=world))
ready = jax.block_until_ready
ready(reduce(jnp.ones(1000)))


pids = world.all_gather_object(os.getpid())


def raises(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise SystemExit(f"rank {rank}: no {kind.__name__}")


def killed():
    if rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()

    def wait_for_the_dead():
        with cj.errors():
            for _ in range(1000):
                ready(reduce(jnp.ones(1000)))

    error = raises(ccom.RankLostError, wait_for_the_dead)
    assert error.ranks == [size - 1] and error.cure, (error.ranks, error)
    assert "errors.py" in str(error), error
    assert isinstance(error.__cause__, jax.errors.JaxRuntimeError) and "UNAVAILABLE" in str(error.__cause__)
    assert time.monotonic() - begin < 15
    # The error stays that of the communicator; a new one begins without.
    raises(jax.errors.JaxRuntimeError, lambda: ready(reduce(jnp.ones(1000))))
    rest = world.shrink()
    assert float(jax.jit(lambda x: cj.allreduce(x, comm=rest))(jnp.float32(1))) == size - 1
    raises(jax.errors.JaxRuntimeError, lambda: ready(reduce(jnp.ones(1000))))
    cj.forget_errors()
    assert float(cj.allreduce(jnp.float32(2), comm=rest)) == 2 * (size - 1)


def sizes():
    """Programs that were compiled for a communicator of another size: nothing is read or written beside the arrays."""
    attributes = {"comm": cj._library.number_of(world), "op": 0, "peer": 0, "source": -1, "pairs": 1}
    wrong = [
        ("all_reduce", 6, 4), ("broadcast", 4, 6), ("reduce", 6, 4), ("all_gather", 4, 4), ("all_gather", 4, 12),
        ("reduce_scatter", 4, 4), ("reduce_scatter", 6, 4), ("all_to_all", 3, 3), ("all_to_all", 4, 6),
    ] + ([("gather", 4, 4), ("scatter", 4, 4)] if rank == 0 else [])
    for name, sent, received in wrong:
        call = jax.ffi.ffi_call(f"ccom_{name}", jax.ShapeDtypeStruct((received,), jnp.float32), has_side_effect=True)
        values = {key: np.int64(value) for key, value in attributes.items()}
        error = raises(jax.errors.JaxRuntimeError, lambda: ready(call(jnp.ones(sent), place="", **values)))
        assert "do not fit a communicator of 2 ranks" in str(error), (name, error)
    other = jax.ffi.ffi_call("ccom_all_reduce", jax.ShapeDtypeStruct((4,), jnp.int32), has_side_effect=True)
    values = {key: np.int64(value) for key, value in attributes.items()}
    raises(jax.errors.JaxRuntimeError, lambda: ready(other(jnp.ones(4), place="", **values)))
    assert float(reduce(jnp.ones(1000))[0]) == size


def mismatch():
    error = raises(jax.errors.JaxRuntimeError, lambda: ready(reduce(jnp.ones(10 + rank))))
    text = str(error)
    assert "count 10" in text and "count 11" in text and "errors.py" in text and "CCOM-E008" in text, text
    own = cj.error_of(error)
    assert isinstance(own, ccom.MismatchError) and own.key == "CCOM-E008", own
    assert cj.error_of(ValueError("other")) is None


def aborted():
    if rank == 0:
        until(lambda: is_asleep(pids[1]))
        world.abort()
        return
    error = raises(jax.errors.JaxRuntimeError, lambda: ready(reduce(jnp.ones(1000))))
    assert isinstance(cj.error_of(error), ccom.AbortedError), error


def late():
    world.set_timeout(1)
    if rank == 0:
        until(lambda: has_ended(pids[1]))
        return
    error = raises(jax.errors.JaxRuntimeError, lambda: ready(reduce(jnp.ones(1000))))
    own = cj.error_of(error)
    assert isinstance(own, ccom.TimeoutError) and own.ranks == [0] and "DEADLINE_EXCEEDED" in str(error), error


def wrong():
    x = jnp.ones(3)
    part = world.split(0)
    of_part = jax.jit(lambda y: cj.allreduce(y, comm=part))
    ready(of_part(x))
    for kind, call, words in (
        (TypeError, lambda: cj.allreduce(x, comm=None), "comm: needs a ccom.Communicator"),
        (TypeError, lambda: cj.allreduce(x.astype("float8_e4m3b11fnuz"), comm=world), "x: has type float8_e4m3b11fnuz"),
        (TypeError, lambda: cj.recv(jax.ShapeDtypeStruct((1,), jnp.int4), 0, comm=world), "has type int4"),
        (ValueError, lambda: cj.allreduce(x, "mean", comm=world), "op: got 'mean'"),
        (ValueError, lambda: cj.broadcast(x, size, comm=world), f"root: got {size}"),
        (ValueError, lambda: cj.reduce_scatter(jnp.ones(size + 1), comm=world), "first dimension"),
        (ValueError, lambda: cj.alltoall(jnp.float32(1), comm=world), "first dimension"),
        (ValueError, lambda: cj.scatter(jnp.float32(1), comm=world), "a part for each rank"),
        (ValueError, lambda: cj.ppermute(x, [(0, 0), (0, 1)], comm=world), "has a source twice"),
    ):
        for run in (call, jax.jit(call)):
            assert words in str(raises(kind, run)), words
    # What ccom refuses has no effect.
    error = raises(jax.errors.JaxRuntimeError, lambda: ready(cj.allreduce(x, "band", comm=world)))
    assert "INVALID_ARGUMENT" in str(error) and isinstance(cj.error_of(error), ccom.InvalidArgumentError), error
    cj.forget_errors()
    part.close()
    assert "is closed" in str(raises(ValueError, lambda: cj.allreduce(x, comm=part)))
    assert "is closed: trace the function again" in str(raises(jax.errors.JaxRuntimeError, lambda: ready(of_part(x))))
    cj.forget_errors()
    # Nobody holds this one any more, but its compiled function.
    of_gone = jax.jit(
        lambda y, number=cj._library.number_of(world.split(0)): cj.p.all_reduce_p.bind(
            y, comm=number, size=size, op="sum", in_place=False, place=""
        )
    )
    assert "is closed" in str(raises(jax.errors.JaxRuntimeError, lambda: ready(of_gone(x))))
    cj.forget_errors()
    assert float(reduce(jnp.ones(1000))[0]) == size


def interrupted():
    numbers = jnp.ones(int(sys.argv[2]))
    ready(reduce(numbers))
    if rank == 0:
        when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
        try:
            ready(reduce(numbers))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            os._exit(0)
        raise SystemExit("not interrupted")
    until(lambda: has_ended(pids[0]))
    error = raises(jax.errors.JaxRuntimeError, lambda: ready(reduce(numbers)))
    assert isinstance(cj.error_of(error), (ccom.AbortedError, ccom.RankLostError)), error


globals()[sys.argv[1]]()
print("all right", rank, flush=True)
