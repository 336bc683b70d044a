# SPDX-License-Identifier: Apache-2.0
"""A small training that torchrun starts again after one of its ranks has killed itself: restarted.py --victim 1 DONE"""
import argparse
import os
import signal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--victim", type=int, required=True)
    parser.add_argument("done", help="written by rank 0 at the end")
    options = parser.parse_args()
    dist.init_process_group("ccom")
    rank, life = dist.get_rank(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(200, 200))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(20):
        if life == 0 and rank == options.victim and step == 10:
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.zero_grad()
        model(torch.randn(4, 200)).square().mean().backward()
        optimizer.step()
    total = torch.ones(1)
    dist.all_reduce(total)
    if rank == 0:
        with open(options.done, "w", encoding="utf-8") as file:
            file.write(f"{int(total)} ranks in life {life}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
