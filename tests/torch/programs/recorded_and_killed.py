# SPDX-License-Identifier: Apache-2.0
"""Two ranks of which the last leaves out a call; when the first waits in it, SIGKILL ends both."""
import os
import signal

import torch
import torch.distributed as dist
from harness.processes import when_asleep

dist.init_process_group("ccom")
store = dist.distributed_c10d._get_default_store()
store.set(f"pid of {dist.get_rank()}", str(os.getpid()))
for size in range(1, 6):
    dist.all_reduce(torch.ones(size, 2))


def kill_both():
    os.kill(int(store.get("pid of 1")), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


if dist.get_rank() == 0:
    when_asleep(kill_both)
    dist.all_reduce(torch.ones(3))
else:
    store.wait(["the end"])
