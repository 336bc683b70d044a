# SPDX-License-Identifier: Apache-2.0
"""all_reduce, reduce, reduce_scatter: every type and operator, awaited at once and later, against expected.reduced."""
import expected
import torch
import torch.distributed as dist
from expected import finish


def pairs(job):
    for dtype in expected.ALL:
        for operator in expected.OPERATORS:
            if expected.legal(operator, dtype) if job.is_ccom else expected.gloo_reduces(operator, dtype):
                yield dtype, operator


def compare(job, found, operator, inputs, what):
    result = expected.reduced(operator, inputs)
    if expected.is_exact(operator, result.dtype):
        job.expect_equal(found, result, what)
    else:
        job.expect_close(found, result, what)


def everyone(job, shape, dtype, salt=0):
    return [expected.values(rank, shape, dtype, salt) for rank in range(job.ranks)]


def check_all_reduce(job):
    for dtype, operator in pairs(job):
        for asynchronous in (False, True):
            what = f"all_reduce {operator} {dtype} {'async' if asynchronous else 'sync'}"
            inputs = everyone(job, (5, 7), dtype)
            tensor = inputs[job.rank].clone()
            work = dist.all_reduce(tensor, expected.OPERATORS[operator], async_op=asynchronous)
            finish(work, asynchronous, job, what)
            compare(job, tensor, operator, inputs, what)


def check_reduce(job):
    for dtype, operator in pairs(job):
        if not job.is_ccom and operator == "avg":
            continue  # Gloo gives the sum
        for root in range(job.ranks):
            what = f"reduce {operator} {dtype} to {root}"
            inputs = everyone(job, (33,), dtype, salt=root)
            tensor = inputs[job.rank].clone()
            asynchronous = root % 2 == 1
            work = dist.reduce(tensor, root, expected.OPERATORS[operator], async_op=asynchronous)
            finish(work, asynchronous, job, what)
            if job.rank == root:
                compare(job, tensor, operator, inputs, what)


def check_reduce_scatter_tensor(job):
    for dtype, operator in pairs(job):
        for asynchronous in (False, True):
            what = f"reduce_scatter_tensor {operator} {dtype} {'async' if asynchronous else 'sync'}"
            inputs = everyone(job, (job.ranks * 3, 4), dtype)
            output = torch.empty(3, 4, dtype=dtype)
            work = dist.reduce_scatter_tensor(output, inputs[job.rank].clone(), expected.OPERATORS[operator],
                                              async_op=asynchronous)
            finish(work, asynchronous, job, what)
            mine = [tensor[3 * job.rank:3 * job.rank + 3] for tensor in inputs]
            compare(job, output, operator, mine, what)


def check_reduce_scatter_list(job):
    for dtype, operator in pairs(job):
        what = f"reduce_scatter {operator} {dtype}"
        inputs = [[expected.values(rank, (2, 9), dtype, salt=share) for share in range(job.ranks)]
                  for rank in range(job.ranks)]
        output = torch.empty(2, 9, dtype=dtype)
        mine = [tensor.clone() for tensor in inputs[job.rank]]
        work = dist.reduce_scatter(output, mine, expected.OPERATORS[operator], async_op=True)
        finish(work, True, job, what)
        compare(job, output, operator, [shares[job.rank] for shares in inputs], what)


@expected.of_ccom
def check_reduce_scatter_of_unequal_shares(job):
    inputs = [[expected.values(rank, (2 + 3 * share,), torch.float, share) for share in range(job.ranks)]
              for rank in range(job.ranks)]
    output = torch.empty(2 + 3 * job.rank)
    dist.reduce_scatter(output, [tensor.clone() for tensor in inputs[job.rank]])
    compare(job, output, "sum", [shares[job.rank] for shares in inputs], "reduce_scatter of unequal shares")


def check_illegal_operators_are_refused_and_do_no_harm(job):
    for dtype in (torch.float, torch.bfloat16, torch.double):
        for operator in expected.BITWISE:
            job.expect_error(lambda dtype=dtype, operator=operator: dist.all_reduce(
                torch.ones(4, dtype=dtype), expected.OPERATORS[operator]), f"all_reduce {operator} {dtype}")
    job.expect_error(lambda: dist.all_reduce(torch.ones(4, dtype=torch.bool), dist.ReduceOp.AVG), "average of bool")
    tensor = torch.ones(4)
    dist.all_reduce(tensor)
    job.expect_equal(tensor, torch.full((4,), float(job.ranks)), "all_reduce after refused ones")


def check_integer_sums_wrap(job):
    for dtype in expected.INTEGERS:
        if not job.is_ccom and not expected.gloo_moves(dtype):
            continue
        most = torch.iinfo(dtype).max
        tensor = torch.full((17,), most - job.rank, dtype=dtype)
        dist.all_reduce(tensor)
        total = sum(most - rank for rank in range(job.ranks))
        bits = torch.iinfo(dtype).bits
        wrapped = total % (1 << bits)
        if dtype != torch.uint8 and wrapped > most:
            wrapped -= 1 << bits
        job.expect_equal(tensor, torch.full((17,), wrapped, dtype=dtype), f"sum beyond the limit of {dtype}")


def real_numbers(rank, count, dtype):
    return torch.randn(count, generator=torch.Generator().manual_seed(7 + rank), dtype=torch.double).to(dtype)


def check_sums_of_any_size_are_right_and_the_same_everywhere(job):
    for dtype in expected.FLOATS:
        for count in (1, 2, 3, 1000, 4099, 65536 + 3, (1 << 20) + 5):
            what = f"sum of {count} {dtype}"
            inputs = [real_numbers(rank, count, dtype) for rank in range(job.ranks)]
            tensor = inputs[job.rank].clone()
            dist.all_reduce(tensor)
            exact = torch.stack([each.double() for each in inputs]).sum(dim=0)
            scale = torch.stack([each.double().abs() for each in inputs]).sum(dim=0)
            error = ((tensor.double() - exact).abs() / scale.clamp_min(1e-30)).max().item()
            job.expect(error < job.ranks * torch.finfo(dtype).eps, f"{what}: relative error {error}")
            everyones = [torch.empty_like(tensor) for _ in range(job.ranks)]
            dist.all_gather(everyones, tensor)
            for rank, theirs in enumerate(everyones):
                job.expect_equal(theirs, tensor, f"{what}: rank {rank} has other bits")


@expected.of_ccom
def check_narrow_sums_are_rounded_once(job):
    """16- and 8-bit types accumulate in float inside a host. Gloo rounds after every addition."""
    if not job.one_host:
        return
    for dtype in (torch.half, torch.bfloat16, *expected.NARROW):
        for count in (100, 300_000):
            inputs = [real_numbers(rank, count, dtype) for rank in range(job.ranks)]
            tensor = inputs[job.rank].clone()
            dist.all_reduce(tensor)
            total = inputs[0].float()
            for each in inputs[1:]:
                total = total + each.float()
            job.expect_equal(tensor, total.to(dtype), f"sum of {count} {dtype}, rounded once")


def check_infinities_and_nans(job):
    special = torch.tensor([float("inf"), float("-inf"), float("nan"), 0.0, -0.0, 1.0])
    for dtype in (torch.half, torch.bfloat16, torch.float, torch.double):
        tensor = special.to(dtype, copy=True) if job.rank == 0 else torch.ones(6, dtype=dtype)
        dist.all_reduce(tensor)
        others = job.ranks - 1
        result = torch.tensor([float("inf"), float("-inf"), float("nan"), others, others, 1 + others], dtype=dtype)
        torch.testing.assert_close(tensor, result, rtol=0, atol=0, equal_nan=True)
        if job.is_ccom:
            for operator in (dist.ReduceOp.MAX, dist.ReduceOp.MIN):
                tensor = special.to(dtype, copy=True) if job.rank == 0 else torch.ones(6, dtype=dtype)
                dist.all_reduce(tensor, operator)
                job.expect(bool(tensor[2].isnan()), f"{operator} {dtype} lost a NaN: {tensor.tolist()}")


@expected.of_ccom
def check_factors_of_a_premultiplied_sum(job):
    for dtype in (*expected.FLOATS, torch.int32, torch.complex64):
        for factor in (0.5, 3.0, torch.tensor([4.0])):
            if dtype == torch.int32 and factor == 0.5:
                continue
            tensor = torch.full((50,), 2.0, dtype=dtype)
            dist.all_reduce(tensor, dist._make_nccl_premul_sum(factor))
            result = torch.full((50,), 2 * float(factor) * job.ranks, dtype=dtype)
            job.expect_equal(tensor, result, f"premultiplied by {factor} {dtype}")
