# SPDX-License-Identifier: Apache-2.0
"""What mypy has to accept and to know; checked by test_types.py, never run."""

import asyncio
from typing import assert_type

import ccom
import numpy
import numpy.typing

world = ccom.init(timeout=3.0)
array = numpy.ones(3)
assert_type(world.rank, int)
out = bytearray(24)
assert_type(world.all_reduce(array, "max", out=out), bytearray)
assert_type(world.broadcast(out), bytearray)
assert_type(world.all_reduce(array, numpy.add, blocking=False), ccom.Handle)
assert_type(world.barrier(), None)
assert_type(world.split(0), "ccom.Communicator | None")
assert_type(world.recv(out, ccom.ANY_RANK, tag=3), bytearray)
with ccom.group(), world.register(array), world.window(ccom.empty((2, 3), "float32")) as window:
    window.peer(0).sum()


async def wait() -> None:
    await world.all_gather(array, blocking=False)


try:
    asyncio.run(wait())
except ccom.RankLostError as error:
    assert_type(error.ranks, "list[int]")
    world.shrink().close()
