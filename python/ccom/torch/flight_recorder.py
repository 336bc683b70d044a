# SPDX-License-Identifier: Apache-2.0
"""The last operations of every ccom group of this process, as torch's flight recorder writes them.

    from ccom.torch import flight_recorder
    flight_recorder.dump("/tmp/trace_")     # writes /tmp/trace_<rank>, which `torchfrtrace --prefix trace_` reads

A group that fails writes such a file by itself if TORCH_FR_DUMP_TEMP_FILE (or CCOM_TORCH_DUMP) names a prefix. To have
one from a hanging job: signal.signal(signal.SIGUSR2, lambda *_: flight_recorder.dump("/tmp/trace_")).
TORCH_FR_BUFFER_SIZE: how many operations of each group are kept, 2000 by default.

After a job that was killed, from what its ranks recorded (CCOM_RECORD):

    flight_recorder.from_recording("/tmp/calls", "/tmp/trace_")
"""
import json
import os
import pickle
import shutil
import subprocess

import torch.distributed as dist

_VERSION = "2.10"  # of the format

# torch's tools know these operations, prefixed by the names of torch's own libraries only.
_LIBRARY = "gloo"
_OPERATIONS = {"barrier": "all_reduce_barrier"}
_RECORDED_OPERATIONS = {"allreduce": "all_reduce", "allgather": "all_gather", "alltoall": "all_to_all",
                        "barrier": "all_reduce_barrier"}
_DTYPES = {"float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int8": "Char",
           "uint8": "Byte", "int16": "Short", "int32": "Int", "int64": "Long", "bool": "Bool"}


def _ccom_groups():
    from ccom.torch import backend_of

    for group, name in dist.distributed_c10d._world.pg_names.items():
        try:
            yield name, group, backend_of(group)
        except (ValueError, RuntimeError):
            continue


def _name_for_tools(entry, rank):
    operation = entry["profiling_name"].partition(":")[2]
    if operation == "send":
        operation = f"send {rank}->{entry['peer']}"
    elif operation == "recv":
        operation = f"recv {rank}<-{entry['peer']}"
    return f"{_LIBRARY}:{_OPERATIONS.get(operation, operation)}"


class _Dump:
    """What torch's tools read of a rank, group by group."""

    def __init__(self):
        self._groups, self._status, self._entries = {}, {}, []

    def add(self, number, name, description, ranks, entries):
        """number: of the group, the same on all ranks. entries: the oldest first."""
        self._groups[name] = {"name": name, "desc": description, "ranks": str(ranks)}
        collectives = [entry for entry in entries if not entry["is_p2p"]]

        def last(states):
            return max((entry["collective_seq_id"] for entry in collectives if entry["state"] in states), default=-1)

        begun = ("started", "completed", "failed")
        self._status[str(number)] = {"last_enqueued_collective": last(("scheduled", *begun)),
                                     "last_started_collective": last(begun),
                                     "last_completed_collective": last(("completed",))}
        of_group = {"pg_id": number, "process_group": (name, description)}
        self._entries += [{"frames": [], **entry, **of_group} for entry in entries]

    def contents(self):
        self._entries.sort(key=lambda entry: entry["time_created_ns"])
        return {"version": _VERSION, "comm_lib_version": "ccom", "nccl_comm_state": {}, "pg_config": self._groups,
                "pg_status": self._status, "entries": self._entries}

    def write(self, prefix, rank):
        path = f"{prefix}{rank}"
        with open(path, "wb") as file:
            pickle.dump(self.contents(), file)
        return path


def _of_this_process():
    found = _Dump()
    for number, (name, group, backend) in enumerate(_ccom_groups()):
        entries = []
        for entry in backend.flight_recorder_entries():
            if entry["profiling_name"] == "ccom:recvAnySource":
                continue
            named = {"profiling_name": _name_for_tools(entry, backend.rank()), "ccom_name": entry["profiling_name"]}
            entries.append({**entry, **named})
        found.add(number, name, group.group_desc, dist.get_process_group_ranks(group), entries)
    return found


def snapshot():
    """The contents of dump() as a dictionary. Omits receives from any source, which torch's format cannot represent."""
    return _of_this_process().contents()


def dump(prefix=None):
    """Writes snapshot() to `prefix` followed by this process's rank, and returns the file's name."""
    prefix = prefix or os.environ.get("CCOM_TORCH_DUMP") or os.environ.get("TORCH_FR_DUMP_TEMP_FILE")
    if not prefix:
        raise ValueError("flight_recorder.dump: no prefix given, and neither CCOM_TORCH_DUMP nor "
                         "TORCH_FR_DUMP_TEMP_FILE is set")
    rank = dist.get_rank() if dist.is_initialized() else int(os.environ.get("RANK", "0"))
    return _of_this_process().write(prefix, rank)


def _ccom_trace():
    own = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin", "ccom-trace")
    found = own if os.path.exists(own) else shutil.which("ccom-trace")
    if found is None:
        raise RuntimeError("flight_recorder.from_recording: ccom-trace is neither in this package nor in PATH")
    return found


def _recorded_entry(call, record, offset):
    sizes, types = [[call["count"]]], [_DTYPES.get(call["type"], call["type"])]
    ended = call["ended_ns"]
    failed = "error" in call
    operation = call["collective"].removesuffix("v")
    return {
        "record_id": record, "op_id": record + 1, "collective_seq_id": call["number"], "p2p_seq_id": 0, "is_p2p": False,
        "peer": -1,
        "profiling_name": f"{_LIBRARY}:{_RECORDED_OPERATIONS.get(operation, operation)}",
        "ccom_name": call["collective"],
        "input_sizes": sizes, "input_dtypes": types, "output_sizes": sizes, "output_dtypes": types,
        "time_created_ns": call["begun_ns"] + offset, "time_discovered_started_ns": call["begun_ns"] + offset,
        "time_discovered_completed_ns": None if ended is None or failed else ended + offset,
        "timeout_ms": 0, "state": "started" if ended is None else "failed" if failed else "completed",
        "retired": ended is not None,
        "frames": [{"name": call["at"], "filename": call["at"], "line": 0}] if call["at"] else [],
    }


def from_recording(folder, prefix):
    """Writes for each rank of the job in `folder` that ended last what dump() would have; returns the names.

    Of what torch's format has it lacks shapes (all elements are one dimension), operations that had not begun,
    timeouts, and sends and receives. Collective calls that torch does not know of, as those of a split, are in it.
    """
    command = [_ccom_trace(), folder, "--json", "--calls"]
    job = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    communicators = job["communicators"]
    widest = communicators[0]
    dumps = {}
    for number, group in enumerate(communicators):
        ranks = group.get("origins") or list(range(group["ranks"]))
        if group["parent"] not in (0, widest["number"]):
            continue  # ranks of a part of a part are not those of the job
        for rank, calls in group.get("calls_by_rank", {}).items():
            entries = [_recorded_entry(call, record, job["realtime_offset_ns"])
                       for record, call in enumerate(call for call in calls if call["number"] > 0)]
            dumps.setdefault(ranks[int(rank)], _Dump()).add(number, group["name"], group["name"], ranks, entries)
    return [dump.write(prefix, rank) for rank, dump in sorted(dumps.items())]
