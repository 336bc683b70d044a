# SPDX-License-Identifier: Apache-2.0
"""Rank 1 ends after five calls while the others go on: leaving.py CASE BACKEND [METHOD RANKS HOSTS]

With METHOD, spawn or fork, this process starts the ranks as torch.multiprocessing.spawn does. Rank 1 prints {"left"}
before it leaves; the others print what they were told, {"rank", "error", "told"}, and end by that exception; at its end
every rank prints {"rank", "ended"}. Times are of the clock that all processes share.
"""
import atexit
import json
import os
import signal
import sys
import time

import torch
import torch.distributed as dist


def exception():
    raise RuntimeError("on purpose")


def exit_0():
    sys.exit(0)


def destroyed():
    dist.destroy_process_group()


def tell(**entry):
    os.write(1, (json.dumps(entry) + "\n").encode())


def run(case, backend):
    atexit.register(lambda: tell(rank=int(os.environ["RANK"]), ended=time.monotonic()))  # runs after the backend's own
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what is to end this rank is the error, not its launcher
    dist.init_process_group(backend)
    tensor = torch.ones(1000)
    try:
        for call in range(1, 7):
            if dist.get_rank() == 1 and call == 6:
                break
            dist.all_reduce(tensor)  # where the others' error comes before the end of their own call 5, that one ends
    except RuntimeError as caught:
        tell(rank=dist.get_rank(), error=str(caught), told=time.monotonic())
        raise
    tell(left=time.monotonic())
    globals()[case]()


def started(rank, case, backend, ranks, hosts):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks),
                      **({"CCOM_HOSTID": f"host-{rank % 2}"} if hosts > 1 else {}))
    run(case, backend)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        run(*sys.argv[1:])
    else:
        case, backend, method, ranks, hosts = sys.argv[1:]
        torch.multiprocessing.start_processes(started, (case, backend, int(ranks), int(hosts)), int(ranks),
                                              start_method=method)
