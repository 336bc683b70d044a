# SPDX-License-Identifier: Apache-2.0
"""Python objects, sparse tensors, barriers and monitored barriers."""
import datetime
import time

import expected
import torch
import torch.distributed as dist


def thing(rank):
    """Of another size on every rank, one of them large."""
    text = "x" * (100_000 if rank == 1 else rank)
    return {"rank": rank, "text": text, "tensor": torch.full((rank + 1,), float(rank))}


def same(a, b):
    return a is not None and a["rank"] == b["rank"] and a["text"] == b["text"] and torch.equal(a["tensor"], b["tensor"])


def check_object_collectives(job):
    n = job.ranks
    everyone = [None] * n
    dist.all_gather_object(everyone, thing(job.rank))
    job.expect(all(same(found, thing(rank)) for rank, found in enumerate(everyone)), "all_gather_object")
    for root in (0, n - 1):
        gathered = [None] * n if job.rank == root else None
        dist.gather_object(thing(job.rank), gathered, root)
        good = gathered is None or all(same(found, thing(rank)) for rank, found in enumerate(gathered))
        job.expect(good, "gather_object")
        things = [thing(root), "words", 3.5] if job.rank == root else [None, None, None]
        dist.broadcast_object_list(things, root)
        job.expect(same(things[0], thing(root)) and things[1:] == ["words", 3.5], "broadcast_object_list")
        mine = [None]
        dist.scatter_object_list(mine, [thing(rank) for rank in range(n)] if job.rank == root else None, root)
        job.expect(same(mine[0], thing(job.rank)), "scatter_object_list")


def sparse(rank, dtype=torch.float):
    """Rows of a 10 x 3 matrix; some ranks share rows, the first has none."""
    if rank == 0:
        return torch.sparse_coo_tensor(torch.zeros(1, 0, dtype=torch.long), torch.zeros(0, 3, dtype=dtype), (10, 3))
    rows = torch.tensor([[rank, 9, 9]])
    return torch.sparse_coo_tensor(rows, torch.full((3, 3), rank).to(dtype), (10, 3))


def check_sparse_all_reduce(job):
    for dtype in (torch.float, torch.double, torch.int64):
        for asynchronous in (False, True):
            tensor = sparse(job.rank, dtype)
            work = dist.all_reduce(tensor, async_op=asynchronous)
            if asynchronous:
                work.wait()
                tensor = work.result()[0] if not job.is_ccom else tensor
            total = sum(sparse(rank, dtype).to_dense() for rank in range(job.ranks))
            job.expect(tensor.is_sparse, "the sum of sparse tensors is sparse")
            job.expect_equal(tensor.to_dense(), total, f"sparse all_reduce {dtype}")
    job.expect_error(lambda: dist.all_reduce(sparse(job.rank), dist.ReduceOp.MAX), "largest of sparse tensors")


def check_sparse_gradients(job):
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Embedding(20, 4, sparse=True))
    words = torch.tensor([job.rank, 7, 7])
    model(words).sum().backward()
    gradient = model.module.weight.grad
    counts = torch.zeros(20)
    for rank in range(job.ranks):
        counts[rank] += 1
        counts[7] += 2
    job.expect(gradient.is_sparse, "the gradient of a sparse embedding stays sparse")
    job.expect_close(gradient.to_dense(), (counts / job.ranks).unsqueeze(1).expand(20, 4), "sparse gradients under DDP")


def check_barrier(job):
    for asynchronous in (False, True):
        for late in range(job.ranks):
            name = f"barrier/{asynchronous}/{late}"
            if job.rank == late:
                job.store.wait([f"{name}/{rank}" for rank in range(job.ranks) if rank != late])
                time.sleep(0.05)  # in which a barrier that does not wait is over
                job.store.set(name, "came")
            else:
                job.store.set(f"{name}/{job.rank}", "")
            work = dist.barrier(async_op=asynchronous)
            if asynchronous:
                work.wait()
            job.expect(job.store.check([name]), f"a barrier did not wait for rank {late}")
            dist.barrier()


def monitored(job, timeout, wait_all_ranks=False):
    if job.is_ccom:
        import ccom.torch

        ccom.torch.monitored_barrier(timeout=timeout, wait_all_ranks=wait_all_ranks)
    else:
        dist.monitored_barrier(timeout=timeout, wait_all_ranks=wait_all_ranks)


def check_monitored_barrier(job):
    for _ in range(3):
        monitored(job, datetime.timedelta(seconds=20), wait_all_ranks=True)
    if job.is_ccom:
        options = dist.BarrierOptions()
        options.timeout = datetime.timedelta(seconds=20)
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        backend.monitored_barrier(options.timeout, False)


REPORTED = "successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0"


def come_late(job, ranks):
    """Ranks that missed a monitored barrier are told how it ended, and the next one is the same for all."""
    patience = datetime.timedelta(seconds=20)
    if job.rank in ranks:
        text = job.expect_error(lambda: monitored(job, patience), "a monitored barrier that ended", REPORTED)
        job.expect("failed to pass monitoredBarrier" in text, f"a late rank is not told who missed: {text}")
    monitored(job, patience)


def check_monitored_barrier_without_time(job):
    """Only rank 0 comes, with a timeout of zero, and has its error at once. Gloo fails afterwards."""
    if job.library != "ccom" or job.ranks == 1:
        return
    if job.rank == 0:
        begin = time.monotonic()
        job.expect_error(lambda: monitored(job, datetime.timedelta(0)), "monitored barrier without time",
                         "Rank 0 timed out in monitoredBarrier")
        job.expect(time.monotonic() - begin < 10, "a timeout of zero took ten seconds")
    job.meet("after the monitored barrier without time")
    come_late(job, range(1, job.ranks))


@expected.of_ccom
def check_monitored_barrier_names_who_is_missing(job):
    """All but rank 0 and the last come. A group may be used again afterwards."""
    if job.ranks < 3:
        return
    short = datetime.timedelta(seconds=1)
    missing = (1, job.ranks - 1) if job.ranks > 3 else (1,)
    if job.rank == 0:
        text = job.expect_error(lambda: monitored(job, short, wait_all_ranks=True), "monitored barrier, rank 0",
                                "failed to pass monitoredBarrier")
        for rank in missing:
            job.expect(str(rank) in text, f"the text does not name rank {rank}: {text}")
    elif job.rank not in missing:
        job.expect_error(lambda: monitored(job, short), "monitored barrier, a rank that came", REPORTED)
    job.meet("after the monitored barrier")
    come_late(job, missing)
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    job.expect_equal(tensor, torch.full((3,), float(job.ranks)), "all_reduce after a monitored barrier that failed")
