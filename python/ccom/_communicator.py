# SPDX-License-Identifier: Apache-2.0
"""Communicators for numpy, DLPack and the buffer protocol; what is public of it is in the package itself."""
import atexit
import importlib.util
import json
import os
import pickle

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

ANY_RANK = -1

_core._make_errors_by(_errors.error_of)
_places.tell(_core, (ccom,), os.environ.get("CCOM_CALL_SITES", "1") != "0")
atexit.register(_core._close_all)


class Communicator(_core.Communicator):
    """The ranks that make collective calls together. ccom.init() makes the first, split() and others make parts of it.

    rank, size; local_rank, local_size: among the ranks of this host; num_hosts. A context manager, which closes it.
    """

    def __init__(self, started):
        super().__init__(started)
        place = self.info()
        self.local_rank = place["local_rank"]
        self.local_size = place["local_size"]
        self.num_hosts = place["num_hosts"]

    def __repr__(self):
        return f"<ccom.Communicator rank {self.rank} of {self.size}{', closed' if self.closed else ''}>"

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None and not self.closed:
            self.abort()  # the others need not wait for what this rank will not do
        self.close()

    def split(self, color, key=0, **settings):
        """A communicator of all ranks that give the same color (0 or more), ordered by key, then by rank; None for color None.

        Collective over this communicator. settings: those of ccom.init that differ from this communicator's.
        """
        started = self._split(-1 if color is None else color, key, settings)
        return None if started.is_none else Communicator(started)

    def create_group(self, ranks, **settings):
        """A communicator of these ranks of this one, in this order. Collective over them alone; each gives the same list."""
        return Communicator(self._create_group(list(ranks), settings))

    def shrink(self, exclude=(), *, abort=False, **settings):
        """A communicator of the ranks that are left, without those excluded, in their order; after an error or before.

        Collective over the ranks that are left. abort: do first what revoke() does. This communicator stays; close() it.
        """
        return Communicator(self._shrink(list(exclude), abort, settings))

    def grow(self, size, unique_id=None, **settings):
        """A communicator of `size` ranks: those of this one, and new ones behind them, which call ccom.join.

        Collective. One rank gives the bytes of unique_id_to_grow(), the others None.
        """
        return Communicator(self._grow(size, unique_id, settings))

    def send_recv(self, array, dest, out, source):
        """Sends array to rank dest and receives out from rank source at the same time. Returns out."""
        with group():
            self.send(array, dest)
            self.recv(out, source)
        return out

    def broadcast_object(self, value=None, root=0):
        """root's Python object, on every rank, by pickle."""
        data = bytearray(pickle.dumps(value)) if self.rank == root else bytearray()
        size = bytearray(len(data).to_bytes(8, "little"))
        self.broadcast(size, root)
        if self.rank != root:
            data = bytearray(int.from_bytes(size, "little"))
        self.broadcast(data, root)
        return value if self.rank == root else pickle.loads(data)

    def all_gather_object(self, value):
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

    def report(self, *, host=False, as_dict=False):
        """Which ranks have made the others wait, as text or, as_dict, by parts (docs/observing.md).

        Collective; with host=True of the ranks of this host alone, local, also after an error.
        """
        text = self._report(as_dict, host)
        return json.loads(text) if as_dict else text

    def explain(self, collective, count, dtype="float32", root=0):
        """How a call would run, and why so, as a dict: "allreduce" of `count` elements (docs/planner.md). Local."""
        return json.loads(self._explain(collective, count, dtype, root))


class group:
    """with ccom.group(): the calls within, of this thread, begin together when it ends, and are over then.

    Sends and receives of a group progress together; collectives of several communicators run at the same time. Results are
    returned at once, but valid after the group only. What has been called runs also if the block raises an exception: other
    ranks may wait for it.
    """

    def __enter__(self):
        _core._start_group()
        return self

    def __exit__(self, kind, error, trace):
        try:
            _core._end_group()
        except ccom.Error:
            if kind is None:  # else what the block has raised comes first
                raise


def init(url=None, *, rank=None, size=None, unique_id=None, **settings):
    """The first communicator, of all ranks of the job. Collective; blocks for at most init_timeout.

    Without arguments rank, size and the others' place come from the launcher's environment (ccom-run, torchrun, mpirun, srun
    and others, docs/launchers.md); without a launcher it is a communicator of this process alone. url: file:///path of a
    common file system, or tcp://host:port, where rank 0 listens; rank and size are the launcher's unless given. unique_id: bytes of ccom.unique_id(), instead of a url.

    settings: name, timeout and init_timeout (seconds), transport, algorithm, topology, ifname, host_id, max_memory (bytes),
    rounding, rounding_seed, determinism, wire, messages: the fields of ccomConfig_t, which precede CCOM_* variables.
    """
    _core.watch_wakeups()
    if (rank is None) != (size is None):
        raise TypeError("rank, size: needs both, or neither, which leaves them to the launcher")
    if rank is None:
        place = _core.launch()
        if place is None and (url or unique_id):
            raise TypeError("rank, size: needed with a url or unique_id, since there is no launcher that says them")
        rank, size = place[:2] if place else (0, 1)
    if unique_id is None:
        unique_id = _core.unique_id() if size == 1 else _core.unique_id_from_url(url or "env://", size, rank)
    return Communicator(_core.start(unique_id, rank, size, settings))


def init_all(size, **settings):
    """A list of `size` communicators for ranks that are threads of this process: rank i's is the i-th. For tests."""
    return [Communicator(started) for started in _core.start_all(size, settings)]


def join(unique_id, rank, size, **settings):
    """The side of a new rank of Communicator.grow, which has made unique_id: rank counts behind those that were there."""
    _core.watch_wakeups()
    return Communicator(_core.join(unique_id, rank, size, settings))


def empty(shape, dtype="float32"):
    """A new array of numpy's, zeros, in memory that ranks of the host can map: collectives on it copy least."""
    import numpy

    dtype = numpy.dtype(dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    elements = 1
    for length in shape:
        elements *= length
    return _core._allocate(elements * dtype.itemsize).view(dtype).reshape(shape)


def empty_like(array):
    """empty() of the array's shape and type."""
    return empty(array.shape, array.dtype)


def window_of_peer(window, rank):
    """Window.peer: bytes as elements of the window's type."""
    dtype = window._dtype
    if dtype in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        import ml_dtypes

        dtype = getattr(ml_dtypes, dtype)
    return window._peer(rank).view(dtype)


def explain_topology(topology, collective, count, dtype="float32", root=0):
    """How a call would run on a machine that need not be here, as a dict: "torus:4x4" (docs/planner.md). Local."""
    return json.loads(_core._explain_topology(topology, collective, count, dtype, root))


def variables():
    """Every CCOM_* variable: a dict of name to (value, default, origin, help), as in effect in this process."""
    return {name: tuple(rest) for name, *rest in _core._variables()}


unique_id = _core.unique_id
launch = _core.launch
