# SPDX-License-Identifier: Apache-2.0
"""Accelerate over ccom: the process group is made before the Accelerator, which on CPUs accepts gloo and mpi alone.

    torchrun --nproc-per-node=2 examples/recipes/accelerate_digits.py
    accelerate launch --cpu --num_processes=2 examples/recipes/accelerate_digits.py
    CCOM_TORCH_REPLACE_GLOO=1 torchrun --nproc-per-node=2 examples/recipes/accelerate_digits.py --unchanged
"""
import sys

import digits
import torch
import torch.distributed as dist
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader


def main():
    if "--unchanged" not in sys.argv:
        dist.init_process_group("ccom")  # the one line more
    accelerator = Accelerator(cpu=True)

    set_seed(1)
    model = digits.network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    batches = DataLoader(digits.datasets()[0], batch_size=24, shuffle=True)
    model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
    for epoch in range(6):
        for pictures, wanted in batches:
            optimizer.zero_grad()
            loss = cross_entropy(model(pictures), wanted)
            accelerator.backward(loss)
            optimizer.step()
        digits.die_if_told(accelerator.process_index, epoch)
    mean = accelerator.reduce(loss.detach(), reduction="mean").item()
    digits.finish("Accelerate", digits.accuracy(accelerator.unwrap_model(model)), loss=mean)
    accelerator.end_training()  # destroys the process group


if __name__ == "__main__":
    main()
