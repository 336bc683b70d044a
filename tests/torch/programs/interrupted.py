# SPDX-License-Identifier: Apache-2.0
"""Rank 0 waits for rank 1, which does not come, and gets a signal: interrupted.py CASE. Each rank prints one line of
JSON with what it was told: {"rank", "seconds", "error", "noticed"}, rank 0 how long after the signal. A handler that
raises nothing must not end the wait: rank 1 comes then.
"""
import json
import os
import signal
import socket
import sys
import time

import torch
import torch.distributed as dist
from harness.processes import until, when_asleep

tensor = torch.ones(1000)
model = None  # with DistributedDataParallel


def synchronous():
    dist.all_reduce(tensor)


def large():
    dist.all_reduce(torch.ones(4_000_000))


def waited_for():
    work = dist.all_reduce(tensor, async_op=True)
    try:
        work.wait()
    finally:
        until(work.is_completed)  # soon after: the thread that runs it asks now and then


def future():
    dist.all_reduce(tensor, async_op=True).get_future().wait()


def backward():
    """Where torch waits for futures of its own, in code that looks at no signals."""
    model(tensor).sum().backward()


def wakeup_of_the_application():
    dist.all_reduce(tensor)


def received():
    dist.recv(tensor, 1)


def several_received():
    for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, tensor, 1), dist.P2POp(dist.irecv, tensor, 1)]):
        work.wait()


def monitored():
    import ccom.torch

    ccom.torch.monitored_barrier()


def new_group():
    dist.new_group([0, 1])


def handled():
    dist.all_reduce(tensor)


def main():
    case = sys.argv[1]
    ends = socket.socketpair()
    if case == "wakeup_of_the_application":
        for end in ends:
            end.setblocking(False)
        signal.set_wakeup_fd(ends[0].fileno())
    dist.init_process_group("ccom")
    dist.all_reduce(tensor)
    if case == "backward":
        global model
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1000, 1))
    store = dist.distributed_c10d._get_default_store()
    sent = []
    error = ""
    noticed = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    def handle(*_):
        noticed.append(time.monotonic() - sent[0])
        store.set("interrupted", "")

    if dist.get_rank() == 0:
        # Python leaves it ignored if it was, as in background jobs.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if case == "handled":
            signal.signal(signal.SIGINT, handle)
        when_asleep(send)
        try:
            try:
                globals()[case]()
            except RuntimeError as caught:  # that torch's wait was ended; Python comes to the signal after it
                error = f"{type(caught).__name__}: {caught}"
        except KeyboardInterrupt as caught:
            error = f"{type(caught).__name__}: {caught}"
        if case == "wakeup_of_the_application":
            noticed = list(ends[1].recv(100))
        seconds = time.monotonic() - sent[0]
        store.set("interrupted", "")
    else:
        seconds = None
        store.wait(["interrupted"])
        try:
            if case == "handled":
                dist.all_reduce(tensor)
            else:
                dist.barrier()
        except RuntimeError as caught:
            error = str(caught)
    print(json.dumps({"rank": dist.get_rank(), "seconds": seconds, "error": error,
                      "noticed": noticed}), flush=True)


if __name__ == "__main__":
    main()
