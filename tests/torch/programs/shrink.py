# SPDX-License-Identifier: Apache-2.0
"""Ranks that go on in the same processes after others have died: shrink.py CASE [BACKEND], a function below.

Each survivor prints one line of JSON with what it was told; what must hold in any case is asserted here.
"""
import os
import signal
import sys
import threading
import time
from datetime import timedelta

import ccom.torch
import torch
import torch.distributed as dist
from living import STARTED_AS, error_of, require_works, shared_store, tell

LONG = timedelta(seconds=60)  # the store's own is that of the group


def start(timeout=60, **options):
    backend = sys.argv[2] if len(sys.argv) > 2 else "ccom"
    dist.init_process_group(backend, timeout=timedelta(seconds=timeout), **options)
    return dist.get_rank()


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def reduce_until_error(group=None):
    while not (error := error_of(lambda: dist.all_reduce(torch.ones(1000), group=group))):
        pass
    return error


def lose(*victims):
    """Once all have started, the victims kill themselves, and the others see it."""
    error_of(dist.barrier)
    if dist.get_rank() in victims:
        die()
    reduce_until_error()


def one_death_after_another():
    """4 ranks, 3, 2, 1: first the last rank dies, in the end rank 0; asynchronous operations are under way."""
    rank = start()
    for victim in (3, 1, 0):
        for _ in range(20):
            dist.all_reduce(torch.ones(1000), async_op=True)
        if dist.get_rank() == victim:
            die()
        reduce_until_error()
        lost = ccom.torch.lost_ranks()
        assert lost == [victim], lost
        group = dist.shrink_group(lost, shrink_flags=dist.distributed_c10d.SHRINK_ABORT)
        assert group is dist.group.WORLD
        require_works(dist.get_world_size())
        ccom.torch.monitored_barrier()
    tell(left=dist.get_world_size(), started_as=rank)


def more_have_died_than_listed():
    start()
    lose(1, 2)
    while ccom.torch.lost_ranks() != [1, 2]:  # rank 2 dies a moment later
        pass
    told = error_of(lambda: dist.shrink_group([1]))
    assert dist.get_world_size() == 4
    dist.shrink_group([1, 2])
    require_works(2)
    tell(told=told)


def lists_differ():
    rank = start()
    lose(3)
    told = error_of(lambda: dist.shrink_group([3] if rank == 0 else [2, 3] if rank == 1 else [1, 3]))
    dist.shrink_group([3])
    require_works(3)
    tell(told=told)


def a_rank_leaves():
    """Nobody dies: rank 1 is done, and the others go on without it."""
    rank = start()
    require_works(4)
    if rank == 1:
        dist.distributed_c10d._get_default_store().wait(["others are done"])
        return
    options = ccom.torch.backend_of().options
    dist.shrink_group([1], pg_options=options)
    assert ccom.torch.backend_of().options is options
    require_works(3)
    store = dist.distributed_c10d._get_default_store()
    dist.barrier()
    if dist.get_rank() == 0:
        store.set("others are done", "")
    tell(left=dist.get_world_size())


def abort_ends_what_waits():
    """Ranks 0 and 2 wait for rank 1, which shrinks instead: they are told, and come too. Rank 3 lives, and is excluded.
    """
    rank = start()
    require_works(4)
    store = dist.distributed_c10d._get_default_store()
    told = ""
    if rank in (0, 2):
        work = dist.all_reduce(torch.ones(10), async_op=True)
        store.set(f"{rank} has called", "")
        told = error_of(work.wait)
    elif rank == 1:
        store.wait(["0 has called", "2 has called"])
    else:
        store.wait(["others are done"])
        return
    dist.shrink_group([3], shrink_flags=dist.distributed_c10d.SHRINK_ABORT)
    require_works(3)
    dist.barrier()
    if dist.get_rank() == 0:
        store.set("others are done", "")
    tell(told=told)


def a_part():
    """The part of ranks 1, 2, 3 goes on; the default group stays failed, until it is shrunk too."""
    rank = start()
    part = dist.new_group([1, 2, 3])
    lose(3)
    if rank != 0:
        reduce_until_error(part)
        lost = ccom.torch.lost_ranks(part)
        assert lost == [2], lost
        part = ccom.torch.shrink_group(lost, part)
        require_works(2, part)
        assert dist.get_process_group_ranks(part) == [1, 2]
        tensor = torch.tensor([float(rank)])
        dist.broadcast(tensor, 2, group=part)
        assert tensor.item() == 2
    assert error_of(lambda: dist.all_reduce(torch.ones(1)))
    ccom.torch.shrink_group()
    require_works(3)
    assert dist.get_process_group_ranks(None) == [0, 1, 2]
    tell(left=dist.get_world_size())


def groups_after_it():
    """torch gives new groups the names of earlier ones again, which had other ranks."""
    rank = start(20)
    earlier = dist.new_group([0, 1])
    if rank in (0, 1):
        require_works(2, earlier)
    lose(1)
    dist.shrink_group(ccom.torch.lost_ranks())
    rank = dist.get_rank()
    begin = time.monotonic()
    for members in (None, [0, 1, 2], [1, 2], [0, 2]):
        group = dist.new_group(members)
        if members is None or rank in members:
            require_works(len(members or [0, 1, 2]), group)
            ccom.torch.monitored_barrier(group)
    if rank != 1:
        part = dist.group.WORLD.split_group([0, 2], group_name="both ends")  # dist.split_group wants an accelerator
        tensor = torch.ones(10)
        part._get_backend(torch.device("cpu")).allreduce([tensor]).wait()
        assert tensor.max() == 2, tensor
    dist.barrier()
    tell(seconds=time.monotonic() - begin)


def ddp():
    """The same model goes on in a new DistributedDataParallel; all ranks keep equal parameters."""
    rank = start()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(100, 700), torch.nn.ReLU(), torch.nn.Linear(700, 10))

    def train(steps):
        parallel = torch.nn.parallel.DistributedDataParallel(model)
        for step in range(steps):
            if STARTED_AS == 2 and step == 5:
                die()
            model.zero_grad()
            parallel(torch.full((3, 100), float(step + rank))).sum().backward()
            for parameter in model.parameters():
                parameter.data -= 1e-4 * parameter.grad

    try:
        train(100)
    except RuntimeError as error:
        told = str(error)
    dist.shrink_group(ccom.torch.lost_ranks())
    train(10)
    values = torch.cat([parameter.data.flatten() for parameter in model.parameters()])
    everyone = [torch.empty_like(values) for _ in range(3)]
    dist.all_gather(everyone, values)
    assert all(torch.equal(values, other) for other in everyone)
    tell(told=told)


def others_are_late():
    """Threads of Python run while a rank waits; who does not come is named, and can come later."""
    rank = start(3)
    ticks = 0

    def tick():
        nonlocal ticks
        while True:
            ticks += 1
            time.sleep(0.005)

    threading.Thread(target=tick, daemon=True).start()
    lose(3)
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        store.wait(["1 was told", "2 was told"], LONG)
    before = ticks
    told = error_of(ccom.torch.lost_ranks)
    waited = ticks - before
    store.set(f"{rank} was told", "")
    store.wait(["0 was told"], LONG)
    dist.shrink_group([3])
    require_works(3)
    tell(told=told, ticks=waited)


def the_store_dies_too():
    """Rank 0 serves it, and dies."""
    meeting = shared_store()
    if STARTED_AS == 0:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        meeting.set("port", str(store.port))
    else:
        store = dist.TCPStore("127.0.0.1", int(meeting.get("port")), is_master=False)
    start(store=store, rank=STARTED_AS, world_size=4)
    lose(0)
    lost, begin = ccom.torch.lost_ranks(), time.monotonic()
    told = error_of(lambda: dist.shrink_group(lost))
    tell(told=told, seconds=time.monotonic() - begin)


globals()[sys.argv[1]]()
dist.destroy_process_group()
