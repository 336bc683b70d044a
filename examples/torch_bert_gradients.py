# SPDX-License-Identifier: Apache-2.0
"""The cost of communication in a training step: gradients of a model of BERT-base's size (110 million parameters).

    torchrun --nproc-per-node=4 examples/torch_bert_gradients.py --backend ccom
    torchrun --nproc-per-node=4 examples/torch_bert_gradients.py --layers 2 --hidden 128 --vocabulary 1000

Steps that add up gradients and steps that do not (DDP's no_sync) alternate in one run. The difference of their times is
the communication that backward did not hide. Sentences are random and short; a longer --sequence hides more.
"""
import contextlib
import statistics
import time

import torch
import torch.distributed as dist
import torch_common as common
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Bert(nn.Module):
    """The dimensions of BERT-base by default, with a masked-word head that shares the embedding's matrix."""

    def __init__(self, vocabulary, hidden, layers):
        super().__init__()
        self.words = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Embedding(512, hidden)
        self.norm = nn.LayerNorm(hidden)
        for embedding in (self.words, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)
        layer = nn.TransformerEncoderLayer(hidden, hidden // 64, 4 * hidden, dropout=0.0, activation="gelu",
                                           batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.transform = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.LayerNorm(hidden))

    def forward(self, words):
        places = torch.arange(words.shape[1])
        encoded = self.encoder(self.norm(self.words(words) + self.positions(places)))
        return nn.functional.linear(self.transform(encoded), self.words.weight)


def timed_step(model, optimizer, words, synchronised):
    """Seconds of forward and backward, and the loss. Without synchronisation the gradients are discarded."""
    dist.barrier()
    begin = time.perf_counter()
    optimizer.zero_grad()
    with contextlib.nullcontext() if synchronised else model.no_sync():
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten())
        loss.backward()
    seconds = time.perf_counter() - begin
    if synchronised:
        optimizer.step()
    return seconds, loss.item()


def slowest(seconds):
    """The median over the steps of the slowest rank's time."""
    times = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(times, op=dist.ReduceOp.MAX)
    return statistics.median(times.tolist())


def main():
    options = common.parser(__doc__, steps=5, batch=1, sequence=16, layers=12, hidden=768, vocabulary=30522,
                            rate=0.001, bucket_mib=25).parse_args()
    dist.init_process_group(options.backend)

    torch.manual_seed(options.seed)
    model = DistributedDataParallel(Bert(options.vocabulary, options.hidden, options.layers),
                                    bucket_cap_mb=options.bucket_mib, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.rate)
    generator = torch.Generator().manual_seed(options.seed + 1 + dist.get_rank())

    losses, full, local = [], [], []
    for step in range(1 + options.steps):
        words = torch.randint(options.vocabulary, (options.batch, options.sequence), generator=generator)
        with_others, loss = timed_step(model, optimizer, words, synchronised=True)
        alone, _ = timed_step(model, optimizer, words, synchronised=False)
        if step > 0:  # the first one builds DDP's buckets
            full.append(with_others)
            local.append(alone)
        losses.append(common.mean_over_ranks(loss))

    elements = sum(parameter.numel() for parameter in model.parameters())
    step_ms, local_ms = 1e3 * slowest(full), 1e3 * slowest(local)
    common.require_same_bits(model.parameters())
    common.finish(options, f"{elements / 1e6:.1f} M parameters, step {step_ms:.0f} ms, without communication "
                  f"{local_ms:.0f} ms, not hidden {step_ms - local_ms:.0f} ms, loss {losses[0]:.4f} to "
                  f"{losses[-1]:.4f}", losses, model.module.state_dict())


if __name__ == "__main__":
    main()
