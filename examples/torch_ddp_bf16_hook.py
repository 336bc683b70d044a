# SPDX-License-Identifier: Apache-2.0
"""Gradients communicated as bfloat16: DistributedDataParallel with torch's bf16_compress_hook.

    torchrun --nproc-per-node=4 examples/torch_ddp_bf16_hook.py --backend ccom

Trains the same network twice, with float32 and with bfloat16 gradients: half the bytes, and about the same result. The
hook divides, rounds, starts an asynchronous all_reduce and chains the conversion back to its future.
"""
import torch
import torch.distributed as dist
import torch_common as common
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.nn.parallel import DistributedDataParallel


def network(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10))


class Traffic:
    def __init__(self):
        self.sent = 0
        self.uncompressed = 0


def counted_bf16_hook(traffic, bucket):
    """torch rejects the named hook without NCCL; all it needs is a backend that sums bfloat16."""
    traffic.sent += bucket.buffer().numel() * 2
    traffic.uncompressed += bucket.buffer().numel() * bucket.buffer().element_size()
    return bf16_compress_hook(dist.group.WORLD, bucket)


def train(options, data, traffic=None):
    """The losses of all epochs, and the model. With `traffic`, gradients are communicated as bfloat16."""
    pictures, digits, _, _ = data
    model = DistributedDataParallel(network(options.seed), bucket_cap_mb=0.1)
    if traffic is not None:
        model.register_comm_hook(traffic, counted_bf16_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.rate, momentum=0.9)
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
    return losses, model


def main():
    options = common.parser(__doc__, epochs=10, batch=48, rate=0.02).parse_args()
    dist.init_process_group(options.backend)
    data = common.read_digits()

    exact_losses, exact = train(options, data)
    traffic = Traffic()
    losses, model = train(options, data, traffic)

    expected = common.accuracy(exact.module, data[2], data[3])
    right = common.accuracy(model.module, data[2], data[3])
    common.require_same_bits([*exact.parameters(), *model.parameters()])
    common.finish(options, f"bfloat16 gradients, {traffic.sent / 1e6:.1f} MB instead of "
                  f"{traffic.uncompressed / 1e6:.1f}: loss {losses[-1]:.4f} (float32: {exact_losses[-1]:.4f}), "
                  f"test accuracy {right:.4f} ({expected:.4f})", exact_losses + losses, model.module.state_dict())


if __name__ == "__main__":
    main()
