# SPDX-License-Identifier: Apache-2.0
"""Halves of a group through c10d's own split, as accelerators' groups are split."""
import torch
import torch.distributed as dist

dist.init_process_group("ccom")
rank, ranks = dist.get_rank(), dist.get_world_size()
backend = dist.group.WORLD._get_backend(torch.device("cpu"))
assert backend.supports_splitting
mine = [other for other in range(ranks) if other % 2 == rank % 2]
store = dist.PrefixStore(f"split-{rank % 2}", dist.distributed_c10d._get_default_store())
options = backend.options
half = backend.split(store, mine, options) if hasattr(backend, "split") else None
if half is not None:
    x = torch.tensor([float(rank)])
    half.allreduce([x]).wait()
    assert x.item() == sum(mine), x
    assert half.size() == len(mine) and half.rank() == mine.index(rank)
    half.shutdown()
dist.barrier()
dist.destroy_process_group()
print("split" if half is not None else "this torch shows no split")
