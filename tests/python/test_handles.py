# SPDX-License-Identifier: Apache-2.0
"""Operations that nobody waits for at once; asyncio."""

import asyncio
import gc
import queue
import threading
import weakref

import ccom
import numpy
import pytest
from harness.processes import is_asleep, until
from launch import on_threads


def test_results_and_order():
    def body(world):
        handles = [
            world.all_reduce(numpy.full(1000, step + world.rank, "float64"), blocking=False) for step in range(20)
        ]
        last = world.all_reduce(numpy.ones(1))  # behind them
        assert last == world.size
        assert [handle.wait()[0] for handle in handles] == [2 * step + 1 for step in range(20)]
        assert all(handle.done() for handle in handles)  # a thread of the library says so: after the wait, not before
        assert world.barrier(blocking=False).wait() is None

    on_threads(2, body)


def test_it_waits():
    began = threading.Event()

    def body(world):
        if world.rank == 0:
            handle = world.all_reduce(numpy.ones(2), blocking=False)
            assert not handle.done()
            with pytest.raises(TimeoutError, match="it goes on") as caught:
                handle.wait(0.02)
            assert not isinstance(caught.value, ccom.Error)
            began.set()
            return handle.wait().tolist()
        began.wait(20)
        return world.all_reduce(numpy.ones(2)).tolist()

    assert on_threads(2, body) == [[2, 2], [2, 2]]


class Owned(numpy.ndarray):
    """An array that weak references may tell of."""


def test_arrays_live_as_long_as_needed():
    dropped = threading.Event()

    def body(world):
        if world.rank == 1:
            dropped.wait(20)
            return world.all_reduce(numpy.ones(1 << 12))
        array = numpy.ones(1 << 12).view(Owned)
        alive = weakref.ref(array)
        handle = world.all_reduce(array, inplace=True, blocking=False)
        del array
        gc.collect()
        assert alive() is not None
        del handle  # the operation goes on, with its array
        gc.collect()
        assert alive() is not None
        dropped.set()
        while not world.all_reduce(numpy.ones(1 << 12)).all():
            pass
        world.all_reduce(numpy.ones(1), blocking=False)  # releases what is over
        gc.collect()
        assert alive() is None

    def both(world):
        body(world)
        if world.rank == 1:
            world.all_reduce(numpy.ones(1 << 12))
            world.all_reduce(numpy.ones(1))

    on_threads(2, both)


def test_callbacks():
    def body(world):
        called = threading.Event()
        handle = world.all_reduce(numpy.ones(3), blocking=False)
        handle.add_done_callback(called.set)
        assert called.wait(20) and handle.done()
        late = []
        handle.add_done_callback(lambda: late.append(1))
        assert late == [1]

    on_threads(2, body)


def test_asyncio():
    ticks = [0, 0]

    def body(world):
        async def steps():
            async def tick():
                while True:
                    ticks[world.rank] += 1
                    await asyncio.sleep(0)

            ticking = asyncio.create_task(tick())
            if world.rank == 1:
                before = ticks[0]
                while ticks[0] < before + 5:  # the loop of the rank that waits goes on
                    await asyncio.sleep(0)
            first = world.all_reduce(numpy.array([1.0]), blocking=False)
            second = world.all_gather(numpy.array([world.rank]), blocking=False)
            results = await asyncio.gather(awaiting(first), awaiting(second))
            again = await first
            ticking.cancel()
            assert again is results[0]
            return results[0].tolist(), results[1].tolist()

        async def awaiting(handle):
            return await handle

        return asyncio.run(steps())

    assert on_threads(2, body) == [([2.0], [0, 1])] * 2


def test_errors_and_cancelling_in_asyncio():
    def body(world):
        async def steps():
            never = world.all_reduce(numpy.ones(3), blocking=False)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(wrapped(never), 0.05)
            world.abort()
            with pytest.raises(ccom.AbortedError):
                await never
            with pytest.raises(ccom.AbortedError):
                world.all_reduce(numpy.ones(3))
            assert isinstance(world.async_error(), ccom.AbortedError)

        async def wrapped(handle):
            return await handle

        if world.rank == 0:
            asyncio.run(steps())

    on_threads(2, body)


def test_not_in_a_group():
    with ccom.init_all(1)[0] as world, ccom.group():
        with pytest.raises(ValueError, match="blocking: calls of a group"):
            world.all_reduce(numpy.ones(3), blocking=False)


def test_the_interpreter_runs_meanwhile():
    """Blocking calls release the GIL: rank 1 comes when it has seen that rank 0 waits."""
    waiting = queue.Queue()

    def body(world):
        if world.rank == 0:
            waiting.put(threading.get_native_id())
        else:
            thread = waiting.get(timeout=20)
            until(lambda: is_asleep(thread))
        return world.all_reduce(numpy.ones(1))[0]

    assert on_threads(2, body) == [2, 2]
