# SPDX-License-Identifier: Apache-2.0
"""Inputs of every rank and what collectives make of them, computed without any communication. Pure."""
import torch
import torch.distributed as dist

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.half, torch.bfloat16, torch.float, torch.double]
COMPLEX = [torch.complex64, torch.complex128]
NARROW = [torch.float8_e4m3fn, torch.float8_e5m2]
ALL = [torch.bool, *INTEGERS, *FLOATS, *COMPLEX, *NARROW]

OPERATORS = {
    "sum": dist.ReduceOp.SUM, "avg": dist.ReduceOp.AVG, "product": dist.ReduceOp.PRODUCT, "min": dist.ReduceOp.MIN,
    "max": dist.ReduceOp.MAX, "band": dist.ReduceOp.BAND, "bor": dist.ReduceOp.BOR, "bxor": dist.ReduceOp.BXOR,
    "premul_sum": dist._make_nccl_premul_sum(2.0),
}
BITWISE = ("band", "bor", "bxor")


def legal(operator, dtype):
    """What the C library documents, less what torch itself refuses."""
    if operator in BITWISE:
        return dtype == torch.bool or dtype in INTEGERS
    if operator in ("avg", "premul_sum"):
        return dtype != torch.bool
    return dtype not in COMPLEX or operator == "sum"


def gloo_reduces(operator, dtype):
    """What Gloo can do of that, as of torch 2.13."""
    if dtype in NARROW or dtype == torch.int16 or operator == "premul_sum":
        return False
    if dtype == torch.bool and operator == "sum":
        return False  # it adds up bytes
    return legal(operator, dtype) and not (operator == "avg" and not (dtype.is_floating_point or dtype.is_complex))


def gloo_moves(dtype):
    return dtype not in NARROW and dtype != torch.int16


def values(rank, shape, dtype, salt=0):
    """Small whole numbers: sums, products and twice of them are exact in every type for up to four ranks."""
    generator = torch.Generator().manual_seed(1 + rank + 100 * salt)
    if dtype == torch.bool:
        return torch.randint(2, shape, generator=generator).bool()
    if dtype == torch.uint8:
        return torch.randint(4, shape, generator=generator).to(dtype)
    if dtype in NARROW:
        return torch.tensor([-2.0, -1.0, 1.0, 2.0])[torch.randint(4, shape, generator=generator)].to(dtype)
    numbers = torch.randint(-3, 4, (*shape, 2), generator=generator).double()
    if dtype in COMPLEX:
        return torch.view_as_complex(numbers).to(dtype)
    return numbers[..., 0].contiguous().to(dtype)


def wide(tensor):
    if tensor.dtype in COMPLEX:
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.dtype.is_floating_point else tensor.long()


def reduced(operator, tensors):
    """The operator over all ranks' tensors. Averages of floating types are rounded once, of integers towards zero."""
    dtype = tensors[0].dtype
    stack = torch.stack([wide(tensor) for tensor in tensors])
    if dtype == torch.bool:
        operator = {"sum": "bor", "max": "bor", "product": "band", "min": "band"}.get(operator, operator)
    if operator in BITWISE:
        fold = {"band": torch.bitwise_and, "bor": torch.bitwise_or, "bxor": torch.bitwise_xor}[operator]
        result = stack[0]
        for each in stack[1:]:
            result = fold(result, each)
        return result.to(dtype)
    if operator == "avg":
        total = stack.sum(dim=0)
        if dtype in INTEGERS:
            return torch.div(total.to(dtype).long(), len(tensors), rounding_mode="trunc").to(dtype)
        return (total / len(tensors)).to(dtype)
    result = {"sum": lambda: stack.sum(dim=0), "premul_sum": lambda: (2 * stack).sum(dim=0),
              "product": lambda: stack.prod(dim=0), "min": lambda: stack.amin(dim=0), "max": lambda: stack.amax(dim=0)}
    return result[operator]().to(dtype)


def is_exact(operator, dtype):
    return operator != "avg" or dtype in INTEGERS


def of_ccom(check):
    """Gloo cannot, or ends the process."""
    return lambda job: job.is_ccom and check(job)


def wait(works):
    for work in works:
        work.wait()


def finish(work, asynchronous, job, what):
    job.expect((work is not None) == asynchronous, f"{what}: returned {work}")
    if work is not None:
        work.wait()
        job.expect(not job.is_ccom or work.is_completed(), f"{what}: not completed after wait()")
