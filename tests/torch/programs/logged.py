# SPDX-License-Identifier: Apache-2.0
"""Five logged steps of different size: logged.py FOLDER own|given|everyone"""
import sys
import time

import torch
import torch.distributed as dist
from ccom.torch.tensorboard import StepLogger


def work(number):
    time.sleep(0.02)
    if dist.get_rank() == 1:
        time.sleep(0.05)  # rank 0 is blocked that long
    for _ in range(number + 1):
        dist.all_reduce(torch.ones(250_000))
    if number == 4:
        dist.all_gather_into_tensor(torch.zeros(dist.get_world_size() * 1000), torch.ones(1000))


def main():
    folder, kind = sys.argv[1:]
    dist.init_process_group("ccom")
    dist.all_reduce(torch.ones(10))
    target = folder
    if kind == "given":
        from torch.utils.tensorboard import SummaryWriter

        target = SummaryWriter(folder)
    with StepLogger(target, all_ranks=kind == "everyone") as logger:
        for number in range(5):
            dist.barrier()  # making a writer takes rank 0 longer than a step
            with logger.step(number):
                work(number)
        try:
            with logger.step(5):
                raise KeyError("a step that fails is not logged")
        except KeyError:
            pass
    if kind == "given":
        target.add_scalar("mine", 1.0, 0)
        target.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
