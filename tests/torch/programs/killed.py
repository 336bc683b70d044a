# SPDX-License-Identifier: Apache-2.0
"""One rank kills itself between two calls; the others say what they were told, how soon, and go on without it.

    killed.py --victim 2 --call all_reduce --count 1000

Each survivor prints one line of JSON: {"rank", "seconds", "error", "again"}.
"""
import argparse
import datetime
import json
import os
import signal
import time

import torch
import torch.distributed as dist
from harness.processes import is_asleep, until


def peers(rank, ranks):
    return (rank + 1) % ranks, (rank - 1) % ranks


def exchange(count, rank, ranks):
    """With both neighbours."""
    right, left = peers(rank, ranks)
    works = [dist.isend(torch.ones(count), right), dist.irecv(torch.ones(count), left),
             dist.isend(torch.ones(count), left), dist.irecv(torch.ones(count), right)]
    for work in works:
        work.wait()


def late_wait(count):
    """Several under way at once, and their waits."""
    for work in [dist.all_reduce(torch.ones(count), async_op=True) for _ in range(4)]:
        work.wait()


def gather(count, ranks):
    dist.all_gather([torch.ones(count) for _ in range(ranks)], torch.ones(count))


CALLS = {
    "all_reduce": lambda count, rank, ranks: dist.all_reduce(torch.ones(count)),
    "all_gather": lambda count, rank, ranks: gather(count, ranks),
    "barrier": lambda count, rank, ranks: dist.barrier(),
    "async": lambda count, rank, ranks: late_wait(count),
    "future": lambda count, rank, ranks: dist.all_reduce(torch.ones(count), async_op=True).get_future().wait(),
    "message": exchange,
}


def start(store, rank, ranks):
    dist.init_process_group("ccom", store=store, rank=rank, world_size=ranks, timeout=datetime.timedelta(seconds=60))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--victim", type=int, required=True)
    parser.add_argument("--call", choices=CALLS, required=True)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    start(dist.PrefixStore("first", store), rank, ranks)
    call = CALLS[options.call]
    left = [each for each in range(ranks) if each != options.victim]
    store.set(f"pid of {rank}", str(os.getpid()))
    for _ in range(10):
        call(options.count, rank, ranks)
    if rank == options.victim:
        for other in left:  # inside the next call
            until(lambda: is_asleep(int(store.get(f"pid of {other}"))))
        store.set("killed at", str(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        for _ in range(1000):
            call(options.count, rank, ranks)
        error = ""
    except RuntimeError as told:
        error = str(told)
    seconds = time.time() - float(store.get("killed at"))

    dist.destroy_process_group()
    start(dist.PrefixStore("second", store), left.index(rank), len(left))
    tensor = torch.ones(100)
    dist.all_reduce(tensor)
    again = tensor.tolist() == [float(len(left))] * 100
    dist.destroy_process_group()
    print(json.dumps({"rank": rank, "seconds": seconds, "error": error, "again": again}))


if __name__ == "__main__":
    main()
