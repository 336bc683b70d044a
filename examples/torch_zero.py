# SPDX-License-Identifier: Apache-2.0
"""Optimizer states divided among ranks: ZeroRedundancyOptimizer under DistributedDataParallel.

    torchrun --nproc-per-node=4 examples/torch_zero.py --backend ccom

Each rank updates its share of the parameters and broadcasts it. A second model with an ordinary Adam on every rank sees
the same gradients; both must end with the same bits.
"""
import sys

import torch
import torch.distributed as dist
import torch_common as common
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def network(seed):
    torch.manual_seed(seed)
    return DistributedDataParallel(nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)))


def state_size(optimizer):
    """Elements of the states that this rank holds."""
    return sum(value.numel() for state in optimizer.state.values() for value in state.values())


def train(model, optimizer, options, pictures, digits):
    losses = []
    for epoch in range(options.epochs):
        total = []
        for rows in common.shares(len(digits), options.batch, epoch, options.seed):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(pictures[rows]), digits[rows])
            loss.backward()
            optimizer.step()
            total.append(loss.item())
        losses.append(common.mean_over_ranks(sum(total) / len(total)))
    return losses


def main():
    options = common.parser(__doc__, epochs=8, batch=48, rate=0.001).parse_args()
    dist.init_process_group(options.backend)
    pictures, digits, test_pictures, test_digits = common.read_digits()

    model = network(options.seed)
    divided = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=options.rate,
                                      parameters_as_bucket_view=True)
    losses = train(model, divided, options, pictures, digits)

    reference = network(options.seed)
    ordinary = torch.optim.Adam(reference.parameters(), lr=options.rate)
    train(reference, ordinary, options, pictures, digits)

    right = common.accuracy(model.module, test_pictures, test_digits)
    common.require_same_bits(model.parameters())
    if not all(torch.equal(ours, theirs) for ours, theirs in zip(model.parameters(), reference.parameters())):
        sys.exit(f"rank {dist.get_rank()}: the divided optimizer gave other parameters than an ordinary one")
    held = state_size(divided.optim)

    divided.consolidate_state_dict(to=0)  # what a checkpoint of the whole optimizer needs
    if dist.get_rank() == 0 and len(divided.state_dict()["state"]) != len(list(model.parameters())):
        sys.exit("the collected state of the optimizer is not complete")
    common.finish(options, f"loss {losses[-1]:.4f}, test accuracy {right:.4f}, rank 0 holds {held} of "
                  f"{state_size(ordinary)} elements of Adam's state", losses, model.module.state_dict())


if __name__ == "__main__":
    main()
