# SPDX-License-Identifier: Apache-2.0
"""Two ranks of which the last leaves out a call; both write what they remember to FOLDER/trace_<rank>."""
import sys

import torch
import torch.distributed as dist
from ccom.torch import flight_recorder

dist.init_process_group("ccom")
for size in range(1, 6):
    dist.all_reduce(torch.ones(size, 2))
left_out = dist.get_rank() == dist.get_world_size() - 1
work = None if left_out else dist.all_reduce(torch.ones(3), async_op=True)
flight_recorder.dump(f"{sys.argv[1]}/trace_")
if left_out:
    dist.all_reduce(torch.ones(3))
else:
    work.wait()
dist.destroy_process_group()
