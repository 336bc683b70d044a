# SPDX-License-Identifier: Apache-2.0
"""Hooks that narrow gradients, on ranks of one host or two: the mean of many steps' gradients with error feedback, what
is refused, and averages as bfloat16.

Gradients of each step are the same, so an encoding without feedback has the same error in every step. DDP makes other
buckets after the first step."""
import sys

import ccom.torch
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

STEPS = 30


class Weighted(nn.Module):
    """The gradient of each parameter is its factor."""

    def __init__(self, factors):
        super().__init__()
        self.parts = nn.ParameterList(torch.zeros_like(each) for each in factors)
        self.factors = factors

    def forward(self):
        return sum((part * factor).float().sum() for part, factor in zip(self.parts, self.factors))


def factors_of(rank, dtype):
    random = torch.Generator().manual_seed(rank)
    return [torch.randn(count, generator=random).to(dtype) for count in (30011, 9000, 20000, 77)]


def mean_error(dtype, feeds_back):
    model = DistributedDataParallel(Weighted(factors_of(dist.get_rank(), dtype)), bucket_cap_mb=0.1)
    state = ccom.torch.ErrorFeedback()
    if feeds_back:
        model.register_comm_hook(state, ccom.torch.narrow_hook)
    means = [torch.zeros(part.numel(), dtype=torch.float64) for part in model.module.parts]
    layouts = set()
    for _ in range(STEPS):
        model.zero_grad()
        model().backward()
        for mean, part in zip(means, model.module.parts):
            mean += part.grad.double() / STEPS
        layouts.add(tuple(tuple(map(id, parameters)) for parameters, _ in state._buckets.values()))
    if feeds_back:
        assert len(layouts) == 2, f"{len(layouts)} layouts of buckets"
        assert sum(part.numel() for _, part in state._buckets.values()) == sum(mean.numel() for mean in means)
    total, ranks = 0.0, range(dist.get_world_size())
    for number, mean in enumerate(means):
        exact = sum(factors_of(rank, dtype)[number].double() for rank in ranks) / len(ranks)
        total += (mean - exact).square().sum().item()
    return total


def require_infinite_gradients_leave_nothing():
    model = DistributedDataParallel(Weighted(factors_of(dist.get_rank(), torch.bfloat16)))
    state = ccom.torch.ErrorFeedback()
    model.register_comm_hook(state, ccom.torch.narrow_hook)
    (model() * (float("inf") if dist.get_rank() == 1 else 1)).backward()
    assert all(torch.isfinite(residual).all() for _, residual in state._buckets.values())


def averaged(dtype, hook):
    """The gradients of two steps, and the bytes that they have sent."""
    model = DistributedDataParallel(Weighted(factors_of(dist.get_rank(), dtype)), bucket_cap_mb=0.1)
    if hook is not None:
        model.register_comm_hook(None, hook)
    before = ccom.torch.bytes_sent()
    for _ in range(2):
        model.zero_grad()
        model().backward()
    return torch.cat([part.grad for part in model.module.parts]), ccom.torch.bytes_sent() - before


def bf16_compress(group, bucket):
    return default_hooks.bf16_compress_hook(group, bucket)


def require_averages_as_bfloat16(are_on_one_host):
    """Ranks are a power of two, so that torch's hook, which divides before the sum, has the same bits."""
    exact, exact_bytes = averaged(torch.float32, None)
    narrow, narrow_bytes = averaged(torch.float32, ccom.torch.bfloat16_hook)
    of_torch, _ = averaged(torch.float32, bf16_compress)
    assert not torch.equal(of_torch, exact)
    assert torch.equal(narrow, exact if are_on_one_host else of_torch)
    if not are_on_one_host:
        total = torch.tensor([exact_bytes, narrow_bytes])
        dist.all_reduce(total)
        assert total[1] < 0.6 * total[0], f"{total[1]} bytes instead of {total[0]}"
    assert torch.equal(averaged(torch.float64, ccom.torch.bfloat16_hook)[0], averaged(torch.float64, None)[0])


def main():
    if sys.argv[1] == "gloo":
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("ccom")
    if sys.argv[1] in ("gloo", "off"):
        try:
            ccom.torch.ErrorFeedback()
        except ValueError as error:
            print("refused:", error)
    elif sys.argv[1] == "bfloat16":
        require_averages_as_bfloat16(are_on_one_host=len(sys.argv) > 2)
    else:
        for dtype in (torch.float32, torch.bfloat16):
            without, fed_back = mean_error(dtype, False), mean_error(dtype, True)
            print(f"{dtype}: {without:.3e} without, {fed_back:.3e} with feedback")
            assert fed_back < without / 50
        require_infinite_gradients_leave_nothing()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
