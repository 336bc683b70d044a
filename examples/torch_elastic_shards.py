# SPDX-License-Identifier: Apache-2.0
"""FSDP2's parts of parameters and of the optimizer's state, which survive the death of a rank in others' memory.

After each step every rank keeps a copy of its own part and gets one of its left neighbour's. Ranks may be one step
apart when they are interrupted, so the two latest copies are kept. After a death the latest copies that together are
whole are taken: the dead rank's part is that of its right neighbour. Each rank then takes the rows that it has to hold
among the new number of ranks; no rank needs memory for the whole.
"""
import math
import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch_fsdp2 import DigitReader

STATES = ("exp_avg", "exp_avg_sq")  # AdamW's, beside the parameters


def rows_of(count, rank, ranks):
    """FSDP2 divides the first dimension like torch.chunk: begin and end of a rank's rows."""
    each = math.ceil(count / ranks)
    return min(rank * each, count), min((rank + 1) * each, count)


class Copy:
    """What a rank holds after a step, in one tensor: for each parameter its rows, then those of the optimizer's state.
    """

    def __init__(self, ranks, rank, losses, own, of_left):
        self.ranks, self.rank, self.losses, self.own, self.of_left = ranks, rank, losses, own, of_left

    def part(self, rank):
        """Of this rank, if it is here."""
        return self.own if rank == self.rank else self.of_left if rank == (self.rank - 1) % self.ranks else None


class Sharded:
    def __init__(self, options):
        self.options, self.losses, self.is_new = options, [], False
        self.copies = {}  # by (number of recoveries, number of steps)
        self.recoveries = 0

    def build(self):
        """For the default group that there is now."""
        torch.manual_seed(self.options.seed)
        self.model = DigitReader()
        self.shapes = [tuple(parameter.shape) for parameter in self.model.parameters()]
        for block in self.model.blocks:
            fully_shard(block)
        fully_shard(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.options.rate or 0.002, eps=1e-5)
        for parameter in self.model.parameters():
            self.optimizer.state[parameter] = {"step": torch.tensor(float(len(self.losses))),
                                               **{name: torch.zeros_like(parameter) for name in STATES}}

    def tensors(self):
        """This rank's rows of everything, in the order of a part."""
        for parameter in self.model.parameters():
            yield parameter.to_local()
            for name in STATES:
                yield self.optimizer.state[parameter][name].to_local()

    def places(self, rank, ranks):
        """Of a rank's part: for each tensor its place, the numbers of its first and last row, and elements per row."""
        begin = 0
        for shape in self.shapes:
            first, last = rows_of(shape[0], rank, ranks)
            width = math.prod(shape[1:])
            for _ in range(1 + len(STATES)):
                yield begin, first, last, width
                begin += (last - first) * width

    def size_of_part(self, rank, ranks):
        begin, first, last, width = list(self.places(rank, ranks))[-1]
        return begin + (last - first) * width

    @torch.no_grad()
    def keep(self):
        rank, ranks = dist.get_rank(), dist.get_world_size()
        own = torch.cat([tensor.detach().reshape(-1) for tensor in self.tensors()])
        of_left = torch.empty(self.size_of_part((rank - 1) % ranks, ranks))
        if ranks > 1:
            for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, own, (rank + 1) % ranks),
                                                dist.P2POp(dist.irecv, of_left, (rank - 1) % ranks)]):
                work.wait()
        self.copies[self.recoveries, len(self.losses)] = Copy(ranks, rank, list(self.losses), own, of_left)
        for old in sorted(self.copies)[:-2]:
            del self.copies[old]

    def latest_whole(self):
        """The key of the copies to take, and for each part the rank that has it; the same on all ranks."""
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, {key: (copy.ranks, copy.rank) for key, copy in self.copies.items()})
        for key in sorted(set().union(*everyone), reverse=True):
            has = [(holder, *copies[key]) for holder, copies in enumerate(everyone) if key in copies]
            owners = {}
            for holder, ranks, rank in has:
                owners.setdefault((rank - 1) % ranks, holder)
            owners.update({rank: holder for holder, _, rank in has})
            if len(owners) == has[0][1]:
                return key, owners
        sys.exit(f"rank {dist.get_rank()}: two neighbours have died at once, whose parts are lost")

    @torch.no_grad()
    def recover(self):
        key, owners = self.latest_whole()
        here, old_ranks = self.copies.get(key), len(owners)
        losses = [here.losses if here is not None else None]
        dist.broadcast_object_list(losses, src=owners[0])
        self.losses = losses[0]
        self.build()
        rank, ranks = dist.get_rank(), dist.get_world_size()
        mine = list(zip(self.tensors(), self.places(rank, ranks)))
        for old in range(old_ranks):
            part = here.part(old) if here is not None and owners[old] == rank else None
            part = part if part is not None else torch.empty(self.size_of_part(old, old_ranks))
            dist.broadcast(part, owners[old])
            places = zip(mine, self.places(old, old_ranks))
            for (tensor, (_, to_first, to_last, width)), (begin, first, last, _) in places:
                low, high = max(first, to_first), min(last, to_last)
                if low < high:
                    rows = part[begin + (low - first) * width:begin + (high - first) * width]
                    tensor[low - to_first:high - to_first].copy_(rows.view_as(tensor[low - to_first:high - to_first]))
        self.recoveries, self.is_new = key[0] + 1, False
        self.keep()

    def parameters(self):
        self.model.reshard()  # after an evaluation the outermost module still has unsharded parameters
        return {name: parameter.full_tensor() for name, parameter in self.model.named_parameters()}
