# SPDX-License-Identifier: Apache-2.0
"""Rank 3 evaluates until the others have been told, while the others train; each of them prints what its timeout says.

    places.py
"""
import datetime
import json
import os

import torch
import torch.distributed as dist

LONG = datetime.timedelta(minutes=1)  # by itself the store waits as long as the group


def evaluate():
    dist.distributed_c10d._get_default_store().wait(["0", "1", "2"], LONG)  # line of evaluate


def step(model):
    loss = model(torch.ones(4, 8)).sum()
    loss.backward()  # line of step
    dist.all_reduce(loss.detach())  # line of the sum


def main():
    dist.init_process_group("ccom", timeout=datetime.timedelta(seconds=3))
    rank = dist.get_rank()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    error = ""
    try:
        for number in range(6):
            if rank == 3 and number == 5:
                evaluate()
            step(model)
    except RuntimeError as told:
        error = str(told)
        dist.distributed_c10d._get_default_store().set(str(rank), "was told")
    print(json.dumps({"rank": rank, "error": error}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
