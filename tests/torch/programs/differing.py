# SPDX-License-Identifier: Apache-2.0
"""Ranks that make different calls, or come late: differing.py CASE...

Each rank prints, for each case, one line of JSON: {"case", "rank", "error", "seconds"}.
"""
import datetime
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from ccom.torch import backend_of


def shapes(rank):
    dist.all_reduce(torch.ones(10 + (rank == 1)))


def large_shapes(rank):
    dist.all_reduce(torch.ones(3_000_000 + 100_000 * (rank == 1)))


def types(rank):
    dist.all_reduce(torch.ones(10, dtype=torch.double if rank == 1 else torch.float))


def operators(rank):
    dist.all_reduce(torch.ones(10), dist.ReduceOp.MAX if rank == 1 else dist.ReduceOp.SUM)


def roots(rank):
    dist.broadcast(torch.ones(10), 1 if rank == 1 else 0)


def order(rank):
    calls = [lambda: dist.all_reduce(torch.ones(10)), lambda: dist.broadcast(torch.ones(10), 0)]
    for call in calls if rank != 1 else calls[::-1]:
        call()


def asynchronous_order(rank):
    calls = [lambda: dist.all_reduce(torch.ones(10), async_op=True),
             lambda: dist.broadcast(torch.ones(10), 0, async_op=True)]
    for work in [call() for call in (calls if rank != 1 else calls[::-1])]:
        work.wait()


def splits(rank):
    dist.all_to_all_single(torch.zeros(6), torch.ones(6 + (rank == 1)), [2, 2, 2], [2, 2, 2 + (rank == 1)])


def lists(rank):
    dist.all_gather([torch.zeros(size) for size in (1, 2, 3 + (rank == 1))], torch.ones(rank + 1))


def splits_or_none(rank):
    dist.all_to_all_single(torch.zeros(6), torch.ones(6), *([] if rank == 1 else [[2, 2, 2], [2, 2, 2]]))


def store():
    return dist.distributed_c10d._get_default_store()


def others_were_told():
    store().wait([f"told/{rank}" for rank in range(dist.get_world_size()) if rank != 1])


def late(rank):
    if rank == 1:
        others_were_told()
    dist.all_reduce(torch.ones(10))


def late_for_a_message(rank):
    if rank == 0:
        dist.recv(torch.ones(3), 1, tag=4)  # line of the receive
    elif rank == 1:
        store().wait(["told/0"])


def late_for_a_group(rank):
    if rank == 1:
        others_were_told()
    else:
        dist.new_group(timeout=datetime.timedelta(seconds=1))


def meet(store, name, rank, ranks):
    store.set(f"{name}/{rank}", "")
    store.wait([f"{name}/{each}" for each in range(ranks)])


def run(name, store, rank, ranks):
    """The error of one case, which has a group of its own."""
    timeout = datetime.timedelta(seconds=20)
    dist.init_process_group("ccom", store=dist.PrefixStore(name, store), rank=rank, world_size=ranks, timeout=timeout)
    dist.all_reduce(torch.ones(3))
    if "late" in name:
        backend_of()._set_default_timeout(datetime.timedelta(seconds=1))
    meet(store, f"{name}/begin", rank, ranks)
    begin = time.monotonic()
    error = ""
    try:
        globals()[name](rank)
        dist.barrier()  # a rank whose part was over before the others saw what is wrong is told by its next call
    except RuntimeError as told:
        error = str(told)
        dist.distributed_c10d._get_default_store().set(f"told/{rank}", "")
    print(json.dumps({"case": name, "rank": rank, "error": error, "seconds": time.monotonic() - begin}), flush=True)
    meet(store, f"{name}/end", rank, ranks)
    dist.destroy_process_group()


def main():
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    for name in sys.argv[1:]:
        run(name, store, rank, ranks)


if __name__ == "__main__":
    main()
