# SPDX-License-Identifier: Apache-2.0
"""The last operations of every ccom group of this process, as torch's flight recorder writes them.

    from ccom.torch import flight_recorder
    flight_recorder.dump("/tmp/trace_")     # writes /tmp/trace_<rank>, which `torchfrtrace --prefix trace_` reads

A group that fails writes such a file by itself if TORCH_FR_DUMP_TEMP_FILE (or CCOM_TORCH_DUMP) names a prefix. To have one
from a hanging job: signal.signal(signal.SIGUSR2, lambda *_: flight_recorder.dump("/tmp/trace_")).
TORCH_FR_BUFFER_SIZE: how many operations of each group are kept, 2000 by default.
"""
import os
import pickle

import torch.distributed as dist

_VERSION = "2.10"  # of the format

# torch's tools know these operations, prefixed by the names of torch's own libraries only.
_LIBRARY = "gloo"
_OPERATIONS = {"barrier": "all_reduce_barrier"}


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


def snapshot():
    """The contents of dump() as a dictionary. Omits receives from any source, which torch's format cannot represent."""
    entries, groups, status = [], {}, {}
    for number, (name, group, backend) in enumerate(_ccom_groups()):
        ranks = dist.get_process_group_ranks(group)
        description = group.group_desc
        groups[name] = {"name": name, "desc": description, "ranks": str(ranks)}
        mine = [entry for entry in backend.flight_recorder_entries() if entry["profiling_name"] != "ccom:recvAnySource"]
        collectives = [entry for entry in mine if not entry["is_p2p"]]
        done = [entry["collective_seq_id"] for entry in collectives if entry["state"] == "completed"]
        begun = [entry["collective_seq_id"] for entry in collectives if entry["state"] != "scheduled"]
        status[str(number)] = {
            "last_enqueued_collective": collectives[-1]["collective_seq_id"] if collectives else -1,
            "last_started_collective": max(begun, default=-1),
            "last_completed_collective": max(done, default=-1),
        }
        for entry in mine:
            named = {"profiling_name": _name_for_tools(entry, backend.rank()), "ccom_name": entry["profiling_name"]}
            entries.append({**entry, **named, "pg_id": number, "process_group": (name, description), "frames": []})
    entries.sort(key=lambda entry: entry["time_created_ns"])
    return {
        "version": _VERSION,
        "comm_lib_version": "ccom",
        "nccl_comm_state": {},
        "pg_config": groups,
        "pg_status": status,
        "entries": entries,
    }


def dump(prefix=None):
    """Writes snapshot() to `prefix` followed by this process's rank, and returns the file's name."""
    prefix = prefix or os.environ.get("CCOM_TORCH_DUMP") or os.environ.get("TORCH_FR_DUMP_TEMP_FILE")
    if not prefix:
        raise ValueError("flight_recorder.dump: no prefix given, and neither CCOM_TORCH_DUMP nor TORCH_FR_DUMP_TEMP_FILE is set")
    rank = dist.get_rank() if dist.is_initialized() else int(os.environ.get("RANK", "0"))
    path = f"{prefix}{rank}"
    with open(path, "wb") as file:
        pickle.dump(snapshot(), file)
    return path
