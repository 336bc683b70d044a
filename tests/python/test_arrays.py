# SPDX-License-Identifier: Apache-2.0
"""What is taken for an array, and what is said of all else: the argument's name, what it is, and what is needed."""

import array
import os

import ccom
import ml_dtypes
import numpy
import pytest


@pytest.fixture(scope="module")
def alone():
    with ccom.init_all(1)[0] as world:
        yield world


class Tensor:
    """As other libraries' tensors: by DLPack alone."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, **how):
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.device


TAKEN = [bytearray(b"\1\2\3"), memoryview(bytearray(8)), array.array("d", [1, 2]), array.array("l", [1, 2]), b"\1\2"]
TAKEN += [numpy.ones(3, "float16"), numpy.ones((2, 2), numpy.bool_), numpy.ones(2, ml_dtypes.bfloat16)]
TAKEN += [Tensor(numpy.ones((2, 3), "float32"))]


@pytest.mark.parametrize("given", TAKEN, ids=lambda given: type(given).__name__)
def test_taken(alone, given):
    result = alone.all_reduce(given)
    sent = given.array if isinstance(given, Tensor) else given
    assert result.tobytes() == (sent.tobytes() if hasattr(sent, "tobytes") else bytes(sent))


def test_written_in_place(alone):
    buffer = bytearray(4)
    assert alone.broadcast(buffer) is buffer
    tensor = Tensor(numpy.ones(4))
    assert alone.all_reduce(tensor, inplace=True) is tensor
    out = Tensor(numpy.zeros(4))
    alone.all_reduce(numpy.ones(4), out=out)
    assert (out.array == 1).all()


def read_only():
    given = numpy.ones(3)
    given.flags.writeable = False
    return given


F32, SQUARE, SCALAR = numpy.ones(4, "float32"), numpy.ones((4, 4)), numpy.array(1.0)
FAR = Tensor(F32, (2, 0))


REFUSED = {
    TypeError: [
        (r"array: needs an array of numpy's, or .* got list", lambda w: w.all_reduce([1, 2])),
        (r"array: needs an array.*got float", lambda w: w.all_reduce(1.0)),
        (r"array: elements of format '3w' are not supported", lambda w: w.all_reduce(numpy.array(["abc"]))),
        (r"array: elements of type datetime64.*needs one of", lambda w: w.all_reduce(numpy.array(["2026"], "M8[D]"))),
        (r"array: elements of format 'O' are not supported", lambda w: w.all_reduce(numpy.array([None]))),
        (r"array: elements are big-endian", lambda w: w.all_reduce(numpy.ones(2, ">f4"))),
        (r"array: elements of format 'g' ", lambda w: w.all_reduce(numpy.ones(2, "longdouble"))),
        (r"out: needs elements of float32, as those sent; got float64", lambda w: w.all_reduce(F32, out=numpy.ones(4))),
        (r"op: needs a name such as 'sum'.*got .*function.*create_op", lambda w: w.all_reduce(F32, lambda a, b: a)),
        (r"there is no setting 'colour'; needs one of messages, name, ", lambda w: w.split(0, colour=1)),
    ],
    ValueError: [
        (r"array: is not contiguous \(C order\); numpy.ascontiguousarray", lambda w: w.all_reduce(SQUARE[:, 1])),
        (r"array: is not contiguous", lambda w: w.all_reduce(Tensor(SQUARE.T[:2]))),
        (r"array: is not contiguous", lambda w: w.all_reduce(SQUARE.astype(ml_dtypes.bfloat16)[:, 1])),
        (r"array: is read-only, but the result is written to it", lambda w: w.all_reduce(read_only(), inplace=True)),
        (r"out: is read-only", lambda w: w.all_reduce(numpy.ones(3), out=read_only())),
        (r"out: is read-only", lambda w: w.all_reduce(numpy.ones(2, "u1"), out=b"12")),
        (r"array: is in the memory of a device \(DLPack's number 2\).*copy it to the CPU", lambda w: w.all_reduce(FAR)),
        (
            r"out: needs shape \(4,\), or another of 4 elements; got \(3,\)",
            lambda w: w.all_reduce(F32, out=F32[:3].copy()),
        ),
        (r"inplace: the result goes to array or to out", lambda w: w.all_reduce(F32, out=F32, inplace=True)),
        (r"op: there is no operator 'plus'; needs one of sum, ", lambda w: w.all_reduce(F32, "plus")),
        (r"array: needs a first dimension that the 1 ranks divide; got shape \(\)", lambda w: w.reduce_scatter(SCALAR)),
        (r"counts: needs a number for each of the 1 ranks; got 2", lambda w: w.reduce_scatter_v(F32, [2, 2])),
        (
            r"array: needs as many rows as counts has in all, 3; got shape \(4,\)",
            lambda w: w.reduce_scatter_v(F32, [3]),
        ),
        (r"array: needs the 3 rows that counts has for rank 0", lambda w: w.all_gather_v(F32, [3])),
        (r"timeout: needs seconds, more than 0", lambda w: w.split(0, timeout=0)),
        (r"residual: needs 4 elements of float32", lambda w: w.all_reduce(F32, residual=numpy.ones(4))),
    ],
    ccom.InvalidArgumentError: [(r"root", lambda w: w.broadcast(F32, root=5))],
}


@pytest.mark.parametrize("kind, text, call", [(kind, *case) for kind, cases in REFUSED.items() for case in cases])
def test_refused(alone, kind, text, call):
    with pytest.raises(kind, match=text):
        call(alone)
    assert alone.all_reduce(F32).sum() == 4  # no effect


def test_big_endian_is_swapped_as_the_text_says(alone):
    given = numpy.ones(2, ">f4")
    assert alone.all_reduce(given.astype(given.dtype.newbyteorder("="))).tolist() == [1, 1]


def test_nothing_is_kept(alone):
    buffer = bytearray(8)
    with pytest.raises(ValueError):
        alone.all_reduce(buffer, out=b"12345678")
    alone.all_reduce(buffer)
    buffer.append(1)  # BufferError if the memory were still borrowed


def test_closed():
    world = ccom.init_all(1)[0]
    world.close()
    world.close()
    assert world.closed and "closed" in repr(world)
    with pytest.raises(ValueError, match="the communicator is closed"):
        world.all_reduce(F32)
    with pytest.raises(ValueError, match="closed"):
        _ = world.handle


def test_memory(alone):
    mapped = ccom.empty((3, 4), "int16")
    assert (
        mapped.shape == (3, 4)
        and mapped.dtype == numpy.int16
        and not mapped.any()
        and mapped.ctypes.data % os.sysconf("SC_PAGESIZE") == 0
    )
    assert (
        ccom.empty_like(mapped).shape == (3, 4)
        and ccom.empty(0).shape == (0,)
        and ccom.empty(2, ml_dtypes.bfloat16).size == 2
    )
    part = mapped[1]
    del mapped
    assert alone.all_reduce(part + 1).tolist() == [1] * 4
    buffer = numpy.ones(1 << 16)
    with alone.register(buffer) as registration:
        alone.all_reduce(buffer, inplace=True)
    registration.close()
    assert buffer.all()
