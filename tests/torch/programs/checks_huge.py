# SPDX-License-Identifier: Apache-2.0
"""Tensors beyond 2 GiB and 2^31 elements: counts and offsets that do not fit into 32 bits. Two ranks take 12 GiB."""
import torch
import torch.distributed as dist

MORE = (1 << 31) + 12_345


def spots(tensor):
    """Values around where 32 bits end, and at both ends."""
    places = [0, 1, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, MORE // 2, MORE - 1]
    return [tensor[place].item() for place in places if place < tensor.numel()]


def check_sum(job):
    tensor = torch.full((MORE,), 3 + job.rank, dtype=torch.int8)
    tensor[-1] = 10 * (job.rank + 1)
    dist.all_reduce(tensor)
    total = sum(3 + rank for rank in range(job.ranks))
    last = 10 * job.ranks * (job.ranks + 1) // 2
    job.expect(spots(tensor)[:-1] == [total] * 6 and tensor[-1] == last, f"{spots(tensor)}")
    job.expect(bool((tensor[:-1] == total).all()), "some element of a huge sum is wrong")


def check_broadcast(job):
    tensor = torch.full((MORE,), 1, dtype=torch.uint8) if job.rank == 0 else torch.zeros(MORE, dtype=torch.uint8)
    tensor[-1] = 7 if job.rank == 0 else 0
    dist.broadcast(tensor, 0)
    job.expect(tensor[-1] == 7 and bool((tensor[:-1] == 1).all()), f"broadcast: {spots(tensor)}")


def check_gathered_halves(job):
    mine = torch.full((MORE // 2,), job.rank + 1, dtype=torch.uint8)
    whole = torch.zeros(job.ranks * mine.numel(), dtype=torch.uint8)
    dist.all_gather_into_tensor(whole, mine)
    for rank, part in enumerate(whole.split(mine.numel())):
        job.expect(bool((part == rank + 1).all()), f"all_gather, part of {rank}")
    if not job.is_ccom:
        return
    swapped = torch.zeros_like(whole)
    dist.all_to_all_single(swapped, whole + 10 * job.rank)
    for rank, part in enumerate(swapped.split(mine.numel())):
        job.expect(bool((part == job.rank + 1 + 10 * rank).all()), f"all_to_all, part of {rank}")


def check_message(job):
    if job.rank == 0:
        dist.send(torch.full((MORE,), 5, dtype=torch.uint8), 1)
    elif job.rank == 1:
        tensor = torch.zeros(MORE, dtype=torch.uint8)
        dist.recv(tensor, 0)
        job.expect(bool((tensor == 5).all()), f"message: {spots(tensor)}")
    dist.barrier()
