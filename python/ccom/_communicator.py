# SPDX-License-Identifier: Apache-2.0
"""Communicators for numpy, DLPack and the buffer protocol; what is public of it is in the package itself."""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import pickle
import sys
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import ccom
from ccom import _errors, _places

try:
    ccom.load_library()
    from ccom import _core
except ImportError as missing:
    if importlib.util.find_spec("ccom._core") is not None:
        raise
    raise ImportError(
        "this installation of ccom has no extension for this Python (Debian's python3-ccom has none): "
        "pip install ccom, or pip install ./python from the sources"
    ) from missing

# Free-threaded builds switch it on for modules like this one, unless the user has forbidden that.
if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError("ccom needs Python's global lock, which is off in this process: start Python with PYTHON_GIL=1")

if TYPE_CHECKING:
    import numpy

_Out = TypeVar("_Out", bound="_core._Array")

ANY_RANK = -1

_core._make_errors_by(_errors.error_of)
_places.tell(_core, (ccom,), os.environ.get("CCOM_CALL_SITES", "1") != "0")
atexit.register(_core._close_all)


class Communicator(_core.Communicator):
    """The ranks that make collective calls together. ccom.init() makes the first, split() and others make parts of it.

    rank, size; local_rank, local_size: among the ranks of this host; num_hosts. A context manager, which closes it.
    """

    def __init__(self, started: _core.Started) -> None:
        super().__init__(started)
        place = self.info()
        self.local_rank: int = place["local_rank"]
        self.local_size: int = place["local_size"]
        self.num_hosts: int = place["num_hosts"]

    def __repr__(self) -> str:
        return f"<ccom.Communicator rank {self.rank} of {self.size}{', closed' if self.closed else ''}>"

    def __enter__(self) -> Communicator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and not self.closed:
            self.abort()  # the others need not wait for what this rank will not do
        self.close()

    def close(self) -> None:
        for end in self.__dict__.pop("_ends", ()):
            end()
        super().close()

    close.__doc__ = _core.Communicator.close.__doc__

    def _before_close(self, end: Any) -> None:
        """Has close() call end() first: for what uses the handle on its own."""
        self.__dict__.setdefault("_ends", []).append(end)

    def split(self, color: int | None, key: int = 0, **settings: Any) -> Communicator | None:
        """A communicator of all ranks that give the same color (0 or more), ordered by key, then by rank.

        None for color None. Collective over this communicator. settings: those of ccom.init that differ from this
        communicator's.
        """
        started = self._split(-1 if color is None else color, key, settings)
        return None if started.is_none else Communicator(started)

    def create_group(self, ranks: Iterable[int], **settings: Any) -> Communicator:
        """A communicator of these ranks of this one, in this order.

        Collective over them alone; each gives the same list.
        """
        return Communicator(self._create_group(list(ranks), settings))

    def shrink(self, exclude: Iterable[int] = (), *, abort: bool = False, **settings: Any) -> Communicator:
        """A communicator of the ranks that are left, without those excluded, in their order; after an error or before.

        Collective over the ranks that are left. abort: do first what revoke() does. This communicator stays; close()
        it.
        """
        return Communicator(self._shrink(list(exclude), abort, settings))

    def grow(self, size: int, unique_id: bytes | None = None, **settings: Any) -> Communicator:
        """A communicator of `size` ranks: those of this one, and new ones behind them, which call ccom.join.

        Collective. One rank gives the bytes of unique_id_to_grow(), the others None.
        """
        return Communicator(self._grow(size, unique_id, settings))

    def send_recv(self, array: _core._Array, dest: int, out: _Out, source: int) -> _Out:
        """Sends array to rank dest and receives out from rank source at the same time. Returns out."""
        with group():
            self.send(array, dest)
            self.recv(out, source)
        return out

    def broadcast_object(self, value: Any = None, root: int = 0) -> Any:
        """root's Python object, on every rank, by pickle."""
        data = bytearray(pickle.dumps(value)) if self.rank == root else bytearray()
        size = bytearray(len(data).to_bytes(8, "little"))
        self.broadcast(size, root)
        if self.rank != root:
            data = bytearray(int.from_bytes(size, "little"))
        self.broadcast(data, root)
        return value if self.rank == root else pickle.loads(data)

    def all_gather_object(self, value: Any) -> list[Any]:
        """The Python objects of all ranks, in their order, as a list on every rank, by pickle."""
        data = pickle.dumps(value)
        sizes = bytearray(8 * self.size)
        self.all_gather(len(data).to_bytes(8, "little"), out=sizes)
        counts = [int.from_bytes(sizes[i : i + 8], "little") for i in range(0, len(sizes), 8)]
        gathered = bytearray(sum(counts))
        self.all_gather_v(data, counts, out=gathered)
        objects, begin = [], 0
        for count in counts:
            objects.append(pickle.loads(memoryview(gathered)[begin : begin + count]))
            begin += count
        return objects

    def report(self, *, host: bool = False, as_dict: bool = False) -> Any:
        """Which ranks have made the others wait, as text or, as_dict, by parts (docs/observing.md).

        Collective; with host=True of the ranks of this host alone, local, also after an error.
        """
        text = self._report(as_dict, host)
        return json.loads(text) if as_dict else text

    def explain(self, collective: str, count: int, dtype: Any = "float32", root: int = 0) -> dict[str, Any]:
        """How a call would run, and why so, as a dict: "allreduce" of `count` elements (docs/planner.md). Local."""
        explained: dict[str, Any] = json.loads(self._explain(collective, count, dtype, root))
        return explained


class group:
    """with ccom.group(): the calls within, of this thread, begin together when it ends, and are over then.

    Sends and receives of a group progress together; collectives of several communicators run at the same time. Results
    are returned at once, but valid after the group only. What has been called runs also if the block raises an
    exception: other ranks may wait for it.
    """

    def __enter__(self) -> group:
        _core._start_group()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            _core._end_group()
        except ccom.Error:
            if kind is None:  # else what the block has raised comes first
                raise


def init(
    url: str | None = None,
    *,
    rank: int | None = None,
    size: int | None = None,
    unique_id: bytes | None = None,
    **settings: Any,
) -> Communicator:
    """The first communicator, of all ranks of the job. Collective; blocks for at most init_timeout.

    Without arguments rank, size and the others' place come from the launcher's environment (ccom-run, torchrun, mpirun,
    srun and others, docs/launchers.md); without a launcher it is a communicator of this process alone. url:
    file:///path of a common file system, or tcp://host:port, where rank 0 listens; rank and size are the launcher's
    unless given. unique_id: bytes of ccom.unique_id(), instead of a url.

    settings: name, timeout and init_timeout (seconds), transport, algorithm, topology, ifname, host_id, max_memory
    (bytes), rounding, rounding_seed, determinism, wire, messages: the fields of ccomConfig_t, which precede CCOM_*
    variables.
    """
    _core.watch_wakeups()
    if rank is None or size is None:
        if rank is not size:
            raise TypeError("rank, size: needs both, or neither, which leaves them to the launcher")
        place = _core.launch()
        if place is None and (url or unique_id):
            raise TypeError("rank, size: needed with a url or unique_id, since there is no launcher that says them")
        rank, size = place[:2] if place else (0, 1)
    if unique_id is None:
        unique_id = _core.unique_id() if size == 1 else _core.unique_id_from_url(url or "env://", size, rank)
    return Communicator(_core.start(unique_id, rank, size, settings))


def init_all(size: int, **settings: Any) -> list[Communicator]:
    """A list of `size` communicators for ranks that are threads of this process: rank i's is the i-th. For tests."""
    return [Communicator(started) for started in _core.start_all(size, settings)]


def join(unique_id: bytes, rank: int, size: int, **settings: Any) -> Communicator:
    """What a new rank calls while the others call Communicator.grow; rank counts behind theirs."""
    _core.watch_wakeups()
    return Communicator(_core.join(unique_id, rank, size, settings))


def empty(shape: int | Iterable[int], dtype: Any = "float32") -> numpy.ndarray[Any, Any]:
    """A new array of numpy's, zeros, in memory that ranks of the host can map: collectives on it copy least."""
    import numpy

    dtype = numpy.dtype(dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    elements = 1
    for length in shape:
        elements *= length
    array: numpy.ndarray[Any, Any] = _core._allocate(elements * dtype.itemsize).view(dtype).reshape(shape)
    return array


def empty_like(array: Any) -> numpy.ndarray[Any, Any]:
    """empty() of the array's shape and type."""
    return empty(array.shape, array.dtype)


def window_of_peer(window: Any, rank: int) -> Any:
    """Window.peer: bytes as elements of the window's type."""
    dtype = window._dtype
    if dtype in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        import ml_dtypes

        dtype = getattr(ml_dtypes, dtype)
    return window._peer(rank).view(dtype)


def explain_topology(
    topology: str, collective: str, count: int, dtype: Any = "float32", root: int = 0
) -> dict[str, Any]:
    """How a call would run on a machine that need not be here, as a dict: "torus:4x4" (docs/planner.md). Local."""
    explained: dict[str, Any] = json.loads(_core._explain_topology(topology, collective, count, dtype, root))
    return explained


def variables() -> dict[str, tuple[str, str, str, str]]:
    """Every CCOM_* variable: a dict of name to (value, default, origin, help), as in effect in this process."""
    return {name: (value, default, origin, text) for name, value, default, origin, text in _core._variables()}


unique_id = _core.unique_id
launch = _core.launch
Handle = _core.Handle
Operator = _core.Operator
Registration = _core.Registration
Window = _core.Window
