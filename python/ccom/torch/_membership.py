# SPDX-License-Identifier: Apache-2.0
"""A default group that gets smaller or larger while its processes go on.

ccom makes the new backend first, from that of the old group. Then torch destroys its groups and makes the default one
anew, with that backend and under a prefix of the store that is new: what torch keeps beside it (names, ranks, the
helper group of TORCH_DISTRIBUTED_DEBUG=DETAIL) is made as at any start.
"""
import json
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ccom import torch as ccom_torch

# New processes take a ticket each, and are told by its key what they join.
_TICKETS, _TAKEN, _TICKET = "ccom/join/tickets", "ccom/join/taken", "ccom/join/ticket/"


def _plain(store):
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    return store


def _store_or_default(store):
    return _plain(store if store is not None else c10d._world.pg_map[dist.group.WORLD][1])


def _require_default():
    if not dist.is_initialized():
        raise ValueError("ccom.torch: there is no default group. To do: init_process_group, or join_group in a new "
                         "process")


def _config_of_default():
    """As init_process_group wants it: "ccom", as it was given, or "cpu:ccom"."""
    given = str(c10d._world.pg_map[dist.group.WORLD][0])
    return str(c10d._world.pg_backend_config[dist.group.WORLD]) if given == "undefined" else given


def _replace_default(backend, config, store, timeout):
    """Makes `backend` that of torch's default group, in place of one that there may be."""
    more = {}
    if dist.is_initialized():
        device = getattr(dist.group.WORLD, "bound_device_id", None)
        more = {"device_id": device} if device is not None else {}
        dist.destroy_process_group()
    ccom_torch._prepare(backend)
    try:
        dist.init_process_group(config, store=dist.PrefixStore(backend.generation + "/", store), rank=backend.rank(),
                                world_size=backend.size(), timeout=timeout, **more)
    finally:
        ccom_torch._prepare(None)
    return dist.group.WORLD


def shrink(ranks_to_exclude, group, shrink_flags, pg_options):
    _require_default()
    group = group if group is not None else dist.group.WORLD
    backend = ccom_torch.backend_of(group)
    excluded = backend.lost_ranks() if ranks_to_exclude is None else ranks_to_exclude
    if group is not dist.group.WORLD:
        return _shrink_part(excluded, group, shrink_flags, pg_options)
    if hasattr(c10d, "_validate_shrink_inputs"):
        c10d._validate_shrink_inputs(excluded, shrink_flags)
    store, config, timeout = _store_or_default(None), _config_of_default(), backend.options._timeout
    return _replace_default(backend.shrink(sorted(excluded), shrink_flags, pg_options), config, store, timeout)


def _shrink_part(excluded, group, shrink_flags, pg_options):
    if hasattr(group._get_backend(torch.device("cpu")), "wrapped_pg"):
        raise ValueError("ccom.torch.shrink_group: with TORCH_DISTRIBUTED_DEBUG=DETAIL torch shrinks no group of some "
                         "ranks. "
                         "To do: shrink the default group, and make the others again with new_group")
    ranks = dist.get_process_group_ranks(group)
    smaller = dist.shrink_group(excluded, group=group, shrink_flags=shrink_flags, pg_options=pg_options)
    left = [global_rank for rank, global_rank in enumerate(ranks) if rank not in excluded]
    c10d._world.pg_group_ranks[smaller] = {global_rank: rank for rank, global_rank in enumerate(left)}
    return smaller


def _told_by_first(numbers):
    """The numbers of rank 0, on all ranks."""
    told = torch.tensor(numbers, dtype=torch.int64)
    dist.broadcast(told, 0)
    return told.tolist()


def _waiting(store):
    return store.add(_TICKETS, 0) - store.add(_TAKEN, 0)


def joining(store):
    _require_default()
    return _told_by_first([_waiting(_store_or_default(store)) if dist.get_rank() == 0 else 0])[0]


def grow(count, store):
    _require_default()
    backend, store = ccom_torch.backend_of(), _store_or_default(store)
    config, timeout, old = _config_of_default(), backend.options._timeout, dist.get_world_size()
    last = waiting = 0
    if dist.get_rank() == 0:
        waiting = _waiting(store)
        wanted = waiting if count is None else count
        if 0 < wanted <= waiting:
            last = store.add(_TAKEN, wanted)
    last, waiting, wanted = _told_by_first([last, waiting, count if count is not None else waiting])
    if last == 0:
        raise ValueError(f"ccom.torch.grow_group: {wanted} new processes are to come, {waiting} wait in join_group")
    key, size = f"ccom/grown/{last}", old + wanted
    if dist.get_rank() == 0:
        for rank in range(old, size):
            told = {"key": key, "rank": rank, "size": size, "seconds": timeout.total_seconds(), "config": config,
                    "name": backend.group_label, "stands_for_gloo": backend.stands_for_gloo}
            store.set(_TICKET + str(last - (size - 1 - rank)), json.dumps(told))
    return _replace_default(backend.grow(store, key, size), config, store, timeout)


def _master_store():
    if "MASTER_ADDR" not in os.environ or "MASTER_PORT" not in os.environ:
        raise ValueError("ccom.torch.join_group: needs a store. To do: give one, or set MASTER_ADDR and MASTER_PORT")
    return dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)


def join(store, timeout):
    if dist.is_initialized():
        raise ValueError("ccom.torch.join_group: this process has a default group already")
    store = _plain(store) if store is not None else _master_store()
    timeout = timeout if timeout is not None else timedelta(minutes=30)
    backend = ccom_torch._load()
    key, end = _TICKET + str(store.add(_TICKETS, 1)), time.monotonic() + timeout.total_seconds()
    while not store.check([key]):  # TCPStore.wait would not look at Ctrl-C
        if time.monotonic() > end:
            raise TimeoutError("ccom.torch.join_group: nobody has called grow_group within "
                               f"{timeout.total_seconds():.0f} s")
        time.sleep(0.01)
    told = json.loads(store.get(key))
    store.delete_key(key)
    backend.watch_wakeups()
    of_group = timedelta(seconds=told["seconds"])
    joined = backend.ProcessGroupCcom.join(store, told["key"], told["rank"], told["size"], of_group, told["name"],
                                           told["stands_for_gloo"])
    return _replace_default(joined, told["config"], store, of_group)
