# SPDX-License-Identifier: Apache-2.0
"""Processes that are forked from one that has torch and ccom: forking.py before|workers|mapped|threads [KEEP_BYTES
FORKS]
"""
import multiprocessing
import os
import sys
import tempfile
import threading

import torch
import torch.distributed as dist


class Numbers(torch.utils.data.Dataset):
    def __init__(self, tensor):
        self.tensor = tensor

    def __len__(self):
        return len(self.tensor)

    def __getitem__(self, index):
        return self.tensor[index] * 2


def member(rank, ranks, path):
    dist.init_process_group("ccom", init_method=f"file://{path}", rank=rank, world_size=ranks)
    tensor = torch.full((1000,), float(rank + 1))
    dist.all_reduce(tensor)
    assert tensor[0] == ranks * (ranks + 1) / 2
    dist.all_reduce(tensor, async_op=True).wait()
    dist.destroy_process_group()


def before():
    """torch, with ccom's entry point, is imported by the parent; its children make the group."""
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("fork")
        children = [context.Process(target=member, args=(rank, 3, os.path.join(folder, "store"))) for rank in range(3)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        assert [child.exitcode for child in children] == [0, 0, 0], [child.exitcode for child in children]


def workers():
    """DataLoader forks its workers while the group lives, several times, and collectives run between batches."""
    dist.init_process_group("ccom")
    numbers = torch.arange(400_000.0).view(400, 1000)
    sums = torch.zeros(400_000)
    for _ in range(3):
        loader = torch.utils.data.DataLoader(Numbers(numbers), batch_size=50, num_workers=2)
        for batch in loader:
            work = dist.all_reduce(sums.fill_(1), async_op=True)
            assert batch.shape == (50, 1000)
            dist.all_reduce(batch)
            work.wait()
            assert sums[0] == dist.get_world_size()
    last = batch[-1, -1].item()
    assert last == 2 * 399_999 * dist.get_world_size(), last
    dist.destroy_process_group()


def mapped():
    """The same when the data set lies in memory that ranks can map: workers see copies."""
    import ccom.torch

    ccom.torch.enable_mapped_tensors()
    assert ccom.torch.is_mapped(torch.zeros(1 << 20))
    workers()


def threads():
    """Forks while other threads allocate mapped tensors and free them; every child has what was there and ends."""
    import ccom.torch

    ccom.torch.enable_mapped_tensors(1 << 20, int(sys.argv[2]))
    data = torch.full((1 << 20,), 7.0)
    assert ccom.torch.is_mapped(data)
    stopped = threading.Event()

    def allocate():
        size = 1 << 20
        while not stopped.is_set():
            torch.empty(size, dtype=torch.uint8)
            size = size + (1 << 20) if size < 8 << 20 else 1 << 20

    allocating = [threading.Thread(target=allocate, daemon=True) for _ in range(8)]
    for thread in allocating:
        thread.start()
    for _ in range(int(sys.argv[3])):
        child = os.fork()
        if child == 0:
            os._exit(0 if data[-1] == 7 and torch.empty(2 << 20)[0] is not None else 1)
        assert os.waitpid(child, 0)[1] == 0
    stopped.set()
    for thread in allocating:
        thread.join()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
