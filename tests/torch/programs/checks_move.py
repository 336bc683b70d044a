# SPDX-License-Identifier: Apache-2.0
"""broadcast, all_gather, gather, scatter, all_to_all: every type and root, lists and single tensors, equal and unequal
parts; bytes arrive as they were sent."""
import expected
import torch
import torch.distributed as dist
from expected import finish

MORE = [torch.uint16, torch.uint32, torch.uint64, torch.complex32]


def dtypes(job, but=()):
    for dtype in [*expected.ALL, *MORE]:
        if dtype not in but and (job.is_ccom or (dtype not in MORE and expected.gloo_moves(dtype))):
            yield dtype


def numbers(rank, shape, dtype, salt=0):
    if dtype == torch.complex32:
        return torch.complex(*(expected.values(rank, shape, torch.half, 2 * salt + part) for part in (0, 1)))
    if dtype in MORE:
        return expected.values(rank, shape, torch.uint8, salt).to(dtype)
    return expected.values(rank, shape, dtype, salt)


def check_broadcast(job):
    for dtype in dtypes(job):
        for root in range(job.ranks):
            asynchronous = root % 2 == 1
            tensor = numbers(job.rank, (6, 11), dtype)
            what = f"broadcast {dtype} from {root}"
            finish(dist.broadcast(tensor, root, async_op=asynchronous), asynchronous, job, what)
            job.expect_equal(tensor, numbers(root, (6, 11), dtype), what)


def check_all_gather(job):
    for dtype in dtypes(job):
        for asynchronous in (False, True):
            outputs = [torch.zeros(3, 5, dtype=dtype) for _ in range(job.ranks)]
            what = f"all_gather {dtype} {'async' if asynchronous else 'sync'}"
            work = dist.all_gather(outputs, numbers(job.rank, (3, 5), dtype), async_op=asynchronous)
            finish(work, asynchronous, job, what)
            for rank, output in enumerate(outputs):
                job.expect_equal(output, numbers(rank, (3, 5), dtype), f"{what}, part of {rank}")


@expected.of_ccom
def check_all_gather_of_unequal_tensors(job):
    outputs = [torch.zeros(1 + 4 * rank) for rank in range(job.ranks)]
    dist.all_gather(outputs, numbers(job.rank, (1 + 4 * job.rank,), torch.float))
    for rank, output in enumerate(outputs):
        sent = numbers(rank, (1 + 4 * rank,), torch.float)
        job.expect_equal(output, sent, f"all_gather of unequal tensors, part of {rank}")


def check_all_gather_into_tensor(job):
    for dtype in dtypes(job):
        for asynchronous in (False, True):
            what = f"all_gather_into_tensor {dtype} {'async' if asynchronous else 'sync'}"
            output = torch.zeros(4 * job.ranks, 3, dtype=dtype)
            work = dist.all_gather_into_tensor(output, numbers(job.rank, (4, 3), dtype), async_op=asynchronous)
            finish(work, asynchronous, job, what)
            job.expect_equal(output, torch.cat([numbers(rank, (4, 3), dtype) for rank in range(job.ranks)]), what)
            if not job.is_ccom:
                continue  # it wants the input's shape
            stacked = torch.zeros(job.ranks, 4, 3, dtype=dtype)
            dist.all_gather_into_tensor(stacked, numbers(job.rank, (4, 3), dtype))
            job.expect_equal(stacked.view(output.shape), output, f"{what}, stacked")


def check_gather(job):
    for dtype in dtypes(job, but=() if job.is_ccom else expected.COMPLEX):
        for root in range(job.ranks):
            asynchronous = root % 2 == 0
            outputs = [torch.zeros(7, dtype=dtype) for _ in range(job.ranks)] if job.rank == root else None
            what = f"gather {dtype} to {root}"
            work = dist.gather(numbers(job.rank, (7,), dtype, root), outputs, root, async_op=asynchronous)
            finish(work, asynchronous, job, what)
            for rank, output in enumerate(outputs or []):
                job.expect_equal(output, numbers(rank, (7,), dtype, root), f"{what}, part of {rank}")


def check_scatter(job):
    for dtype in dtypes(job):
        for root in range(job.ranks):
            asynchronous = root % 2 == 0
            parts = [numbers(root, (2, 4), dtype, salt=rank) for rank in range(job.ranks)]
            output = torch.zeros(2, 4, dtype=dtype)
            what = f"scatter {dtype} from {root}"
            work = dist.scatter(output, parts if job.rank == root else None, root, async_op=asynchronous)
            finish(work, asynchronous, job, what)
            job.expect_equal(output, parts[job.rank], what)


def check_all_to_all_list(job):
    for dtype in dtypes(job):
        for asynchronous in (False, True):
            inputs = [numbers(job.rank, (3, 2), dtype, salt=peer) for peer in range(job.ranks)]
            outputs = [torch.zeros(3, 2, dtype=dtype) for _ in range(job.ranks)]
            what = f"all_to_all {dtype}"
            finish(dist.all_to_all(outputs, inputs, async_op=asynchronous), asynchronous, job, what)
            for peer, output in enumerate(outputs):
                job.expect_equal(output, numbers(peer, (3, 2), dtype, salt=job.rank), f"{what}, part of {peer}")


@expected.of_ccom
def check_all_to_all_list_of_unequal_parts(job):
    def length(sender, receiver):
        return (sender + 2 * receiver) % 3  # some are empty

    inputs = [numbers(job.rank, (length(job.rank, peer), 2), torch.float, salt=peer) for peer in range(job.ranks)]
    outputs = [torch.zeros(length(peer, job.rank), 2) for peer in range(job.ranks)]
    dist.all_to_all(outputs, inputs)
    for peer, output in enumerate(outputs):
        sent = numbers(peer, (length(peer, job.rank), 2), torch.float, salt=job.rank)
        job.expect_equal(output, sent, f"all_to_all of unequal parts, from {peer}")


def check_all_to_all_single(job):
    for dtype in dtypes(job):
        for asynchronous in (False, True):
            what = f"all_to_all_single {dtype}"
            output = torch.zeros(job.ranks * 2, 3, dtype=dtype)
            work = dist.all_to_all_single(output, numbers(job.rank, (job.ranks * 2, 3), dtype), async_op=asynchronous)
            finish(work, asynchronous, job, what)
            everyones = [numbers(peer, (job.ranks * 2, 3), dtype) for peer in range(job.ranks)]
            job.expect_equal(output, torch.cat([each[2 * job.rank:2 * job.rank + 2] for each in everyones]), what)


def check_all_to_all_single_of_unequal_parts(job):
    def split(sender, receiver):
        return (3 * sender + receiver) % 4

    for dtype in dtypes(job):
        to_send = [split(job.rank, peer) for peer in range(job.ranks)]
        to_receive = [split(peer, job.rank) for peer in range(job.ranks)]
        output = torch.zeros(sum(to_receive), 5, dtype=dtype)
        dist.all_to_all_single(output, numbers(job.rank, (sum(to_send), 5), dtype), to_receive, to_send)
        parts = []
        for peer in range(job.ranks):
            splits = [split(peer, receiver) for receiver in range(job.ranks)]
            parts.append(numbers(peer, (sum(splits), 5), dtype).split(splits)[job.rank])
        job.expect_equal(output, torch.cat(parts), f"all_to_all_single of unequal parts, {dtype}")


def check_large_moves(job):
    """Through every path that depends on the size."""
    for count in (1, 300, 70_001, 3_000_017):
        mine = torch.arange(count, dtype=torch.int32) * (job.rank + 1)
        tensor = mine.clone()
        dist.broadcast(tensor, job.ranks - 1)
        job.expect_equal(tensor, torch.arange(count, dtype=torch.int32) * job.ranks, f"broadcast of {count}")
        output = torch.zeros(job.ranks * count, dtype=torch.int32)
        dist.all_gather_into_tensor(output, mine)
        for rank, part in enumerate(output.split(count)):
            job.expect_equal(part, torch.arange(count, dtype=torch.int32) * (rank + 1), f"all_gather of {count}")
        swapped = torch.zeros_like(output)
        dist.all_to_all_single(swapped, output + job.rank)
        for rank, part in enumerate(swapped.split(count)):
            sent = torch.arange(count, dtype=torch.int32) * (job.rank + 1) + rank
            job.expect_equal(part, sent, f"all_to_all of {count}, from {rank}")
