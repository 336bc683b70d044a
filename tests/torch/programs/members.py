# SPDX-License-Identifier: Apache-2.0
"""A default group that loses and gets processes: members.py CASE [BACKEND], a function below.

FOUNDERS of the processes start the group; the others come later. Each process that ends well prints a line of JSON.
"""
import os
import signal
import sys
import time
from datetime import timedelta

import ccom.torch
import living
import torch
import torch.distributed as dist
from living import STARTED_AS, error_of, shared_store, tell

FOUNDERS = int(os.environ["FOUNDERS"])
IS_NEW = STARTED_AS >= FOUNDERS
SHORT = timedelta(seconds=3)


def start(timeout=timedelta(seconds=60)):
    if IS_NEW:
        return
    backend = sys.argv[2] if len(sys.argv) > 2 else "ccom"
    dist.init_process_group(backend, rank=STARTED_AS, world_size=FOUNDERS, timeout=timeout)


def wait_for_new(count):
    end = time.monotonic() + 60
    while (here := ccom.torch.joining()) < count:
        assert time.monotonic() < end, f"{here} of {count} new processes have come"
        time.sleep(0.02)


def require_works(size):
    """Collectives of all kinds, messages, and groups of some ranks."""
    living.require_works(size)
    assert dist.get_process_group_ranks(None) == list(range(size))
    living.require_messages()
    part = dist.new_group([0, size - 1])
    if dist.get_rank() in (0, size - 1):
        tensor = torch.ones(5)
        dist.all_reduce(tensor, group=part)
        assert tensor[0] == len({0, size - 1})
    ccom.torch.monitored_barrier()


def lose(victim):
    if dist.get_rank() == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    while not error_of(lambda: dist.all_reduce(torch.ones(1000)), RuntimeError):
        pass
    ccom.torch.shrink_group()


def deaths_and_new_ones():
    """4 ranks, 3, 4 with one that was not there at the start, 3, 2, 4 with two of them."""
    start()
    if not IS_NEW:
        require_works(4)
        lose(1)
        require_works(3)
    if STARTED_AS <= FOUNDERS:
        if IS_NEW:
            ccom.torch.join_group()
        else:
            wait_for_new(1)
            ccom.torch.grow_group(1)
        require_works(4)
        dist.get_rank() != 0 or shared_store().set("the first new one is in", "")
        lose(0)
        require_works(3)
        lose(1)
        require_works(2)
        wait_for_new(2)
        rank = dist.get_rank()
        group = ccom.torch.grow_group()
        assert group is dist.group.WORLD and dist.get_rank() == rank
    else:
        shared_store().wait(["the first new one is in"])
        ccom.torch.join_group()
    require_works(4)
    tell(size=dist.get_world_size(), now=dist.get_rank())


def one_after_the_other():
    """A group of one gets a second and a third process; works under torch's DETAIL too."""
    start()
    size = FOUNDERS
    if IS_NEW:
        if STARTED_AS > FOUNDERS:
            shared_store().wait([f"{STARTED_AS} may come"])
        ccom.torch.join_group(shared_store())
        size = STARTED_AS + 1
        require_works(size)
    while size < int(os.environ["WORLD_SIZE"]):
        if dist.get_rank() == 0:
            shared_store().set(f"{size} may come", "")
        wait_for_new(1)
        ccom.torch.grow_group(1)
        size += 1
        require_works(size)
    tell(size=size, backend=dist.get_backend())


def who_died_while_it_waited():
    """The group cannot grow by a process that has died, stays as it is, and grows by the next one."""
    start(SHORT)
    if STARTED_AS == FOUNDERS:
        store = shared_store()
        store.add("ccom/join/tickets", 1)  # as join_group does first
        os.kill(os.getpid(), signal.SIGKILL)
    if STARTED_AS > FOUNDERS:
        shared_store().wait(["it has died"])
        ccom.torch.join_group()
        told = ""
    else:
        wait_for_new(1)
        told = error_of(ccom.torch.grow_group)
        dist.barrier()
        if dist.get_rank() == 0:
            shared_store().set("it has died", "")
        wait_for_new(1)
        ccom.torch.grow_group()
    require_works(FOUNDERS + 1)
    tell(told=told)


def wrong_calls():
    store = shared_store()
    told = [error_of(ccom.torch.grow_group, ValueError), error_of(ccom.torch.shrink_group, ValueError)]
    begin = time.monotonic()
    told.append(error_of(lambda: ccom.torch.join_group(store, timedelta(seconds=0.5)), TimeoutError))
    assert time.monotonic() - begin < 5
    store.add("ccom/join/taken", 1)
    start()
    dist.barrier()
    told += [error_of(lambda: ccom.torch.grow_group(2), ValueError), error_of(ccom.torch.join_group, ValueError)]
    require_works(FOUNDERS)
    tell(told=told)


globals()[sys.argv[1]]()
dist.destroy_process_group()
