# SPDX-License-Identifier: Apache-2.0
"""Ways to end a process that has a group: ending.py CASE. All must end with code 0, an exception with 1."""
import gc
import os
import sys
import threading

import torch
import torch.distributed as dist

kept = []


def nothing():
    """Neither destroyed nor used."""


def used():
    dist.all_reduce(torch.ones(10))


def pending():
    """Operations that all ranks have issued and none has waited for."""
    kept.extend(dist.all_reduce(torch.ones(1 << 20), async_op=True) for _ in range(20))


def pending_and_dropped():
    for _ in range(20):
        dist.all_reduce(torch.ones(1 << 20), async_op=True)
    gc.collect()


def pending_and_destroyed():
    pending()
    dist.destroy_process_group()


def pending_with_callbacks():
    """Python code is still to run when the interpreter begins to end."""
    for _ in range(20):
        future = dist.all_reduce(torch.ones(1 << 20), async_op=True).get_future()
        kept.append(future.then(lambda each: each.value()[0].sum()))


def never_answered():
    """An operation that the other rank will never join."""
    if dist.get_rank() == 0:
        kept.append(dist.all_reduce(torch.ones(10), async_op=True))


def receive_never_answered():
    if dist.get_rank() == 0:
        kept.append(dist.irecv(torch.ones(10), 1))


def destroyed_while_a_thread_waits():
    dist.all_reduce(torch.ones(10))
    if dist.get_rank() == 0:
        work = dist.irecv(torch.ones(10), 1)

        def wait():
            try:
                work.wait()
            except RuntimeError:
                pass

        threading.Thread(target=wait, daemon=True).start()
    dist.destroy_process_group()


def an_exception():
    pending()
    sys.excepthook = lambda *_: None
    if dist.get_rank() == 0:
        raise RuntimeError("on purpose")
    kept[-1].wait()


def a_model():
    """Objects of torch that hold the group beyond its end."""
    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(torch.nn.Linear(300, 300))
    model(torch.ones(2, 300)).sum().backward()
    kept.append(model)
    dist.destroy_process_group()


def twice():
    used()
    dist.destroy_process_group()
    dist.init_process_group("ccom")
    used()


def a_cycle_of_references():
    work = dist.all_reduce(torch.ones(1 << 20), async_op=True)
    ring = [work]
    ring.append(ring)


def without_atexit():
    used()
    sys.stdout.flush()
    os._exit(0)


def main():
    dist.init_process_group("ccom")
    globals()[sys.argv[1]]()


if __name__ == "__main__":
    main()
