# SPDX-License-Identifier: Apache-2.0
"""Rank 1 ends after five calls while the others go on: leaving.py CASE. Each other rank prints one line of JSON with
what it was told and after how long: {"rank", "seconds", "error"}.
"""
import json
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


def main():
    dist.init_process_group("ccom")
    tensor = torch.ones(1000)
    for _ in range(5):
        dist.all_reduce(tensor)
    if dist.get_rank() == 1:
        globals()[sys.argv[1]]()
        return
    begin = time.monotonic()
    error = ""
    try:
        dist.all_reduce(tensor)
    except RuntimeError as caught:
        error = str(caught)
    print(json.dumps({"rank": dist.get_rank(), "seconds": time.monotonic() - begin, "error": error}), flush=True)


if __name__ == "__main__":
    main()
