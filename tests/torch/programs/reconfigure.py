# SPDX-License-Identifier: Apache-2.0
"""torch's reconfigure (2.14 and later): reconfigure.py CASE, a function below. Processes tell one another their handles
by a store that is not the group's. Each that ends well prints a line of JSON."""
import os
import signal
import sys
import time
from datetime import timedelta

import living
import torch
import torch.distributed as dist
from living import tell

NUMBER, COUNT = living.STARTED_AS, int(os.environ["WORLD_SIZE"])
board = living.shared_store()


def start(store=None, number=NUMBER, count=COUNT, **options):
    store = store or dist.PrefixStore("group", board)
    dist.init_process_group("ccom", store=store, rank=number, world_size=count, timeout=timedelta(seconds=60),
                            **options)
    board.set(f"handle {NUMBER}", dist._get_reconfigure_handle())


def handles(numbers):
    return [board.get(f"handle {number}").decode() for number in numbers]


def reconfigure(uuid, numbers, kind=list, seconds=60):
    dist._reconfigure(uuid=uuid, handles=kind(handles(numbers)), timeout=timedelta(seconds=seconds)).wait()


def require_works(size, rank=None):
    assert dist.get_world_size() == size and rank in (None, dist.get_rank()), (dist.get_rank(), dist.get_world_size())
    found = [torch.empty(1) for _ in range(size)]
    dist.all_gather(found, torch.tensor([float(dist.get_rank())]))
    assert torch.cat(found).tolist() == list(range(size)), found
    for count in (10, 300_000):
        for work in [dist.all_reduce(torch.ones(count), async_op=True) for _ in range(5)]:
            work.wait()
        tensor = torch.ones(count)
        dist.all_reduce(tensor)
        assert tensor.min() == tensor.max() == size, tensor
    # All large tensors of a size are reduced in another way from the fourth time on, whoever has come meanwhile.
    for _ in range(6):
        dist.all_reduce(torch.ones(1 << 19))
    living.require_messages()
    backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    backend.monitored_barrier(timedelta(seconds=30), False)


def error_of(call):
    return living.error_of(call, RuntimeError)


def members_change():
    """Waits for its members, then 4 ranks, other numbers, 3 by a set, all but one that is killed, and 4 with a new one.
    """
    if NUMBER < 4:
        start(count=4, enable_reconfigure=True)
        assert dist._supports_reconfigure()
        told = error_of(lambda: dist.all_reduce(torch.ones(1)))
        assert "before reconfigure() is called" in told, told
        reconfigure(1, [0, 1, 2, 3])
        require_works(4, NUMBER)
        reconfigure(2, [3, 2, 1, 0])
        require_works(4, 3 - NUMBER)
        if NUMBER == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        while not error_of(lambda: dist.all_reduce(torch.ones(1000))):
            pass
        reconfigure(3, [0, 1, 2], set)
        require_works(3)
    else:
        start(count=4, number=3, enable_reconfigure=True)
    reconfigure(4, [0, 1, 4, 2])
    require_works(4, [0, 1, 4, 2].index(NUMBER))
    tell(size=dist.get_world_size())


def two_jobs_become_one():
    """Each job has a store of its own."""
    job, number = divmod(NUMBER, 2)
    if number == 0:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        board.set(f"port {job}", str(store.port))
    else:
        store = dist.TCPStore("127.0.0.1", int(board.get(f"port {job}")), is_master=False)
    start(store, number, 2)
    require_works(2, number)
    reconfigure(1, [2, 3, 0, 1])
    require_works(4, (NUMBER + 2) % 4)
    reconfigure(2, [NUMBER])
    require_works(1)
    board.add("done", 1)
    while board.add("done", 0) < COUNT:  # the stores are in ranks
        time.sleep(0.01)
    tell(size=dist.get_world_size())


def what_is_wrong_changes_nothing():
    start()
    require_works(COUNT)
    alone = handles([NUMBER])
    own, backend = alone[0], dist.group.WORLD._get_backend(torch.device("cpu"))
    wrong = ([], ["gloo:1"], [own, own], handles([(NUMBER + 1) % COUNT]))
    told = [error_of(lambda: dist._reconfigure(uuid=1, handles=each)) for each in wrong]
    told.append(error_of(lambda: reconfigure(1, range(COUNT), seconds=1)) if NUMBER == 1 else "")
    board.add("timed out", 1)
    while board.add("timed out", 0) < COUNT:
        time.sleep(0.01)
    require_works(COUNT)
    reconfigure(7, range(COUNT))
    require_works(COUNT)
    told.append(error_of(lambda: reconfigure(7, range(COUNT), seconds=2)))
    require_works(COUNT)
    assert own == dist._get_reconfigure_handle() and backend.size() == COUNT
    tell(told=told)


globals()[sys.argv[1]]()
dist.destroy_process_group()
