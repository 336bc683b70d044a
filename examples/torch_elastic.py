# SPDX-License-Identifier: Apache-2.0
"""Training that goes on in the same processes after a rank was killed, with fewer ranks, and then with a new one.

    python examples/torch_elastic.py
    python examples/torch_elastic.py --sharding fsdp2 --victim 2 --dies-at 40 --joins-at 75

Trains once undisturbed. Then, in the same processes, again from the same start: before step --dies-at the --victim
kills itself, the others go on from memory without it, a new process is started in its place, and before step --joins-at
it is taken in. The global batches are the same, however many ranks share them, so both runs learn the same up to
rounding.

--sharding ddp: every rank has the whole state in memory, so the rank that is farthest hands it out. fsdp2: every rank
has a part of it, and a copy of its left neighbour's; the parts are laid out anew for the new number of ranks.

It starts its ranks itself: torchrun ends all ranks when one dies. The store is in the process that starts them.
"""
import datetime
import multiprocessing
import os
import signal
import sys
import time

import ccom.torch
import torch
import torch.distributed as dist
import torch_common as common
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch_ddp_digits import network
from torch_elastic_shards import Sharded

TIMEOUT = datetime.timedelta(seconds=60)


class Replicated:
    """The whole state on each rank, equal on all between two steps."""

    def __init__(self, options):
        torch.manual_seed(options.seed)
        self.network, self.losses = network(), []
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=options.rate or 0.02, momentum=0.9)
        self.is_new = False

    def build(self):
        """For the default group that there is now."""
        self.model = DistributedDataParallel(self.network)

    def keep(self):
        """After each step: nothing, the others have the same."""

    def recover(self):
        """Some have done the step in which others were interrupted, and new ranks have no state."""
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, -1 if self.is_new else len(self.losses))
        farthest = max(everyone)
        if min(everyone) != farthest:
            state = [(self.losses, self.network.state_dict(), self.optimizer.state_dict())]
            dist.broadcast_object_list(state, src=everyone.index(farthest))
            self.losses, parameters, optimizer = state[0]
            self.network.load_state_dict(parameters)
            self.optimizer.load_state_dict(optimizer)
        self.is_new = False
        self.build()

    def parameters(self):
        return dict(self.network.named_parameters())


def step(training, options, pictures, digits):
    done, per_epoch = len(training.losses), len(digits) // options.batch
    batches = list(common.shares(len(digits), options.batch, done // per_epoch, options.seed))
    rows = batches[done % per_epoch]
    training.optimizer.zero_grad()
    loss = nn.functional.cross_entropy(training.model(pictures[rows]), digits[rows])
    mean = common.mean_over_ranks(loss)
    loss.backward()
    training.optimizer.step()
    training.losses.append(mean)
    training.keep()


def take_in_a_new_rank():
    end = time.monotonic() + TIMEOUT.total_seconds()
    while ccom.torch.joining() == 0:
        if time.monotonic() > end:
            sys.exit(f"rank {dist.get_rank()}: no new rank has come")
        time.sleep(0.05)
    ccom.torch.grow_group(1)


def train(training, options, data, dies_at=None, survives=False, is_changed=False):
    """Until all steps are done. Any call may raise when a rank dies, those of a recovery too."""
    steps = options.epochs * (len(data[1]) // options.batch)
    has_lost = False
    while True:
        try:
            if has_lost:
                ccom.torch.shrink_group()
                has_lost, is_changed = False, True
            if is_changed:
                training.recover()
                is_changed = False
                if dist.get_rank() == 0:
                    print(f"{dist.get_world_size()} ranks go on with step {len(training.losses)}", flush=True)
            if len(training.losses) == steps:
                return
            if survives and len(training.losses) >= options.joins_at and dist.get_world_size() < options.ranks:
                take_in_a_new_rank()
                is_changed = True
                continue
            if len(training.losses) == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
            step(training, options, *data)
        except dist.DistBackendError as error:
            if not survives:
                raise
            has_lost = True
            print(f"rank {dist.get_rank()}: {error}", flush=True)


def begin(options):
    training = (Sharded if options.sharding == "fsdp2" else Replicated)(options)
    training.build()
    training.keep()
    return training


def work(rank, port, options):
    """rank None: a new process, which joins the others."""
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    pictures, digits, test_pictures, test_digits = common.read_digits()
    expected = None
    if rank is None:
        ccom.torch.join_group(store, TIMEOUT)
        survived = begin_empty(options)
        train(survived, options, (pictures, digits), survives=True, is_changed=True)
    else:
        dist.init_process_group(options.backend, store=store, rank=rank, world_size=options.ranks, timeout=TIMEOUT)
        undisturbed = begin(options)
        train(undisturbed, options, (pictures, digits))
        expected = undisturbed.losses
        survived = begin(options)
        train(survived, options, (pictures, digits), options.dies_at if rank == options.victim else None, survives=True)
    finish(options, survived, expected, (test_pictures, test_digits), len(digits) // options.batch)


def begin_empty(options):
    training = (Sharded if options.sharding == "fsdp2" else Replicated)(options)
    training.is_new = True
    return training


def finish(options, survived, expected, test, per_epoch):
    common.require_same_bits([torch.tensor(survived.losses, dtype=torch.float64)])
    right = common.accuracy(survived.model, *test)
    whole = survived.parameters()
    common.require_same_bits(whole.values())
    closing = ""
    if expected is not None:
        last, wanted = (sum(losses[-per_epoch:]) / per_epoch for losses in (survived.losses, expected))
        closing = f"{options.sharding}: loss {last:.4f}, undisturbed {wanted:.4f}, test accuracy {right:.4f}"
        if not abs(last - wanted) < 0.01 * wanted:
            sys.exit(f"rank {dist.get_rank()}: {closing}")
    if options.save and dist.get_rank() == 0:
        torch.save({"losses": torch.tensor(survived.losses), "undisturbed": torch.tensor(expected)}, options.save)
    options.save = None
    common.finish(options, closing, survived.losses, whole)


def main():
    parser = common.parser(__doc__, ranks=4, victim=1, dies_at=40, joins_at=75, epochs=5, batch=48, rate=0.0)
    parser.add_argument("--sharding", choices=("ddp", "fsdp2"), default="ddp", help="[ddp]")
    options = parser.parse_args()
    steps = options.epochs * (1438 // options.batch)
    if not 0 <= options.dies_at <= options.joins_at < steps:
        sys.exit(f"needs 0 <= --dies-at <= --joins-at < {steps}, the number of steps")
    for ranks in (options.ranks, options.ranks - 1):
        if options.batch % ranks:
            sys.exit(f"--batch {options.batch} cannot be divided among {ranks} ranks")
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    start = multiprocessing.get_context("spawn").Process
    ranks = [start(target=work, args=(rank, store.port, options)) for rank in range(options.ranks)]
    for process in ranks:
        process.start()
    ranks[options.victim].join()
    new = start(target=work, args=(None, store.port, options))
    new.start()
    for process in (*ranks, new):
        process.join()
    expected = [-signal.SIGKILL if rank == options.victim else 0 for rank in range(options.ranks)] + [0]
    codes = [process.exitcode for process in (*ranks, new)]
    if codes != expected:
        sys.exit(f"ranks ended with {codes} instead of {expected}")


if __name__ == "__main__":
    main()
