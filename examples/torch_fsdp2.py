# SPDX-License-Identifier: Apache-2.0
"""Sharded parameters, gradients and optimizer states on CPUs: torch.distributed.fsdp.fully_shard.

    torchrun --nproc-per-node=4 examples/torch_fsdp2.py --backend ccom

A small transformer reads the digits row by row. Each of its blocks gathers its parameters before it computes, and adds
up its gradients afterwards with a reduce-scatter that averages.
"""
import torch
import torch.distributed as dist
import torch_common as common
from torch import nn
from torch.distributed.fsdp import fully_shard


class DigitReader(nn.Module):
    """The eight rows of a picture are eight tokens."""

    def __init__(self, width=48, heads=4, layers=2):
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.position = nn.Parameter(torch.randn(8, width) * 0.1)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(layers))
        self.head = nn.Linear(width, 10)

    def forward(self, pictures):
        tokens = self.embed(pictures.unflatten(1, (8, 8))) + self.position
        for block in self.blocks:
            tokens = block(tokens)
        return self.head(tokens.mean(dim=1))


def shard(model, backend):
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    if backend == "gloo":
        # Older versions of Gloo have no ReduceOp.AVG.
        for module in (model, *model.blocks):
            module.set_force_sum_reduction_for_comms(True)
    return model


def main():
    options = common.parser(__doc__, epochs=5, batch=48, rate=0.002).parse_args()
    dist.init_process_group(options.backend)
    pictures, digits, test_pictures, test_digits = common.read_digits()

    torch.manual_seed(options.seed)
    model = shard(DigitReader(), options.backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, eps=1e-5)

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
        if dist.get_rank() == 0:
            print(f"epoch {epoch + 1:2}  loss {losses[-1]:.6f}", flush=True)

    right = common.accuracy(model, test_pictures, test_digits)
    model.reshard()  # after an evaluation the outermost module still has unsharded parameters
    held = sum(parameter.to_local().numel() for parameter in model.parameters())
    whole = {name: parameter.full_tensor() for name, parameter in model.named_parameters()}
    common.require_same_bits(whole.values())
    common.finish(options, f"loss {losses[-1]:.4f}, test accuracy {right:.4f}, rank 0 holds {held} of "
                  f"{sum(tensor.numel() for tensor in whole.values())} parameters", losses, whole)


if __name__ == "__main__":
    main()
