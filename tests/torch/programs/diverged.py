# SPDX-License-Identifier: Apache-2.0
"""Replicas of a model of which one diverges: what the next operation tells each rank (ccom.torch.witness)."""
import json
import os

import ccom.torch
import torch
import torch.distributed as dist

dist.init_process_group("ccom")
rank = dist.get_rank()
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.Linear(50, 3))
told = ""
for step in range(400):
    if step == 5 and rank == 1:
        with torch.no_grad():
            model[0].weight[7, 3] += 1e-3
    ccom.torch.witness(p.detach() for p in model.parameters())
    try:
        dist.all_reduce(torch.ones(3))
    except dist.DistBackendError as error:
        told = str(error)
        break
print(json.dumps({"rank": rank, "step": step, "told": told}), flush=True)
os._exit(0)  # the group has failed
