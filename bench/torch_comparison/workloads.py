# SPDX-License-Identifier: Apache-2.0
"""What is measured: collectives of torch.distributed, and training steps.

Each workload is a function of a group that returns something to call; what it needs is made before, once for each backend.
"""
import contextlib
import functools

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def _elements(nbytes, dtype, parts=1):
    return max(1, nbytes // dtype.itemsize // parts) * parts


def allreduce(group, ranks, nbytes, dtype):
    tensor = torch.zeros(_elements(nbytes, dtype), dtype=dtype)
    return functools.partial(dist.all_reduce, tensor, group=group)


def broadcast(group, ranks, nbytes, dtype):
    tensor = torch.zeros(_elements(nbytes, dtype), dtype=dtype)
    return functools.partial(dist.broadcast, tensor, 0, group=group)


def allgather(group, ranks, nbytes, dtype):
    whole = torch.zeros(_elements(nbytes, dtype, ranks), dtype=dtype)
    part = torch.zeros(whole.numel() // ranks, dtype=dtype)
    return functools.partial(dist.all_gather_into_tensor, whole, part, group=group)


def reduce_scatter(group, ranks, nbytes, dtype):
    whole = torch.zeros(_elements(nbytes, dtype, ranks), dtype=dtype)
    part = torch.zeros(whole.numel() // ranks, dtype=dtype)
    return functools.partial(dist.reduce_scatter_tensor, part, whole, group=group)


def alltoall(group, ranks, nbytes, dtype):
    send = torch.zeros(_elements(nbytes, dtype, ranks), dtype=dtype)
    return functools.partial(dist.all_to_all_single, torch.empty_like(send), send, group=group)


COLLECTIVES = {function.__name__: function for function in (allreduce, allgather, reduce_scatter, alltoall, broadcast)}


class Blocks(nn.Module):
    """Layers of one width that add to what they get."""

    def __init__(self, width, layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


class Tower(nn.Module):
    """Convolutions with as many parameters as ResNet-18's (11.7 million), on small pictures."""

    def __init__(self):
        super().__init__()
        widths = [3, 64, 64, 128, 128, 256, 256, 512, 512, 512, 512]
        self.layers = nn.ModuleList(
            nn.Conv2d(a, b, 3, stride=2 if a != b and a > 3 else 1, padding=1) for a, b in zip(widths, widths[1:]))
        self.head = nn.Linear(512, 1000)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x.mean((2, 3)))


class Encoder(nn.Module):
    """BERT-base: 12 layers of 768, a vocabulary of 30522; 109 million parameters."""

    def __init__(self, vocabulary=30522, width=768, layers=12):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, x):
        return nn.functional.linear(self.encoder(self.words(x)), self.words.weight)


# name: (model, batch). MLP: 1.05 million parameters.
MODELS = {
    "mlp": (lambda: Blocks(512, 4), lambda: torch.randn(32, 512)),
    "resnet18": (Tower, lambda: torch.randn(4, 3, 32, 32)),
    "bert": (Encoder, lambda: torch.randint(30522, (2, 32))),
    "tiny": (lambda: Blocks(64, 2), lambda: torch.randn(8, 64)),
}


class DdpStep:
    """Forward, backward and zeroing; with communication, or without (no_sync)."""

    def __init__(self, group, name):
        torch.manual_seed(0)
        make_model, make_batch = MODELS[name]
        self.model = DistributedDataParallel(make_model(), process_group=group, gradient_as_bucket_view=True)
        self.batch = make_batch()

    def __call__(self, communicates=True):
        self.model.zero_grad(set_to_none=False)
        with contextlib.nullcontext() if communicates else self.model.no_sync():
            self.model(self.batch).float().square().mean().backward()


class FsdpStep:
    """FSDP2: parameters are gathered for forward and backward, gradients scattered."""

    def __init__(self, group, name):
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import fully_shard

        torch.manual_seed(0)
        make_model, make_batch = MODELS[name]
        mesh = DeviceMesh.from_group(group, "cpu")
        self.model = make_model()
        for layer in getattr(self.model, "layers", []):
            fully_shard(layer, mesh=mesh)
        fully_shard(self.model, mesh=mesh)
        self.model.set_force_sum_reduction_for_comms(True)  # gloo has no averages
        self.batch = make_batch()

    def __call__(self):
        self.model.zero_grad()
        self.model(self.batch).square().mean().backward()
