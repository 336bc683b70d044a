# SPDX-License-Identifier: Apache-2.0
"""Saving and resuming sharded training: torch.distributed.checkpoint with fully_shard.

    torchrun --nproc-per-node=4 examples/torch_checkpoint.py --backend ccom
    torchrun --nproc-per-node=4 examples/torch_checkpoint.py --backend ccom --asynchronous

Trains, saves, trains on. Then a model that starts from other parameters loads what was saved and repeats the second
part: it must end with bitwise equal parameters. With --asynchronous training continues while a thread of each rank
writes.
"""
import os
import shutil
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch_common as common
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard


class Training:
    def __init__(self, options, seed):
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, 10))
        for layer in self.model[::2]:
            fully_shard(layer)
        fully_shard(self.model)
        if options.backend == "gloo":
            # Older versions of Gloo have no ReduceOp.AVG.
            for layer in self.model[::2]:
                layer.set_force_sum_reduction_for_comms(True)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options.rate)

    def run(self, options, data, epochs):
        losses = []
        for epoch in epochs:
            for rows in common.shares(len(data[1]), options.batch, epoch, options.seed):
                self.optimizer.zero_grad()
                loss = nn.functional.cross_entropy(self.model(data[0][rows]), data[1][rows])
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
        return [common.mean_over_ranks(loss) for loss in losses]

    def state(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer}

    def load(self, folder):
        state = self.state()
        dcp.load(state, checkpoint_id=folder)
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])

    def whole(self):
        return {name: parameter.full_tensor() for name, parameter in self.model.named_parameters()}


def common_folder(path):
    """A new directory, the same on all ranks, which share a file system."""
    found = [tempfile.mkdtemp(prefix="checkpoint-", dir=path or None) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(found)
    return found[0]


def main():
    parser = common.parser(__doc__, epochs=2, batch=48, rate=0.002)
    parser.add_argument("--folder", help="where to write; all ranks must see it [the system's for temporary files]")
    parser.add_argument("--asynchronous", action="store_true")
    options = parser.parse_args()
    dist.init_process_group(options.backend)
    data = common.read_digits()
    folder = common_folder(options.folder)

    first = Training(options, options.seed)
    losses = first.run(options, data, range(options.epochs))
    if options.asynchronous:
        # A separate group, so that the writers' messages do not interfere with the training's.
        writing = dcp.async_save(first.state(), checkpoint_id=folder, process_group=dist.new_group())
    else:
        dcp.save(first.state(), checkpoint_id=folder)
    second_part = first.run(options, data, range(options.epochs, 2 * options.epochs))
    if options.asynchronous:
        writing.result()
    dist.barrier()

    again = Training(options, options.seed + 1)
    again.load(folder)
    repeated = again.run(options, data, range(options.epochs, 2 * options.epochs))
    expected, found = first.whole(), again.whole()
    if repeated != second_part or not all(torch.equal(found[name], value) for name, value in expected.items()):
        sys.exit(f"rank {dist.get_rank()}: the training that was continued from the checkpoint went another way")

    common.require_same_bits(found.values())
    size = sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(folder)
    common.finish(options, f"checkpoint of {size / 1e6:.2f} MB, continued with the same bits, loss {losses[0]:.4f} to "
                  f"{repeated[-1]:.4f}", losses + repeated, found)


if __name__ == "__main__":
    main()
