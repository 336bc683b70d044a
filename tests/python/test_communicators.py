# SPDX-License-Identifier: Apache-2.0
"""Starts, parts, groups, messages, operators, windows and what communicators say of themselves."""

import threading

import ccom
import numpy
import pytest
from launch import on_processes, on_threads

ONES = numpy.ones(4, "float32")


def test_alone_without_a_launcher():
    output = on_processes(
        1,
        "import os\nfor n in [*os.environ]:\n    n.startswith('CCOM_') and os.environ.pop(n)\nimport ccom; "
        "print(ccom.init())",
    )
    assert "<ccom.Communicator rank 0 of 1>" in output


def test_init_by_the_environment_and_by_a_url(tmp_path):
    program = f"""
        import ccom, numpy
        world = ccom.init(name="first")
        assert (world.local_rank, world.local_size, world.num_hosts) == (world.rank, 3, 1), world.info()
        assert world.info()["transports"] == "shm"
        another = ccom.init("file://{tmp_path}/id", rank=world.rank, size=world.size)
        identifier = world.broadcast_object(ccom.unique_id() if world.rank == 0 else None)
        third = ccom.init(unique_id=identifier, rank=world.size - 1 - world.rank, size=world.size)
        print(another.rank, third.rank, third.all_reduce(numpy.ones(1))[0])
    """
    assert sorted(on_processes(3, program).split("\n"))[1:] == ["0 2 3.0", "1 1 3.0", "2 0 3.0"]


def test_what_init_refuses():
    with pytest.raises(TypeError, match="rank, size: needs both, or neither"):
        ccom.init(rank=0)
    with pytest.raises(TypeError, match="there is no launcher"):
        ccom.init("file:///tmp/x")
    with pytest.raises(ValueError, match="unique_id: needs the 128 bytes"):
        ccom.init(unique_id=b"1", rank=0, size=2)
    with pytest.raises(ccom.Error):
        ccom.init("ftp://x", rank=0, size=2)


def test_split_and_create_group():
    def body(world):
        part = world.split(world.rank % 2, key=-world.rank, name="part")
        assert part.parent_ranks() == ([2, 0] if world.rank % 2 == 0 else [3, 1])
        assert part.all_reduce(numpy.array([world.rank]))[0] == (2 if world.rank % 2 == 0 else 4)
        assert world.split(None if world.rank else 0) is None or world.rank == 0
        if world.rank in (3, 1):
            assert world.create_group([3, 1]).rank == (world.rank == 1)
        part.close()
        world.barrier()

    on_threads(4, body)


def test_grow():
    identifier = []
    made = threading.Event()

    def join():
        made.wait(20)
        with ccom.join(identifier[0], 2, 3) as world:
            joined.append(world.all_reduce(ONES)[0])

    joined = []
    newcomer = threading.Thread(target=join)
    newcomer.start()

    def body(world):
        if world.rank == 0:
            identifier.append(world.unique_id_to_grow())
            made.set()
        with world.grow(3, identifier[0] if world.rank == 0 else None) as larger:
            return larger.all_reduce(ONES)[0], larger.parent_ranks()

    assert on_threads(2, body) == [(3, [0, 1, -1])] * 2
    newcomer.join(20)
    assert joined == [3]


def test_groups():
    def body(world):
        other = world.split(0)
        with ccom.group():
            first = world.all_reduce(ONES)
            second = other.all_gather(numpy.array([world.rank]))
            with ccom.group():
                world.all_reduce(ONES.copy(), inplace=True)
        assert first.tolist() == [2] * 4 and second.tolist() == [0, 1]
        with pytest.raises(RuntimeError, match="mine"), ccom.group():
            total = world.all_reduce(ONES)
            raise RuntimeError("mine")
        assert total.tolist() == [2] * 4  # what was called has run
        with pytest.raises(ValueError, match="counts: needed in a group"), ccom.group():
            world.all_gather_v(ONES)
        other.close()

    on_threads(2, body)


def test_send_and_recv():
    def body(world):
        right, left = (world.rank + 1) % 3, (world.rank - 1) % 3
        out = numpy.empty(4, "float32")
        assert world.send_recv(ONES * world.rank, right, out, left) is out and out[0] == left
        if world.rank == 0:
            world.send(ONES, 1)
            handle = world.recv(out, 1, blocking=False)
            assert handle.wait()[0] == 5
        elif world.rank == 1:
            assert world.recv(out, 0) is out
            world.send(ONES * 5, 0)

    on_threads(3, body)


def test_messages():
    def body(world):
        out = numpy.empty(4, "float32")
        if world.rank == 0:
            handles = [world.recv(numpy.empty(4, "float32"), ccom.ANY_RANK, tag=7, blocking=False) for _ in (1, 2)]
            assert sorted((int(handle.wait()[0]), handle.peer) for handle in handles) == [(1, 1), (2, 2)]
            world.send(ONES, 1, tag=-9)
        else:
            world.send(ONES * world.rank, 0, tag=7)
            if world.rank == 1:
                assert world.recv(out, 0, tag=-9) is out and out[0] == 1
        world.barrier()

    on_threads(3, body, messages=True)


def test_messages_without_the_setting():
    def body(world):
        with pytest.raises(ccom.InvalidUsageError, match="messages"):
            world.send(ONES, 0, tag=1)

    on_threads(2, body)


def test_operators_of_the_program():
    def body(world):
        larger = world.create_op(lambda a, b: numpy.where(abs(a) > abs(b), a, b), commutative=True)
        hypot = world.create_op(numpy.hypot, commutative=True)
        mine = numpy.array([1.0, -3, 2]) * (world.rank + 1)
        assert world.all_reduce(mine, larger).tolist() == [3, -9, 6]
        assert numpy.allclose(world.all_reduce(mine, hypot), numpy.array([1, 3, 2]) * 14**0.5)
        doubled = world.premultiplied_sum(0.5, "float64")
        assert world.all_reduce(mine, doubled).tolist() == [3, -9, 6]
        other = world.split(0)
        with pytest.raises(ValueError, match="op: was created for another communicator"):
            other.all_reduce(mine, larger)
        larger.destroy()
        with pytest.raises(ValueError, match="op: has been destroyed"):
            world.all_reduce(mine, larger)
        other.close()

    on_threads(3, body)


def test_an_operator_that_fails():
    def body(world):
        def fails(a, b):
            raise ArithmeticError("not these")

        op = world.create_op(fails)
        with pytest.raises(ccom.OperatorError, match="not these"):
            world.all_reduce(ONES, op)

    on_threads(2, body)


def test_windows():
    def body(world):
        mine = ccom.empty(3, "int32")
        with world.window(mine) as window:
            mine[:] = world.rank
            world.barrier()
            theirs = window.peer(1 - world.rank)
            assert theirs.dtype == numpy.int32 and theirs.tolist() == [1 - world.rank] * 3
            world.barrier()

    on_threads(2, body)


def test_witness():
    def body(world):
        world.witness(numpy.full(8, world.rank))
        with pytest.raises(ccom.MismatchError):
            world.barrier()
            world.barrier()

    on_threads(2, body)


def test_what_it_says():
    def body(world):
        world.all_reduce(ONES)
        assert world.info()["sequence"] >= 1 and world.info()["size"] == 2
        assert world.report() and isinstance(world.report(as_dict=True), dict) and world.report(host=True)
        assert "allreduce" in str(world.explain("allreduce", 1 << 20))
        assert world.handle != 0

    on_threads(2, body)
    assert ccom.explain_topology("torus:4x4", "allreduce", 1 << 20, "bfloat16")["ranks"] == 16
    assert ccom.variables()["CCOM_ALGO"][1] == ""
    assert ccom.version() >= (0, 9, 0) and ccom.launch() is None


def test_the_end_of_a_program_with_all_things_open():
    program = """
        import ccom, numpy
        world = ccom.init()
        part = world.split(0)
        handle = world.all_reduce(numpy.ones(10), blocking=False)
        registration = world.register(numpy.ones(10000))
        window = part.window(ccom.empty(5))
        op = part.create_op(lambda a, b: a)
        memory = ccom.empty(100)
        print("end")
    """
    assert on_processes(2, program).split() == ["end", "end"]
