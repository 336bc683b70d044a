# SPDX-License-Identifier: Apache-2.0
"""What the torch_*.py examples share: their options, the digits of data/, and the check that all ranks have equal
results.
"""
import argparse
import ctypes
import hashlib
import os
import sys

import torch
import torch.distributed as dist

DIGITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "digits.csv")


def parser(description, **defaults):
    """Options of every example. `defaults` are for --steps, --batch and so on: name=number."""
    result = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--backend", default="ccom", help="of torch.distributed: ccom, gloo [ccom]")
    result.add_argument("--save", metavar="FILE", help="losses and final parameters, with torch.save")
    result.add_argument("--seed", type=int, default=1)
    for name, value in defaults.items():
        result.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value, help=f"[{value}]")
    return result


def read_digits():
    """Training pictures and their digits, test pictures and theirs. Every fifth picture is for the test."""
    with open(DIGITS, encoding="ascii") as file:
        rows = torch.tensor([[float(number) for number in line.split(",")] for line in file])
    pictures, digits = rows[:, :64] / 16, rows[:, 64].long()
    test = torch.arange(len(rows)) % 5 == 4
    return pictures[~test], digits[~test], pictures[test], digits[test]


def shares(count, batch, epoch, seed):
    """The rows of this rank in each global batch of an epoch. Together all ranks see the same, however many."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if batch % ranks:
        sys.exit(f"--batch {batch} cannot be divided among {ranks} ranks")
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed * 1000 + epoch))
    for begin in range(0, count - batch + 1, batch):
        yield order[begin + rank:begin + batch:ranks]


def mean_over_ranks(value):
    total = torch.tensor(float(value), dtype=torch.float64)
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def accuracy(model, pictures, digits):
    """Share of test pictures classified correctly; each rank evaluates its part of them."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    with torch.no_grad():
        right = (model(pictures[rank::ranks]).argmax(dim=1) == digits[rank::ranks]).sum()
    dist.all_reduce(right)
    return right.item() / len(digits)


def bytes_sent(options):
    """What all ranks have sent in messages so far, as ccom counts it: 0 on one host, and with other backends."""
    if options.backend != "ccom":
        return 0
    import ccom.torch

    total = torch.tensor(ccom.torch.bytes_sent())
    dist.all_reduce(total)
    return total.item()


def require_same_bits(tensors):
    """Ends this rank if its values differ from those of another one."""
    digest = hashlib.sha256()
    for tensor in tensors:
        tensor = tensor.detach().contiguous()
        digest.update(ctypes.string_at(tensor.data_ptr(), tensor.nbytes))  # numpy need not be installed
    mine = torch.frombuffer(bytearray(digest.digest()), dtype=torch.uint8)
    everyone = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, mine)
    others = [rank for rank, theirs in enumerate(everyone) if not torch.equal(mine, theirs)]
    if others:
        sys.exit(f"rank {dist.get_rank()}: ranks {others} hold other parameters")


def finish(options, closing, losses, parameters):
    """Saves, prints the closing line once, and leaves the group."""
    if dist.get_rank() == 0:
        if options.save:
            final = {name: tensor.detach().clone() for name, tensor in parameters.items()}
            torch.save({"losses": torch.tensor(losses, dtype=torch.float64), "parameters": final}, options.save)
        print(f"{dist.get_world_size()} ranks, {options.backend}: {closing}", flush=True)
    dist.destroy_process_group()
