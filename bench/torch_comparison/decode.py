# SPDX-License-Identifier: Apache-2.0
"""One step of decoding with tensor parallelism: what each rank of an inference server on CPUs does for the next token.

Llama's layers (Megatron's division, arXiv:1909.08053): each rank has heads/ranks heads and width/ranks columns of the
MLP, and sums `batch x hidden` elements over the ranks after attention and after the MLP, so two small allreduces a
layer, in place, with matrix-vector products on all cores between them. Weights and the cache of `context` tokens are
random; sampling is left out.
"""
import ctypes
import dataclasses
import functools
import os

import torch
import torch.distributed as dist
from torch.nn import functional


@dataclasses.dataclass(frozen=True)
class Model:
    layers: int
    hidden: int
    width: int  # of the MLP
    heads: int
    key_heads: int
    context: int = 512


MODELS = {
    "llama-1b": Model(layers=16, hidden=2048, width=8192, heads=32, key_heads=8),
    "llama-8b/4": Model(layers=8, hidden=4096, width=14336, heads=32, key_heads=8),  # a quarter of the layers of 8B
    "tiny": Model(layers=2, hidden=64, width=128, heads=8, key_heads=8, context=16),
}


class Layer:
    def __init__(self, model, ranks, batch, dtype):
        self.heads, self.key_heads = model.heads // ranks, model.key_heads // ranks
        self.head = model.hidden // model.heads

        def weight(rows, columns):
            return torch.randn(rows, columns, dtype=dtype) / columns ** 0.5

        self.query_key_value = weight((self.heads + 2 * self.key_heads) * self.head, model.hidden)
        self.output = weight(model.hidden, self.heads * self.head)
        self.gate_up = weight(2 * model.width // ranks, model.hidden)
        self.down = weight(model.hidden, model.width // ranks)
        self.keys, self.values = torch.randn(2, batch, self.key_heads, model.context, self.head, dtype=dtype)

    def attention(self, x):
        """The newest token takes the place of the oldest in the cache."""
        parts = functional.linear(x, self.query_key_value).view(x.shape[0], -1, 1, self.head)
        query, key, value = parts.split([self.heads, self.key_heads, self.key_heads], dim=1)
        self.keys[:, :, :1], self.values[:, :, :1] = key, value
        attended = functional.scaled_dot_product_attention(query, self.keys, self.values, enable_gqa=True)
        return functional.linear(attended.reshape(x.shape[0], -1), self.output)

    def mlp(self, x):
        gate, up = functional.linear(x, self.gate_up).chunk(2, dim=1)
        return functional.linear(functional.silu(gate) * up, self.down)


class DecodeStep:
    """`sum_in_place(tensor)` adds up over the ranks."""

    def __init__(self, name, ranks, batch, dtype):
        model = MODELS[name]
        torch.manual_seed(0)
        self.layers = [Layer(model, ranks, batch, dtype) for _ in range(model.layers)]
        self.x = torch.randn(batch, model.hidden, dtype=dtype)

    @torch.inference_mode()
    def __call__(self, sum_in_place):
        x = self.x
        norm = functools.partial(functional.rms_norm, normalized_shape=x.shape[1:])
        for layer in self.layers:
            for part in (layer.attention, layer.mlp):
                partial = part(norm(x))
                sum_in_place(partial)
                x = x + partial
        return x


def deepspeed_sum(rank, ranks, barrier):
    """DeepSpeed's kernel for this, shared memory of its own (float32, bfloat16 and float16)."""
    from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder

    ShareMemCommBuilder().load().initialize(ranks, rank)
    barrier.wait()
    return torch.ops.deepspeed.inference_all_reduce_


def vllm_sum(library, rank, ranks, barrier):
    """The algorithm of vLLM's kernel for this (bench/peers/vllm_sum.cc; float32 and bfloat16)."""
    path = f"/dev/shm/ccom-vllm-sum-{os.path.basename(os.path.dirname(library))}"
    functions = ctypes.CDLL(library)
    functions.vllm_sum_open.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(functions.vllm_sum_open(path.encode(), rank, ranks))
    barrier.wait()
    if rank == 0:
        os.remove(path)
    if handle.value is None:
        raise ValueError(f"{library}: not for {ranks} ranks, or no memory")
    by_type = {torch.float32: functions.vllm_sum_float32, torch.bfloat16: functions.vllm_sum_bfloat16}

    def add(tensor):
        by_type[tensor.dtype](handle, ctypes.c_void_p(tensor.data_ptr()), ctypes.c_size_t(tensor.numel()))

    for dtype in by_type:
        tensor = torch.full((600001,), rank + 1.0, dtype=dtype)  # in float32 three halves
        add(tensor)
        if not (tensor == ranks * (ranks + 1) / 2).all():
            raise ValueError(f"{library}: wrong sums of {dtype}")
    return add


def sums(groups, options, rank, ranks, barrier):
    """By name: functions that add up a tensor over the ranks in place; alone: nothing."""
    found = {name: functools.partial(dist.all_reduce, group=group) for name, group in groups.items()}
    if options.deepspeed:
        found["deepspeed"] = deepspeed_sum(rank, ranks, barrier)
    if options.vllm:
        found["vllm"] = vllm_sum(options.vllm, rank, ranks, barrier)
    return {**found, "alone": lambda tensor: tensor}
