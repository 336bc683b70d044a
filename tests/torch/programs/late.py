# SPDX-License-Identifier: Apache-2.0
"""Rank 3 loads its batches slowly; each rank prints what the report says, as text and as JSON.

    late.py [STEPS [SECONDS]]     8 steps, each later by 0.2 s: far longer than a rank may wait for a core
"""
import json
import sys
import time

import ccom.torch
import torch
import torch.distributed as dist


def load(late):
    time.sleep(0.02)
    if dist.get_rank() == 3:
        time.sleep(late)


def step(model):
    loss = model(torch.ones(4, 8)).sum()
    loss.backward()
    dist.all_reduce(loss.detach())  # line of the sum


def main():
    dist.init_process_group("ccom")
    model = torch.nn.Linear(8, 8)
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 8):
        load(float(sys.argv[2]) if len(sys.argv) > 2 else 0.2)
        step(model)
    text, told = ccom.torch.report(), ccom.torch.report(as_json=True)
    host = ccom.torch.report(as_json=True, of_host=True)
    print(json.dumps({"rank": dist.get_rank(), "text": text, "report": told, "host": host}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
