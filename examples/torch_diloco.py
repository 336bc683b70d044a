# SPDX-License-Identifier: Apache-2.0
"""Ranks that meet once in H steps, over a slow network in 8 bits: handwritten digits with DiLoCo, with DDP beside it.

    CCOM_WIRE=fp8 torchrun --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=HOST:29400 examples/torch_diloco.py --every 20

On each of two hosts; on one machine twice, with CCOM_HOSTID=a and CCOM_HOSTID=b. Each rank trains alone for --every
steps (AdamW). Then the mean over all ranks of how far they went from where all had begun is the gradient of an outer
step (SGD with Nesterov's momentum), which gives the parameters that all go on with. Inner optimizers keep their state.

A. Douillard et al.: DiLoCo: Distributed Low-Communication Training of Language Models, 2023, arXiv:2311.08105.
"""
import torch
import torch.distributed as dist
import torch_common as common
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch_ddp_digits import network, train_epoch


class OuterStep:
    """The parameters that all ranks have in common, in one vector, and the optimizer that moves them."""

    def __init__(self, model, options):
        self.model = model
        self.common = torch.nn.Parameter(parameters_to_vector(model.parameters()).detach().clone())
        dist.broadcast(self.common.detach(), 0)
        self.optimizer = torch.optim.SGD([self.common], lr=options.outer_rate, momentum=options.outer_momentum,
                                         nesterov=True)
        self.hand_out()

    def hand_out(self):
        vector_to_parameters(self.common.detach().clone(), self.model.parameters())

    def __call__(self):
        moved = self.common.detach() - parameters_to_vector(self.model.parameters()).detach()
        dist.all_reduce(moved)  # above 16 KiB it crosses hosts as CCOM_WIRE says
        self.common.grad = moved / dist.get_world_size()
        self.optimizer.step()
        self.hand_out()


class InnerOptimizer(torch.optim.AdamW):
    """AdamW that takes an outer step after every `every` steps of its own."""

    def __init__(self, parameters, rate, outer_step, every):
        super().__init__(parameters, lr=rate)
        self.outer_step, self.every, self.since = outer_step, every, 0

    def step(self, closure=None):
        loss = super().step(closure)
        self.since += 1
        if self.since == self.every:
            self.meet()
        return loss

    def meet(self):
        if self.since:
            self.outer_step()
            self.since = 0


def train(options, model, optimizer):
    """Mean loss of each epoch, test accuracy, and the bytes that all ranks together have sent for each step."""
    pictures, digits, test_pictures, test_digits = common.read_digits()
    losses, sent, steps = [], 0, 0
    for epoch in range(options.epochs):
        shares = list(common.shares(len(digits), options.batch, epoch, options.seed))
        before = common.bytes_sent(options)
        mine = train_epoch(model, optimizer, pictures, digits, shares)
        if epoch + 1 == options.epochs and isinstance(optimizer, InnerOptimizer):
            optimizer.meet()
        sent += common.bytes_sent(options) - before
        steps += len(shares)
        losses.append(common.mean_over_ranks(mine))
    common.require_same_bits(model.parameters())
    return losses, common.accuracy(model, test_pictures, test_digits), sent / steps


def main():
    parser = common.parser(__doc__, epochs=20, batch=48, every=20, rate=0.002, outer_rate=0.7, outer_momentum=0.8)
    options = parser.parse_args()
    dist.init_process_group(options.backend)

    torch.manual_seed(options.seed + dist.get_rank())
    alone = network()
    inner = InnerOptimizer(alone.parameters(), options.rate, OuterStep(alone, options), options.every)
    losses, right, sent = train(options, alone, inner)

    torch.manual_seed(options.seed + dist.get_rank())
    model = DistributedDataParallel(network())
    _, ddp_right, ddp_sent = train(options, model, torch.optim.AdamW(model.parameters(), lr=options.rate))

    common.finish(options, f"loss {losses[0]:.4f} to {losses[-1]:.4f}, test accuracy {right:.4f} (DDP "
                           f"{ddp_right:.4f}), "
                  f"{sent:.1f} bytes between hosts a step (DDP {ddp_sent:.1f})", losses, alone.state_dict())


if __name__ == "__main__":
    main()
