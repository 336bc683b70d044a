# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training that goes on in the same processes after a rank has died.

    python examples/torch_survive.py
    python examples/torch_survive.py --ranks 8 --victim 0 --dies-at 150 --batch 56

Trains once undisturbed. Then, in the same processes, again from the same start; in the middle --victim kills itself.
The others shrink the group, take over the state of the rank that is farthest, and go on from memory with the step that
was interrupted. Fewer ranks share the same global batches, so that both runs learn the same, up to rounding.

It starts its ranks itself: torchrun ends all ranks when one dies. The store is in the process that starts them.
"""
import datetime
import multiprocessing
import os
import signal
import sys

import ccom.torch
import torch
import torch.distributed as dist
import torch_common as common
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch_ddp_digits import network


class Training:
    """All that a rank holds in memory. Equal on all ranks between two steps."""

    def __init__(self, options):
        torch.manual_seed(options.seed)
        self.network = network()
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=options.rate, momentum=0.9)
        self.step = 0
        self.losses = []  # of all pictures, after each epoch

    def progress(self):
        return self.step, len(self.losses)

    def state(self):
        return self.step, self.losses, self.network.state_dict(), self.optimizer.state_dict()

    def load(self, state):
        self.step, self.losses, parameters, optimizer = state
        self.network.load_state_dict(parameters)
        self.optimizer.load_state_dict(optimizer)


def loss_of_all(model, pictures, digits):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    with torch.no_grad():
        total = nn.functional.cross_entropy(model(pictures[rank::ranks]), digits[rank::ranks], reduction="sum")
    return common.mean_over_ranks(total) * ranks / len(digits)


def train(training, options, pictures, digits, dies_at):
    model = DistributedDataParallel(training.network)
    per_epoch = len(digits) // options.batch
    while True:
        epoch = training.step // per_epoch
        if len(training.losses) < epoch:
            training.losses.append(loss_of_all(training.network, pictures, digits))
        if epoch == options.epochs:
            return
        batches = list(common.shares(len(digits), options.batch, epoch, options.seed))
        for rows in batches[training.step % per_epoch:]:
            if training.step == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
            training.optimizer.zero_grad()
            nn.functional.cross_entropy(model(pictures[rows]), digits[rows]).backward()
            training.optimizer.step()
            training.step += 1


def go_on_with_survivors(training):
    """A rank may have finished the step, or the epoch, in which others were interrupted: then they take its state."""
    ccom.torch.shrink_group()
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, training.progress())
    farthest = max(everyone)
    if min(everyone) != farthest:
        state = [training.state()]
        dist.broadcast_object_list(state, src=everyone.index(farthest))
        training.load(state[0])
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks go on with step {training.step}", flush=True)


def train_and_survive(training, options, pictures, digits, dies_at):
    has_failed = False
    while True:
        try:
            if has_failed:
                go_on_with_survivors(training)
            return train(training, options, pictures, digits, dies_at)
        except dist.DistBackendError as error:  # once more if another rank dies meanwhile
            has_failed = True
            print(f"rank {dist.get_rank()}: {error}", flush=True)


def work(rank, port, options):
    torch.set_num_threads(1)
    dist.init_process_group(options.backend, store=dist.TCPStore("127.0.0.1", port, is_master=False), rank=rank,
                            world_size=options.ranks, timeout=datetime.timedelta(seconds=60))
    pictures, digits, test_pictures, test_digits = common.read_digits()
    undisturbed = Training(options)
    train(undisturbed, options, pictures, digits, None)
    survived = Training(options)
    train_and_survive(survived, options, pictures, digits, options.dies_at if rank == options.victim else None)

    if dist.get_rank() == 0:
        for epoch, pair in enumerate(zip(survived.losses, undisturbed.losses), 1):
            print("epoch {:2}  loss {:.6f}, undisturbed {:.6f}".format(epoch, *pair), flush=True)
    last, expected = survived.losses[-1], undisturbed.losses[-1]
    if not abs(last - expected) < 0.01 * expected:
        sys.exit(f"rank {dist.get_rank()}: loss {last} instead of {expected}")
    right = common.accuracy(survived.network, test_pictures, test_digits)
    common.require_same_bits(survived.network.parameters())
    common.finish(options, f"loss {last:.4f}, undisturbed {expected:.4f}, test accuracy {right:.4f}", survived.losses,
                  survived.network.state_dict())


def main():
    options = common.parser(__doc__, ranks=4, victim=1, dies_at=200, epochs=10, batch=48, rate=0.02).parse_args()
    for ranks in (options.ranks, options.ranks - 1):
        if options.batch % ranks:
            sys.exit(f"--batch {options.batch} cannot be divided among {ranks} ranks")
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    start = multiprocessing.get_context("spawn").Process
    processes = [start(target=work, args=(rank, store.port, options)) for rank in range(options.ranks)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    expected = [-signal.SIGKILL if rank == options.victim else 0 for rank in range(options.ranks)]
    codes = [process.exitcode for process in processes]
    if codes != expected:
        sys.exit(f"ranks ended with {codes} instead of {expected}")


if __name__ == "__main__":
    main()
