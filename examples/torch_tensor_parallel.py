# SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism: the matrices of a transformer's blocks divided among ranks, with DTensor and parallelize_module.

    torchrun --nproc-per-node=4 examples/torch_tensor_parallel.py --backend ccom

Ranks form a mesh, data parallel by tensor parallel (2 x 2 of 4). First matrices are cut by columns and second ones by
rows, so that a block needs one sum per half. Beside it every rank trains the same model whole; both must agree.
"""
import sys

import torch
import torch.distributed as dist
import torch_common as common
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

PLAN = {
    "query": ColwiseParallel(), "key": ColwiseParallel(), "value": ColwiseParallel(), "project": RowwiseParallel(),
    "widen": ColwiseParallel(), "narrow": RowwiseParallel(),
}


class Block(nn.Module):
    """Attention and a feed-forward network. How many heads a rank has follows from what it computes."""

    def __init__(self, width, head_width=16):
        super().__init__()
        self.head_width = head_width
        self.attention_norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.project = (nn.Linear(width, width) for _ in range(4))
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, tokens):
        normed = self.attention_norm(tokens)
        heads = [part(normed).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
                 for part in (self.query, self.key, self.value)]
        attended = nn.functional.scaled_dot_product_attention(*heads)
        tokens = tokens + self.project(attended.transpose(1, 2).flatten(2))
        return tokens + self.narrow(nn.functional.gelu(self.widen(self.mlp_norm(tokens))))


def network(seed, layers, width):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, width), *(Block(width) for _ in range(layers)), nn.Linear(width, 8))


def average_gradients(model, group):
    """Data parallelism in its simplest form."""
    if group.size() > 1:
        for parameter in model.parameters():
            gradient = parameter.grad.to_local() if isinstance(parameter.grad, DTensor) else parameter.grad
            dist.all_reduce(gradient, group=group)
            gradient /= group.size()


def train(model, options, data_group):
    """Predicts each row of a digit from the rows above. Returns the loss of every step."""
    pictures = common.read_digits()[0].unflatten(1, (8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.rate)
    share = options.batch // data_group.size()
    losses = []
    for step in range(options.steps):
        begin = step * options.batch + data_group.rank() * share
        rows = pictures[begin:begin + share]
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(rows[:, :-1]), rows[:, 1:])
        loss.backward()
        average_gradients(model, data_group)
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total, group=data_group)
        losses.append(total.item() / data_group.size())
    return losses


def whole(model):
    return {name: parameter.full_tensor() if isinstance(parameter, DTensor) else parameter.detach()
            for name, parameter in model.named_parameters()}


def main():
    options = common.parser(__doc__, steps=20, batch=48, rate=0.05, layers=2, width=64, tensor_parallel=2).parse_args()
    dist.init_process_group(options.backend)
    columns = min(options.tensor_parallel, dist.get_world_size())
    mesh = init_device_mesh("cpu", (dist.get_world_size() // columns, columns), mesh_dim_names=("data", "tensor"))

    model = network(options.seed, options.layers, options.width)
    for block in model[1:-1]:
        parallelize_module(block, mesh["tensor"], PLAN)
    losses = train(model, options, mesh.get_group("data"))

    reference = network(options.seed, options.layers, options.width)
    expected = train(reference, options, mesh.get_group("data"))
    parameters = whole(model)
    difference = max((parameters[name] - value).abs().max().item() for name, value in whole(reference).items())
    if difference > 1e-4:
        sys.exit(f"rank {dist.get_rank()}: parameters differ by {difference} from those of the undivided model")

    common.require_same_bits(parameters.values())
    common.finish(options, f"mesh {tuple(mesh.shape)}, loss {losses[0]:.4f} to {losses[-1]:.4f} (undivided "
                  f"{expected[-1]:.4f}), parameters within {difference:.1e}", losses, parameters)


if __name__ == "__main__":
    main()
