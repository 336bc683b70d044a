# SPDX-License-Identifier: Apache-2.0
"""Tensors that are not a plain piece of memory of their own: strided, transposed, negated, empty, scalar, overlapping,
views of one another, and ones that need a gradient. What Gloo refuses, ccom must do right or refuse as well."""
import expected
import torch
import torch.distributed as dist


def layouts(rank):
    """Named tensors of the same values in different layouts, with 24 elements each."""
    plain = expected.values(rank, (4, 6), torch.float)
    holes = torch.full((4, 12), -7.0)
    holes[:, ::2] = plain
    offset = torch.full((25,), -7.0)
    offset[1:] = plain.reshape(-1)
    images = expected.values(rank, (1, 2, 3, 4), torch.float)
    return {
        "transposed": plain.t().contiguous().t(),
        "with holes": holes[:, ::2],
        "at an offset": offset[1:].view(4, 6),
        "channels last": images.to(memory_format=torch.channels_last),
        "permuted": images.contiguous().permute(3, 1, 0, 2),
    }


def check_all_reduce_of_any_layout(job):
    for name in layouts(0):
        if not job.is_ccom and name != "at an offset":
            continue
        everyone = [layouts(rank)[name] for rank in range(job.ranks)]
        tensor = everyone[job.rank]
        total = torch.stack([each.clone() for each in everyone]).sum(dim=0)
        stride, pointer = tensor.stride(), tensor.data_ptr()
        dist.all_reduce(tensor)
        job.expect_equal(tensor.contiguous(), total, f"all_reduce, {name}")
        job.expect((tensor.stride(), tensor.data_ptr()) == (stride, pointer), f"all_reduce, {name}: the layout changed")


@expected.of_ccom
def check_elements_between_are_left_alone(job):
    whole = torch.full((4, 12), -7.0)
    whole[:, ::2] = 1.0
    for call in (dist.all_reduce, lambda tensor: dist.broadcast(tensor, 0), lambda tensor: dist.reduce(tensor, 0)):
        call(whole[:, ::2])
        job.expect(bool((whole[:, 1::2] == -7).all()), "a call wrote between the elements of its tensor")
    outputs = [whole[:, 2 * (rank % 6)] for rank in range(job.ranks)]
    dist.all_gather(outputs, torch.full((4,), float(job.rank)))
    job.expect(bool((whole[:, 1::2] == -7).all()), "all_gather wrote between the elements of its outputs")
    for rank in range(job.ranks):
        job.expect_equal(whole[:, 2 * rank].clone(), torch.full((4,), float(rank)), f"all_gather into columns, {rank}")


@expected.of_ccom
def check_other_collectives_of_transposed_tensors(job):
    n = job.ranks

    def transposed(rank, rows, columns, salt=0):
        return expected.values(rank, (columns, rows), torch.float, salt).t()

    output = torch.zeros(5, 2 * n).t()
    dist.all_gather_into_tensor(output, transposed(job.rank, 2, 5))
    result = torch.cat([transposed(rank, 2, 5) for rank in range(n)])
    job.expect_equal(output.contiguous(), result, "all_gather transposed")

    share = torch.zeros(5, 2).t()
    dist.reduce_scatter_tensor(share, transposed(job.rank, 2 * n, 5))
    total = torch.stack([transposed(rank, 2 * n, 5) for rank in range(n)]).sum(dim=0)
    job.expect_equal(share.contiguous(), total[2 * job.rank:2 * job.rank + 2].contiguous(), "reduce_scatter transposed")

    outputs = [torch.zeros(3, 2).t() for _ in range(n)]
    dist.all_to_all(outputs, [transposed(job.rank, 2, 3, salt=peer) for peer in range(n)])
    for peer, each in enumerate(outputs):
        job.expect_equal(each.contiguous(), transposed(peer, 2, 3, salt=job.rank).contiguous(), "all_to_all transposed")

    mine = torch.zeros(3, 2).t()
    parts = [transposed(0, 2, 3, salt=rank) for rank in range(n)]
    dist.scatter(mine, parts if job.rank == 0 else None, 0)
    job.expect_equal(mine.contiguous(), parts[job.rank].contiguous(), "scatter transposed")
    gathered = [torch.zeros(3, 2).t() for _ in range(n)] if job.rank == 0 else None
    dist.gather(mine, gathered, 0)
    for rank, each in enumerate(gathered or []):
        job.expect_equal(each.contiguous(), parts[rank].contiguous(), "gather transposed")


@expected.of_ccom
def check_negated_inputs(job):
    """Views whose memory holds the opposite of their values. As outputs, torch hands on a copy and loses it."""
    def negated(rank):
        view = expected.values(rank, (10,), torch.complex64).conj().imag
        assert view.is_neg()
        return view

    outputs = [torch.zeros(10) for _ in range(job.ranks)]
    dist.all_gather(outputs, negated(job.rank))
    for rank, each in enumerate(outputs):
        job.expect_equal(each, negated(rank), f"all_gather of negated views, {rank}")


def check_empty_tensors(job):
    n = job.ranks
    for shape in ((0,), (0, 3), (3, 0, 2)):
        for dtype in (torch.float, torch.int64, torch.bool):
            dist.all_reduce(torch.zeros(shape, dtype=dtype), dist.ReduceOp.MAX)
            dist.broadcast(torch.zeros(shape, dtype=dtype), 0)
    dist.reduce(torch.zeros(0), 0)
    if job.is_ccom:
        outputs = [torch.zeros(0) for _ in range(n)]
        dist.all_gather(outputs, torch.zeros(0))
        dist.all_gather_into_tensor(torch.zeros(0), torch.zeros(0))
        dist.reduce_scatter_tensor(torch.zeros(0), torch.zeros(0))
        dist.reduce_scatter(torch.zeros(0), [torch.zeros(0) for _ in range(n)])
        dist.scatter(torch.zeros(0), outputs if job.rank == 0 else None, 0)
        dist.gather(torch.zeros(0), outputs if job.rank == 0 else None, 0)
        dist.all_to_all(outputs, [torch.zeros(0) for _ in range(n)])
        dist.all_to_all_single(torch.zeros(0), torch.zeros(0))
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    job.expect_equal(tensor, torch.full((1,), float(n)), "all_reduce after empty ones")


def check_scalars(job):
    tensor = torch.tensor(float(job.rank + 1))
    dist.all_reduce(tensor)
    job.expect_equal(tensor, torch.tensor(job.ranks * (job.ranks + 1) / 2), "all_reduce of a scalar")
    tensor = torch.tensor(job.rank, dtype=torch.int64)
    dist.broadcast(tensor, job.ranks - 1)
    job.expect_equal(tensor, torch.tensor(job.ranks - 1), "broadcast of a scalar")
    outputs = [torch.tensor(0) for _ in range(job.ranks)]
    dist.all_gather(outputs, torch.tensor(job.rank))
    job.expect([each.item() for each in outputs] == list(range(job.ranks)), f"all_gather of scalars: {outputs}")


def check_inputs_that_lie_in_their_outputs(job):
    """In place, as FSDP does it; and, for ccom, partly overlapping ones, which must act as if they were copied."""
    n = job.ranks
    whole = torch.zeros(n, 100)
    whole[job.rank] = job.rank + 1
    dist.all_gather_into_tensor(whole.view(-1), whole[job.rank])
    result = torch.arange(1.0, n + 1).repeat_interleave(100).view(n, 100)
    job.expect_equal(whole, result, "all_gather in place")
    if not job.is_ccom:
        return
    dist.reduce_scatter_tensor(whole[job.rank], whole.view(-1))
    job.expect_equal(whole[job.rank].clone(), torch.full((100,), float(n * (job.rank + 1))), "reduce_scatter in place")

    memory = torch.arange(100.0 * n + 100) + job.rank
    source = memory[30:130].clone()
    dist.all_gather_into_tensor(memory[:100 * n], memory[30:130])
    parts = [source - job.rank + rank for rank in range(n)]
    job.expect_equal(memory[:100 * n].clone(), torch.cat(parts), "all_gather of an input that overlaps the output")

    memory = torch.arange(100.0 * n + 100) + job.rank
    total = sum(torch.arange(100.0 * n + 100) + rank for rank in range(n))[:100 * n].view(n, 100)[job.rank]
    dist.reduce_scatter_tensor(memory[70:170], memory[:100 * n])
    job.expect_equal(memory[70:170].clone(), total, "reduce_scatter into an output that overlaps the input")

    tensor = torch.arange(10.0 * n) + 100 * job.rank
    dist.all_to_all_single(tensor, tensor)
    sent = torch.cat([torch.arange(10.0 * n)[10 * job.rank:10 * job.rank + 10] + 100 * peer for peer in range(n)])
    job.expect_equal(tensor, sent, "all_to_all_single in place")


def check_outputs_that_are_rows_of_one_tensor(job):
    n = job.ranks
    whole = torch.zeros(n, 50)
    dist.all_gather(list(whole), torch.full((50,), float(job.rank)))
    job.expect_equal(whole, torch.arange(float(n)).repeat_interleave(50).view(n, 50), "all_gather into rows")
    reverse = torch.zeros(n, 50)
    dist.all_gather(list(reverse)[::-1], torch.full((50,), float(job.rank)))
    job.expect_equal(reverse.flip(0), whole, "all_gather into rows from the last to the first")


@expected.of_ccom
def check_unequal_parts_of_any_layout(job):
    sizes = [3 * rank + 2 for rank in range(job.ranks)]
    sent = [expected.values(rank, (size,), torch.float) for rank, size in enumerate(sizes)]

    def expect_parts(outputs, what):
        for rank, output in enumerate(outputs):
            job.expect_equal(output.clone(), sent[rank], f"{what}, part of {rank}")

    whole = torch.full((sum(sizes) + job.ranks,), -7.0)
    backwards = [part[1:] for part in whole.split([size + 1 for size in reversed(sizes)])][::-1]
    dist.all_gather(backwards, sent[job.rank])
    expect_parts(backwards, "all_gather from the last to the first")
    job.expect(int((whole == -7).sum()) == job.ranks, "all_gather wrote between its outputs")
    columns = torch.full((max(sizes), 2 * job.ranks), -7.0)
    outputs = [columns[:size, 2 * rank] for rank, size in enumerate(sizes)]
    dist.all_gather(outputs, sent[job.rank])
    expect_parts(outputs, "all_gather into columns")
    job.expect(bool((columns[:, 1::2] == -7).all()), "all_gather wrote between columns")
    in_place = list(torch.zeros(sum(sizes)).split(sizes))
    in_place[job.rank].copy_(sent[job.rank])
    dist.all_gather(in_place, in_place[job.rank])
    expect_parts(in_place, "all_gather in place")
    shares = list(torch.ones(sum(sizes)).split(sizes))
    dist.reduce_scatter(shares[job.rank], shares)
    job.expect_equal(shares[job.rank].clone(), torch.full((sizes[job.rank],), float(job.ranks)),
                     "reduce_scatter in place")
    # From rank r to rank s go r + 2 s elements, out of and into the same memory.
    to, of = [job.rank + 2 * s for s in range(job.ranks)], [r + 2 * job.rank for r in range(job.ranks)]
    memory = torch.full((max(sum(to), sum(of)),), float(job.rank))
    outputs = list(memory[:sum(of)].split(of))
    dist.all_to_all(outputs, list(memory[:sum(to)].split(to)))
    for rank, output in enumerate(outputs):
        job.expect_equal(output.clone(), torch.full((of[rank],), float(rank)), f"all_to_all in place, from {rank}")


def check_parameters_that_need_a_gradient(job):
    for make in (lambda: torch.nn.Parameter(torch.ones(8)), lambda: torch.ones(8, requires_grad=True)):
        tensor = make()
        with torch.no_grad():
            dist.broadcast(tensor, 0)
            dist.all_reduce(tensor)
        job.expect_equal(tensor.detach(), torch.full((8,), float(job.ranks)), "a tensor that needs a gradient")
        job.expect(tensor.requires_grad and tensor.grad_fn is None, "a collective entered the graph of gradients")
    version = torch.ones(4)
    before = version._version
    with torch.inference_mode():
        dist.all_reduce(torch.ones(4))
    dist.all_reduce(version)
    job.expect(not job.is_ccom or version._version >= before, "the tensor's version went back")


@expected.of_ccom
def check_wrong_sizes_are_refused_here_and_do_no_harm(job):
    n = job.ranks
    small, large = torch.zeros(3), torch.zeros(3 * n + 1)
    job.expect_error(lambda: dist.all_gather_into_tensor(large, small), "all_gather_into_tensor")
    job.expect_error(lambda: dist.reduce_scatter_tensor(small, large), "reduce_scatter_tensor")
    job.expect_error(lambda: dist.all_gather([torch.zeros(3)] * (n + 1), torch.zeros(3)), "all_gather, a list too long")
    job.expect_error(lambda: dist.all_gather([torch.zeros(3).double()] * n, torch.zeros(3)), "all_gather, two types")
    job.expect_error(lambda: dist.broadcast(torch.zeros(3), n), "broadcast from nobody")
    splits = [1] * (n + 1), [1] * n
    job.expect_error(lambda: dist.all_to_all_single(torch.zeros(n), torch.zeros(n), *splits), "wrong splits")
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    job.expect_equal(tensor, torch.full((3,), float(n)), "all_reduce after refused calls")
