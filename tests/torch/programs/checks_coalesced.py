# SPDX-License-Identifier: Apache-2.0
"""Several tensors in one call: coalesced collectives, the coalescing manager, functional collectives and DTensor."""
import time

import expected
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed.distributed_c10d import _coalescing_manager

SHAPES = [(3,), (4, 5), (0,), (1,), (70_000,), (2, 3, 4)]


def tensors(rank, dtype=torch.float, shapes=SHAPES):
    return [expected.values(rank, shape, dtype, salt) for salt, shape in enumerate(shapes)]


def totals(job, dtype=torch.float, shapes=SHAPES, operator="sum"):
    everyones = (tensors(rank, dtype, shapes) for rank in range(job.ranks))
    return [expected.reduced(operator, list(same)) for same in zip(*everyones)]


def compare(job, found, result, what):
    for number, (ours, theirs) in enumerate(zip(found, result, strict=True)):
        job.expect_equal(ours, theirs, f"{what}, tensor {number}")


def check_all_reduce_coalesced(job):
    shapes = SHAPES if job.is_ccom else [shape for shape in SHAPES if 0 not in shape]
    for asynchronous in (False, True):
        mine = tensors(job.rank, shapes=shapes)
        work = dist.all_reduce_coalesced(mine, async_op=asynchronous)
        if asynchronous:
            job.expect(len(work.wait()) == len(mine), "all_reduce_coalesced's future holds its tensors")
        compare(job, mine, totals(job, shapes=shapes), "all_reduce_coalesced")


@expected.of_ccom
def check_all_reduce_coalesced_of_several_types(job):
    mine = [expected.values(job.rank, (40,), dtype) for dtype in expected.INTEGERS + expected.FLOATS]
    group = dist.group.WORLD
    group.allreduce_coalesced(mine, dist.AllreduceCoalescedOptions()).wait()
    for tensor in mine:
        inputs = [expected.values(rank, (40,), tensor.dtype) for rank in range(job.ranks)]
        job.expect_equal(tensor, expected.reduced("sum", inputs), f"coalesced beside other types: {tensor.dtype}")


def check_all_gather_coalesced(job):
    mine = [expected.values(job.rank, shape, torch.float) for shape in ((4,), (2, 3))]
    outputs = [[torch.zeros(4), torch.zeros(2, 3)] for _ in range(job.ranks)]
    dist.all_gather_coalesced(outputs, mine)
    for rank, output in enumerate(outputs):
        sent = [expected.values(rank, shape, torch.float) for shape in ((4,), (2, 3))]
        compare(job, output, sent, "all_gather_coalesced")


def check_coalescing_manager(job):
    for asynchronous in (False, True):
        mine = tensors(job.rank, shapes=[(4, 5), (3,)])
        with _coalescing_manager(async_ops=asynchronous) as manager:
            for tensor in mine:
                dist.all_reduce(tensor)
        if asynchronous:
            manager.wait()
        compare(job, mine, totals(job, shapes=[(4, 5), (3,)]), "all_reduce under the coalescing manager")

        outputs = [torch.zeros(4 * job.ranks, 5), torch.zeros(3 * job.ranks)]
        with _coalescing_manager(async_ops=asynchronous) as manager:
            for output, tensor in zip(outputs, tensors(job.rank, shapes=[(4, 5), (3,)])):
                dist.all_gather_into_tensor(output, tensor)
        if asynchronous:
            manager.wait()
        everyones = zip(*(tensors(rank, shapes=[(4, 5), (3,)]) for rank in range(job.ranks)))
        compare(job, outputs, [torch.cat(same) for same in everyones], "all_gather under the coalescing manager")

        shapes = [(2 * job.ranks, 3), (5 * job.ranks,)]
        outputs = [torch.zeros(2, 3), torch.zeros(5)]
        with _coalescing_manager(async_ops=asynchronous) as manager:
            for output, tensor in zip(outputs, tensors(job.rank, shapes=shapes)):
                dist.reduce_scatter_tensor(output, tensor)
        if asynchronous:
            manager.wait()
        result = [total.chunk(job.ranks)[job.rank] for total in totals(job, shapes=shapes)]
        compare(job, outputs, result, "reduce_scatter under the coalescing manager")


@expected.of_ccom
def check_an_asynchronous_broadcast_under_the_coalescing_manager(job):
    """The manager's wait() waits for it, too."""
    if job.rank == 0:
        time.sleep(0.2)
    tensor = torch.full((1000,), float(job.rank + 1))
    with _coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
        dist.broadcast(tensor, 0, async_op=True)
    manager.wait()
    job.expect_equal(tensor, torch.ones(1000), "an asynchronous broadcast after the manager's wait()")


def check_functional_collectives(job):
    group = dist.group.WORLD
    for dtype in (torch.float, torch.bfloat16, torch.int64):
        mine = tensors(job.rank, dtype, [(6 * job.ranks, 2)])[0]
        everyones = [tensors(rank, dtype, [(6 * job.ranks, 2)])[0] for rank in range(job.ranks)]
        for operator in ("sum", "max", "product") + (("avg",) if job.is_ccom and dtype == torch.float else ()):
            found = functional.wait_tensor(functional.all_reduce(mine, operator, group))
            result = expected.reduced(operator, everyones)
            check = job.expect_equal if expected.is_exact(operator, dtype) else job.expect_close
            check(found, result, f"functional {operator} {dtype}")
        job.expect_equal(mine, everyones[job.rank], "a functional collective changed its input")
        found = functional.all_gather_tensor(mine, 0, group)
        job.expect_equal(found + 0, torch.cat(everyones), f"functional all_gather {dtype}")
        found = functional.all_gather_tensor(mine, 1, group)
        job.expect_equal(found + 0, torch.cat(everyones, dim=1), f"functional all_gather by columns {dtype}")
        found = functional.reduce_scatter_tensor(mine, "sum", 0, group)
        result = expected.reduced("sum", everyones).chunk(job.ranks)[job.rank]
        job.expect_equal(found + 0, result, f"functional reduce_scatter {dtype}")
        found = functional.all_to_all_single(mine, None, None, group)
        result = torch.cat([each.chunk(job.ranks)[job.rank] for each in everyones])
        job.expect_equal(found + 0, result, f"functional all_to_all {dtype}")
        job.expect_equal(functional.broadcast(mine, 0, group) + 0, everyones[0], f"functional broadcast {dtype}")


def check_functional_coalesced(job):
    group = dist.group.WORLD
    shapes = [(job.ranks, 4), (2 * job.ranks,)]
    mine = tensors(job.rank, shapes=shapes)
    everyones = [tensors(rank, shapes=shapes) for rank in range(job.ranks)]
    found = functional.all_reduce_coalesced(mine, "sum", group)
    compare(job, [each + 0 for each in found], totals(job, shapes=shapes), "functional all_reduce_coalesced")
    found = functional.all_gather_into_tensor_coalesced(mine, group)
    result = [torch.cat(same) for same in zip(*everyones)]
    compare(job, [each + 0 for each in found], result, "functional all_gather_coalesced")
    found = functional.reduce_scatter_tensor_coalesced(mine, "sum", [0, 0], group)
    result = [total.chunk(job.ranks)[job.rank] for total in totals(job, shapes=shapes)]
    compare(job, [each + 0 for each in found], result, "functional reduce_scatter_coalesced")


def check_many_functional_results_that_nobody_waits_for(job):
    group = dist.group.WORLD
    for _ in range(50):
        functional.all_reduce(torch.ones(1000), "sum", group)
    found = functional.all_reduce(torch.ones(10), "sum", group)
    job.expect_equal(found + 0, torch.full((10,), float(job.ranks)), "all_reduce after results that were dropped")


def check_functional_gradients(job):
    """all_reduce, all_gather and reduce_scatter inside a graph of gradients."""
    mine = torch.arange(4.0 * job.ranks).requires_grad_()
    functional.all_reduce(mine, "sum", dist.group.WORLD)
    gathered = functional.all_gather_tensor_autograd(mine, 0, dist.group.WORLD)
    (gathered * (job.rank + 1)).sum().backward()
    total = job.ranks * (job.ranks + 1) / 2
    job.expect_equal(mine.grad, torch.full((4 * job.ranks,), total), "gradient of a gather")
    mine = torch.arange(4.0 * job.ranks).requires_grad_()
    functional.reduce_scatter_tensor_autograd(mine, "sum", 0, dist.group.WORLD).sum().backward()
    job.expect_equal(mine.grad, torch.ones(4 * job.ranks), "gradient of a reduce_scatter")


def check_distributed_tensors(job):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (job.ranks,))
    whole = expected.values(0, (4 * job.ranks + 3, 2 * job.ranks), torch.float)  # rows that cannot be divided equally
    rows = distribute_tensor(whole, mesh, [Shard(0)])
    job.expect_equal(rows.full_tensor(), whole, "rows of a matrix, gathered")
    columns = rows.redistribute(placements=[Shard(1)])
    job.expect_equal(columns.full_tensor(), whole, "rows that became columns, gathered")
    local = columns.to_local()
    job.expect_equal(local.contiguous(), whole.chunk(job.ranks, dim=1)[job.rank].contiguous(), "columns of a matrix")
    product = columns @ distribute_tensor(whole.t().contiguous(), mesh, [Shard(0)])
    job.expect(isinstance(product.placements[0], (Partial, Replicate, Shard)), f"{product.placements}")
    job.expect_equal(product.redistribute(placements=[Replicate()]).to_local(), whole @ whole.t(), "a product of sums")
