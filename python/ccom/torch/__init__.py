# SPDX-License-Identifier: Apache-2.0
"""PyTorch's backend "ccom": `torch.distributed.init_process_group("ccom")`.

Installing the package is enough: torch calls `_autoload` when it is imported and knows the name from then on. Importing
this module is light; the library is loaded, and threads and sockets are made, when the first group is.

    CCOM_TORCH_REPLACE_GLOO=1     also stand in wherever a program says "gloo": see replace_gloo()
    CCOM_TORCH_MAPPED_TENSORS=1   large CPU tensors in memory that ranks can map: see enable_mapped_tensors()
"""
import atexit
import importlib
import importlib.util
import multiprocessing.util
import os
import re
import sys

_MINIMUM = (2, 4)
_backend_module = None


def _extension_for(torch_version, folders):
    """The folder with the extension for this torch: torch's C++ interface changes with every minor version."""
    here = tuple(int(part) for part in torch_version.split(".")[:2])
    if here < _MINIMUM:
        raise ImportError(f"ccom.torch needs torch {_MINIMUM[0]}.{_MINIMUM[1]} or later, found {torch_version}")
    minors = sorted(tuple(int(part) for part in name.split("_")[1:]) for name in folders
                    if re.fullmatch(r"torch_\d+_\d+", name))
    if here not in minors:
        built_for = ", ".join(f"{major}.{minor}" for major, minor in minors) or "none"
        raise ImportError(
            f"ccom.torch was built for torch {built_for}, found {torch_version}: torch's C++ interface changes with "
            "every minor version. Install one of these, a later ccom, or build ccom for this torch from its sources: "
            "pip install --no-build-isolation --force-reinstall --no-deps ./python"
        )
    return f"torch_{here[0]}_{here[1]}"


def _load():
    """The extension module; the first call registers a shutdown of open groups at interpreter exit."""
    global _backend_module
    if _backend_module is None:
        import torch

        from ccom import load_library

        folder = _extension_for(torch.__version__, os.listdir(os.path.dirname(__file__)))
        load_library()
        _backend = importlib.import_module(f"ccom.torch.{folder}._backend")
        import ccom
        from ccom import _places

        _places.tell(_backend, (torch, ccom), _backend.variable("CCOM_CALL_SITES") != "0")
        atexit.register(_backend.close_all_groups)
        # Processes that multiprocessing has forked run no atexit functions.
        multiprocessing.util.Finalize(None, _backend.close_all_groups, exitpriority=0)
        if os.environ.get("CCOM_TORCH_DUMP") or os.environ.get("TORCH_FR_DUMP_TEMP_FILE"):
            from ccom.torch import flight_recorder

            _backend.set_failure_hook(lambda: print("ccom.torch: wrote", flight_recorder.dump(), file=sys.stderr))
        _backend_module = _backend
    return _backend_module


def _beside_default(store):
    """A store of a new group, apart from the keys of groups that were made before the default group has shrunk."""
    import torch.distributed as dist

    try:
        generation = backend_of().generation if dist.is_initialized() else ""
    except (ValueError, RuntimeError):  # not ccom's
        generation = ""
    return dist.PrefixStore(generation, store) if generation else store


def _create(options, backend_options=None):
    """torch's creator function: options is a DistributedBackendOptions."""
    del backend_options
    backend = _load()
    backend.watch_wakeups()
    prepared = _take_prepared(not options.global_ranks_in_group)
    if prepared is not None:
        return prepared
    return backend.ProcessGroupCcom(
        _beside_default(options.store),
        options.group_rank,
        options.group_size,
        timeout=options.timeout,
        name=options.group_id,
        global_ranks=list(options.global_ranks_in_group),
        is_default=not options.global_ranks_in_group,
        waits_for_reconfigure=getattr(options, "enable_reconfigure", False),
    )


_prepared = None


def _take_prepared(is_default):
    """The backend of a smaller or larger default group that torch is about to make anew; None: make another one."""
    global _prepared
    if not is_default:
        return None
    prepared, _prepared = _prepared, None
    return prepared


def _prepare(backend):
    global _prepared
    _prepared = backend


def _register():
    # Not above: importing torch calls _autoload, which has to be there when this module comes first.
    if importlib.util.find_spec("torch") is None:
        raise ModuleNotFoundError("ccom.torch needs PyTorch, which is not installed here: pip install torch, and then "
                                  "ccom again if it was built without (docs/installing.md)", name="torch")
    import torch.distributed as dist

    if dist.is_available() and not hasattr(dist.Backend, "CCOM"):
        dist.Backend.register_backend("ccom", _create, extended_api=True, devices=["cpu"])


def _wanted(variable):
    return os.environ.get(variable, "0") not in ("", "0")


def _autoload():
    """torch's entry point: called at the end of `import torch`. An error here would break the import of torch."""
    _register()
    if _wanted("CCOM_TORCH_REPLACE_GLOO"):
        replace_gloo()
    if _wanted("CCOM_TORCH_MAPPED_TENSORS"):
        try:
            enable_mapped_tensors()
        except ImportError as error:
            print(f"ccom.torch: no mapped tensors: {error}", file=sys.stderr)


def backend_of(group=None):
    """The ccom backend object of a process group (None: the default group). ValueError if it has none."""
    import torch

    group = group if group is not None else torch.distributed.group.WORLD
    backend = group._get_backend(torch.device("cpu"))
    while hasattr(backend, "wrapped_pg"):  # TORCH_DISTRIBUTED_DEBUG=DETAIL
        backend = backend.wrapped_pg
    if type(backend).__name__ != "ProcessGroupCcom":
        raise ValueError(f"the process group's backend for CPU tensors is {type(backend).__name__}, not ccom")
    return backend


def stats(group=None):
    """Counters since the group was created: a list of {op, count, bytes, seconds, waited_seconds}.

    seconds: in the operations themselves, other ranks' lateness included. waited_seconds: callers were blocked, in
    synchronous calls and in wait(). bytes: of all calls, each counted as nccl-tests does (the larger buffer).
    """
    return backend_of(group).stats()


def bytes_sent(group=None):
    """Payload bytes that this rank has sent in messages since the group was created.

    Counted as they cross: in 8 bits with CCOM_WIRE, and what is passed on for others too. What goes through the memory
    of a host is no message: a group on one host may send none. Not collective: waits for this rank's operations before
    it.
    """
    return backend_of(group).bytes_sent()


def report(group=None, as_json=False, of_host=False):
    """Which ranks made the others wait since the group was created, for how much of their time, and in which line.

    Returns text, one sentence a line, or with as_json what docs/observing.md lists, as a dict. Collective over the
    group, after the operations issued before; blocks until all ranks have come, for the group's timeout at most.
    of_host: of what is known of the ranks of this host, without asking the others; then it waits for nothing, and works
    after an error too.
    """
    text = backend_of(group).report(as_json, of_host)
    if not as_json:
        return text
    import json

    return json.loads(text)


def enable_mapped_tensors(min_bytes=1 << 20, keep_bytes=1 << 30):
    """Allocates CPU tensors of at least min_bytes, from now on, in memory that ranks on the same host can map.

    Collectives on such tensors read and write one another's memory directly instead of copying through a staging area.
    Call it before the model is built; every rank may do as it likes. Freed memory is kept for tensors to come,
    keep_bytes at most. What forked children (DataLoader's workers) write stays with them; pages that they have not
    written to show what the parent writes later, and zeros once it has freed the tensor.
    """
    _load().enable_mapped_tensors(min_bytes, keep_bytes)


def is_mapped(tensor):
    """Whether all of a dense tensor is in memory that ranks can map."""
    return _load().is_mapped(tensor)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """torch.distributed.monitored_barrier for ccom groups (torch accepts only gloo's up to 2.13).

    Names the ranks that did not arrive within `timeout` (a timedelta, of zero too; None: the group's) and leaves the
    group usable. The call of a rank that comes later fails too and names them; the next call is a barrier of all.
    """
    backend = backend_of(group)
    return backend.monitored_barrier(timeout if timeout is not None else backend.options._timeout, wait_all_ranks)


def lost_ranks(group=None):
    """Ranks of the group that have died, ascending, as shrink_group wants them.

    Collective over the ranks that are left, all of which get the same list, after an error of the group or before.
    Blocks until all have come, for the group's timeout at most.
    """
    return backend_of(group).lost_ranks()


def shrink_group(ranks_to_exclude=None, group=None, shrink_flags=0, pg_options=None):
    """A group without the given ranks of `group`, or without those that have died if none are given; returns it.

    Collective over the ranks that are left, in any state of the group; blocks for the group's timeout at most. Default
    group: it is replaced, with ranks counted anew; all other groups are destroyed, and what holds one (DDP, FSDP,
    device meshes, optimizers of torch.distributed.optim) has to be made again. Another group: torch's shrink_group,
    from torch 2.13 on, with the global ranks that it gets wrong set right; `group` is destroyed. DistBackendError, and
    the old group stays, if others have died too, lists differ, or the store has gone. shrink_flags, pg_options: as
    torch's.
    """
    from ccom.torch import _membership

    return _membership.shrink(ranks_to_exclude, group, shrink_flags, pg_options)


def witness(tensors, group=None):
    """Says that these dense CPU tensors, parameters for example, must be equal on all ranks of the group.

    If they are not, the next collective of the group raises DistBackendError on all ranks, which names the rank whose
    values differ from those of most others (CCOM-E069). Not collective: it waits for this rank's operations before it
    alone, but all ranks call it between the same operations, with tensors of equal sizes. Of a tensor above 2 KiB it
    reads 2 KiB in 32 places, other ones each time; copies what is not contiguous. ValueError if the group is not
    ccom's.

        ccom.torch.witness([p.detach() for p in model.parameters()])       # every hundred steps, say
    """
    backend_of(group).witness(list(tensors))


def joining(store=None):
    """How many new processes wait in join_group. Collective over the default group; all ranks get the same number."""
    from ccom.torch import _membership

    return _membership.joining(store)


def grow_group(count=None, store=None):
    """A larger default group: its ranks, which keep their numbers, and `count` processes that wait in join_group.

    count=None: all that wait. store: as given to join_group, if that is not the one that the default group was made
    with. Collective over the default group, which must work; blocks until all have come, for the group's timeout at
    most. Returns the new default group. Other groups are destroyed, and what holds one has to be made again, as by
    shrink_group. DistBackendError if not all new processes have come, and ValueError if fewer wait than `count`: the
    group stays as it was.
    """
    from ccom.torch import _membership

    return _membership.grow(count, store)


def join_group(store=None, timeout=None):
    """In a new process, instead of init_process_group: joins the default group of others at their next grow_group.

    store: one that the others can reach too, as a TCPStore client of the server that they use; None: that of
    MASTER_ADDR and MASTER_PORT. Blocks until they call grow_group, for `timeout` (a timedelta) at most, 30 minutes if
    None; then TimeoutError. DistBackendError if the others' grow_group fails. torch.distributed is initialized then,
    with the backend and the timeout of the others.
    """
    from ccom.torch import _membership

    return _membership.join(store, timeout)


def replace_gloo():
    """From now on a process group that requests "gloo" uses ccom. For programs with gloo hard-coded."""
    from ccom.torch import _gloo

    _gloo.replace()


def __getattr__(name):
    """What needs torch: imported when it is asked for."""
    if name in ("ErrorFeedback", "bfloat16_hook", "narrow_hook"):
        from ccom.torch import _narrow

        return getattr(_narrow, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_register()
