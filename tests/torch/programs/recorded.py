# SPDX-License-Identifier: Apache-2.0
"""What a newer torch has called, or calls itself: recorded.py [recorder | gather | abort]. Prints a line of JSON per
rank.
"""
import json
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist


def recorder(rank, ranks):
    """torch's flight recorder learns from ccom that calls are complete."""
    for number in range(12):
        work = dist.all_reduce(torch.ones(1000), async_op=number % 2 == 0)
        if work is not None:
            work.wait()
    end = time.monotonic() + 10
    while True:
        entries = json.loads(torch._C._distributed_c10d._dump_fr_trace_json(backend="ccom")).get("entries", [])
        mine = [entry for entry in entries if "all_reduce" in entry["profiling_name"]]
        completed = sum(entry["state"] == "completed" for entry in mine)
        if completed >= 12 or time.monotonic() > end:
            return {"issued": 12, "recorded": len(mine), "completed": completed}
        time.sleep(0.05)


def gather(rank, ranks):
    for shape in ((3,), (2, 5)):
        for root in range(ranks):
            output = torch.empty(ranks * shape[0], *shape[1:]) if rank == root else None
            dist.gather_single(torch.full(shape, float(rank)), output, dst=root)
            if rank == root:
                expected = torch.cat([torch.full(shape, float(other)) for other in range(ranks)])
                assert torch.equal(output, expected), output
    return {}


def abort(rank, ranks):
    """A hook is called before those who wait are told of the error; one that is taken away is not."""
    called = []
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    backend.register_abort_hook(1, lambda: called.append("kept"))
    backend.register_abort_hook(2, lambda: called.append("taken away"))
    backend.unregister_abort_hook(2)
    dist.all_reduce(torch.ones(3))
    before = list(called)
    try:
        dist.all_reduce(torch.ones(3 + rank), async_op=rank == 0).wait()
    except dist.DistBackendError:
        return {"before": before, "called": called}
    return {"before": before, "called": ["no error"]}


dist.init_process_group("ccom", timeout=timedelta(seconds=30))
case = {"gather": gather, "abort": abort}.get(sys.argv[1] if len(sys.argv) > 1 else "", recorder)
print(json.dumps({"rank": dist.get_rank(), **case(dist.get_rank(), dist.get_world_size())}), flush=True)
if case is not abort:
    dist.destroy_process_group()
