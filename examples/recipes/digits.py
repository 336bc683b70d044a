# SPDX-License-Identifier: Apache-2.0
"""What the recipes share: the digits of examples/data, a network for them, and what is checked in the end."""
import json
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.utils.data import TensorDataset

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from torch_common import read_digits  # noqa: E402  one folder up, as torch_ddp_digits
from torch_ddp_digits import network  # noqa: E402,F401


def datasets():
    """Training and test pictures with their digits."""
    pictures, digits, test_pictures, test_digits = read_digits()
    return TensorDataset(pictures, digits), TensorDataset(test_pictures, test_digits)


def accuracy(model):
    """Share of the test pictures that the model tells right."""
    pictures, wanted = datasets()[1].tensors
    with torch.no_grad():
        return (model(pictures).argmax(dim=1) == wanted).double().mean().item()


def die_if_told(rank, epoch):
    """For the tests: the rank of RECIPE_KILL=RANK:EPOCH kills itself there, as a machine that fails would."""
    if os.environ.get("RECIPE_KILL") == f"{rank}:{epoch}":
        os.kill(os.getpid(), signal.SIGKILL)


def carried():
    """Bytes by operation in all groups, the trainer's own too. ValueError if one of them is not ccom's."""
    import ccom.torch

    total = {}
    for group in dist.distributed_c10d._world.pg_map:
        for entry in ccom.torch.stats(group):
            total[entry["op"]] = total.get(entry["op"], 0) + entry["bytes"]
    return total


def finish(trainer, right, **more):
    """Ends the program if the gradients did not go through ccom or nothing was learned; rank 0 says what came out."""
    bytes_of = carried()
    if sum(bytes_of.values()) < 1_000_000:
        sys.exit(f"ccom carried only {bytes_of}")
    if right < 0.9:
        sys.exit(f"only {right:.4f} of the test pictures are told right")
    if dist.get_rank() == 0:
        print(json.dumps({"trainer": trainer, "backend": dist.get_backend(), "ranks": dist.get_world_size(),
                          "accuracy": round(right, 4), "bytes": bytes_of, **more}), flush=True)
