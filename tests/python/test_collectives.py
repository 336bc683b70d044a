# SPDX-License-Identifier: Apache-2.0
"""Every collective, with all kinds of results, against numpy's."""

import ml_dtypes
import numpy
import pytest
from launch import on_threads

TYPES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128".split()
TYPES += [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
SIZES = [1, 2, 3]


def given(rank, shape, dtype="float32"):
    """Small whole numbers, of which sums are exact in every type."""
    return ((numpy.arange(int(numpy.prod(shape))) + rank) % 3).reshape(shape).astype(dtype)


def all_given(size, shape, dtype="float32"):
    return [given(rank, shape, dtype) for rank in range(size)]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: numpy.dtype(dtype).name)
def test_all_reduce_of_every_type(dtype):
    expected = sum(array.astype("int64") for array in all_given(3, (2, 5))).astype(dtype)
    for result in on_threads(3, lambda world: world.all_reduce(given(world.rank, (2, 5), dtype))):
        assert result.dtype == numpy.dtype(dtype) and result.shape == (2, 5)
        assert (result == expected).all()


def test_bool():
    result = on_threads(2, lambda world: world.all_reduce(numpy.array([world.rank == 0, False])))[1]
    assert result.dtype == bool and result.tolist() == [True, False]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "op, expected",
    [
        ("sum", sum),
        ("max", lambda all: numpy.max(all, 0)),
        ("min", lambda all: numpy.min(all, 0)),
        ("avg", lambda all: numpy.mean(all, 0)),
        ("prod", lambda all: numpy.prod(all, 0)),
        (numpy.add, sum),
        (numpy.maximum, lambda all: numpy.max(all, 0)),
    ],
)
def test_operators(size, op, expected):
    for result in on_threads(size, lambda world: world.all_reduce(given(world.rank, 7, "float64"), op)):
        assert numpy.allclose(result, expected(all_given(size, 7, "float64")))


def test_bits():
    def body(world):
        mine = numpy.array([0b1100, 0b1010][world.rank], "uint8")
        return [int(world.all_reduce(mine, op)) for op in ("band", "bor", "bxor", "land", "lor")]

    assert on_threads(2, body) == [[0b1000, 0b1110, 0b0110, 1, 1]] * 2


@pytest.mark.parametrize("size", SIZES)
def test_where_results_go(size):
    def body(world):
        array = given(world.rank, (3, 4))
        before = array.copy()
        new = world.all_reduce(array)
        assert new is not array and (array == before).all()
        out = numpy.empty((4, 3), "float32")  # another shape of as many elements
        assert world.all_reduce(array, out=out) is out and (out.ravel() == new.ravel()).all()
        assert world.all_reduce(array, inplace=True) is array and (array == new).all()
        again = before.copy()
        assert world.all_reduce(again, out=again) is again and (again == new).all()
        scalar = world.all_reduce(numpy.float64(2))
        assert scalar.shape == () and scalar == 2 * world.size
        assert world.all_reduce(numpy.empty((0, 3))).shape == (0, 3)

    on_threads(size, body)


@pytest.mark.parametrize("size", SIZES)
def test_shapes_of_all(size):
    """The rule: along the first dimension."""

    def body(world):
        rank = world.rank
        rows = numpy.full((2, 3), rank, "int32")
        gathered = numpy.concatenate([numpy.full((2, 3), each, "int32") for each in range(size)])
        assert (world.all_gather(rows) == gathered).all()
        out = numpy.empty((size, 2, 3), "int32")
        assert world.all_gather(rows, out=out) is out and (out.reshape(-1, 3) == gathered).all()
        assert world.all_gather(numpy.array(rank)).tolist() == list(range(size))
        inside = numpy.zeros((size * 2, 3), "int32")
        inside[2 * rank : 2 * rank + 2] = rank
        world.all_gather(inside[2 * rank : 2 * rank + 2], out=inside)
        assert (inside == gathered).all()

        root = size - 1
        at_root = world.gather(rows, root)
        assert (at_root == gathered).all() if rank == root else at_root is None
        reduced = world.reduce(rows, "max", root)
        assert (reduced == root).all() and reduced.shape == (2, 3) if rank == root else reduced is None

        whole = numpy.arange(size * 2 * 3, dtype="int64").reshape(size * 2, 3)
        part = whole[2 * rank : 2 * rank + 2]
        assert (world.reduce_scatter(whole) == size * part).all()
        assert (
            world.scatter(whole if rank == 0 else None, out=None if rank == 0 else numpy.empty((2, 3), "int64")) == part
        ).all()
        sent = numpy.repeat(numpy.arange(size) + 10 * rank, 2)
        assert (world.all_to_all(sent) == numpy.repeat(rank + 10 * numpy.arange(size), 2)).all()
        assert world.all_to_all(sent, inplace=True) is sent and sent[0] == rank
        world.barrier()

    on_threads(size, body)


@pytest.mark.parametrize("size", SIZES)
def test_broadcast(size):
    def body(world):
        array = numpy.full(5, world.rank, "float64")
        if world.rank == size - 1:
            array.flags.writeable = False  # it is only read there
        assert world.broadcast(array, root=size - 1) is array and (array == size - 1).all()
        out = numpy.empty(5)
        world.broadcast(numpy.full(5, 7.0) if world.rank == 0 else None, out=out)
        assert (out == 7).all()

    on_threads(size, body)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_parts_of_different_lengths(size, told):
    counts = [(rank * 2 + 1) % 4 for rank in range(size)]

    def body(world):
        rank = world.rank
        mine = numpy.full((counts[rank], 2), rank, "float32")
        expected = numpy.concatenate([numpy.full((counts[each], 2), each, "float32") for each in range(size)])
        said = counts if told else None
        assert (world.all_gather_v(mine, said) == expected).all()
        gathered = world.gather_v(mine, said)
        assert (gathered == expected).all() if rank == 0 else gathered is None
        begin = sum(counts[:rank])
        part = slice(begin, begin + counts[rank])
        assert (world.reduce_scatter_v(expected, counts) == size * expected[part]).all()
        out = None if rank == 0 else numpy.empty((counts[rank], 2), "float32")
        scattered = world.scatter_v(expected if rank == 0 else None, counts if rank == 0 else None, out=out)
        assert (scattered == expected[part]).all()
        sends = [(rank + to) % 3 for to in range(size)]
        sent = numpy.concatenate([numpy.full(sends[to], 10 * rank + to) for to in range(size)])
        receives = [(source + rank) % 3 for source in range(size)]
        received = numpy.concatenate([numpy.full(receives[source], 10 * source + rank) for source in range(size)])
        assert (world.all_to_all_v(sent, sends, receives if told else None) == received).all()

    on_threads(size, body)


def test_objects():
    def body(world):
        assert world.broadcast_object({"from": world.rank}, root=1) == {"from": 1}
        assert world.all_gather_object("x" * world.rank) == ["", "x", "xx"]

    on_threads(3, body)
