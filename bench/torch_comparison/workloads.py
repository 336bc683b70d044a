# SPDX-License-Identifier: Apache-2.0
"""What is measured: collectives of torch.distributed, and training steps.

Each workload is a function of a group that returns something to call; what it needs is made before, once for each
backend.
"""
import functools

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
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


def bert_base():
    """BERT-base as published (12 layers of 768, a vocabulary of 30522; 110 million parameters), random weights."""
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))


def bert_batch(sequences=2, tokens=128):
    words = torch.randint(30522, (sequences, tokens))
    return {"input_ids": words, "labels": words}


def vit_base():
    """ViT-B/16 on pictures of 224 x 224 (197 tokens; 87 million parameters), random weights."""
    from transformers import ViTConfig, ViTForImageClassification

    return ViTForImageClassification(ViTConfig(num_labels=1000))


def vit_batch(pictures=2):
    return {"pixel_values": torch.randn(pictures, 3, 224, 224), "labels": torch.randint(1000, (pictures,))}


# name: (model, batch of one rank). MLP: 1.05 million parameters. bert-base and vit-b need the package transformers.
MODELS = {
    "mlp": (lambda: Blocks(512, 4), lambda: torch.randn(32, 512)),
    "resnet18": (Tower, lambda: torch.randn(4, 3, 32, 32)),
    "bert-base": (bert_base, bert_batch),
    "vit-b": (vit_base, vit_batch),
    "tiny": (lambda: Blocks(64, 2), lambda: torch.randn(8, 64)),
}


class Step:
    """A step of training: forward, backward with what the ranks exchange, AdamW. Weights and data are random."""

    def __init__(self, model, batch, precision):
        self.model, self.batch, self.precision = model, batch, precision
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def loss(self):
        if isinstance(self.batch, dict):
            return self.model(**self.batch).loss
        return self.model(self.batch).float().square().mean()

    def __call__(self):
        self.optimizer.zero_grad(set_to_none=False)
        self.loss().backward()
        self.optimizer.step()


def sum_as_bfloat16(group, bucket):
    """DDP's hook of this kind, which it refuses by its name where there are no accelerators."""
    return default_hooks.bf16_compress_hook(group, bucket)


class DdpStep(Step):
    """bfloat16: autocast, and gradients are averaged as bfloat16, by `hook`."""

    def __init__(self, group, name, precision, hook):
        torch.manual_seed(0)
        make_model, make_batch = MODELS[name]
        model = DistributedDataParallel(make_model(), process_group=group, gradient_as_bucket_view=True)
        if precision == torch.bfloat16:
            model.register_comm_hook(group, hook)
        super().__init__(model, make_batch(), precision)

    def loss(self):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.precision == torch.bfloat16):
            return super().loss()

    def alone(self):
        """The same without communication (no_sync)."""
        with self.model.no_sync():
            self()


class FsdpStep(Step):
    """FSDP2: parameters are gathered for forward and backward, gradients scattered. bfloat16: parameters are gathered
    and computed with as bfloat16, gradients are scattered as float32. A group of one rank: without communication."""

    def __init__(self, group, name, precision):
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        torch.manual_seed(0)
        make_model, make_batch = MODELS[name]
        mesh = DeviceMesh.from_group(group, "cpu")
        model = make_model()
        policy = MixedPrecisionPolicy(param_dtype=precision, reduce_dtype=torch.float32)
        layers = [layer for part in model.modules() if isinstance(part, nn.ModuleList) for layer in part]
        for layer in layers:
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        fully_shard(model, mesh=mesh, mp_policy=policy)
        model.set_force_sum_reduction_for_comms(True)  # gloo has no averages
        super().__init__(model, make_batch(), precision)
