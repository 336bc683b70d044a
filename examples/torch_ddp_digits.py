# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training on real data: handwritten digits with DistributedDataParallel.

    torchrun --nproc-per-node=4 examples/torch_ddp_digits.py --backend ccom

Each rank takes its share of every global batch, so any number of ranks learns the same, up to rounding.
"""
import torch
import torch.distributed as dist
import torch_common as common
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def network():
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 16, kernel_size=3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 16, kernel_size=3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 4 * 4, 64), nn.ReLU(),
        nn.Linear(64, 10))


def train_epoch(model, optimizer, pictures, digits, shares):
    """The mean loss over this rank's pictures."""
    total = 0.0
    steps = 0
    for rows in shares:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(pictures[rows]), digits[rows])
        loss.backward()
        optimizer.step()
        total += loss.item()
        steps += 1
    return total / steps


def main():
    options = common.parser(__doc__, epochs=20, batch=48, rate=0.02).parse_args()
    dist.init_process_group(options.backend)
    pictures, digits, test_pictures, test_digits = common.read_digits()

    # Every rank may start from other parameters: DDP begins by broadcasting those of rank 0.
    torch.manual_seed(options.seed + dist.get_rank())
    model = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=options.rate, momentum=0.9)

    losses = []
    for epoch in range(options.epochs):
        shares = common.shares(len(digits), options.batch, epoch, options.seed)
        mine = train_epoch(model, optimizer, pictures, digits, shares)
        losses.append(common.mean_over_ranks(mine))
        if dist.get_rank() == 0:
            print(f"epoch {epoch + 1:2}  loss {losses[-1]:.6f}", flush=True)

    right = common.accuracy(model.module, test_pictures, test_digits)
    common.require_same_bits(model.parameters())
    common.finish(options, f"loss {losses[0]:.4f} to {losses[-1]:.4f}, test accuracy {right:.4f}", losses,
                  model.module.state_dict())


if __name__ == "__main__":
    main()
