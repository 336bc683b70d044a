# SPDX-License-Identifier: Apache-2.0
"""A program that knows gloo only: two groups, a barrier."""
import torch.distributed as dist

dist.init_process_group("gloo")
dist.new_group([1])
dist.barrier()
dist.destroy_process_group()
