# SPDX-License-Identifier: Apache-2.0
"""What programs share whose default group loses and gets processes."""
import json
import os

import torch
import torch.distributed as dist

STARTED_AS = int(os.environ["RANK"])


def tell(**what):
    print(json.dumps({"rank": STARTED_AS, **what}), flush=True)


def shared_store():
    return dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)


def error_of(call, kind=dist.DistBackendError):
    try:
        call()
    except kind as error:
        return str(error)
    return ""


def require_works(ranks, group=None):
    assert dist.get_world_size(group) == ranks, f"{dist.get_world_size(group)} ranks instead of {ranks}"
    found = [None] * ranks
    dist.all_gather_object(found, dist.get_rank(group), group=group)
    assert found == list(range(ranks)), found
    works = [dist.all_reduce(torch.ones(1000), group=group, async_op=True) for _ in range(4)]
    for work in works:
        work.wait()
    tensor = torch.full((300_000,), dist.get_rank(group) + 1.0)
    dist.all_reduce(tensor, group=group)
    assert tensor.min() == tensor.max() == ranks * (ranks + 1) / 2, tensor


def require_messages():
    rank, size, got = dist.get_rank(), dist.get_world_size(), torch.empty(3)
    if size > 1:
        receive = dist.irecv(got, (rank - 1) % size)
        dist.send(torch.full((3,), float(rank)), (rank + 1) % size)
        receive.wait()
        assert got.tolist() == [(rank - 1) % size] * 3
