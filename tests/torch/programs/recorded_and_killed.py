# SPDX-License-Identifier: Apache-2.0
"""Two ranks of which the last leaves out a call; then SIGKILL ends both."""
import os
import signal
import time

import torch
import torch.distributed as dist

dist.init_process_group("ccom")
for size in range(1, 6):
    dist.all_reduce(torch.ones(size, 2))
if dist.get_rank() == 0:
    dist.all_reduce(torch.ones(3), async_op=True)
time.sleep(1)
os.kill(os.getpid(), signal.SIGKILL)
