# SPDX-License-Identifier: Apache-2.0
"""One rank of bench/torch_compare, started by torchrun. Rank 0 writes one line of JSON per row to --out."""
import argparse
import functools
import gc
import json
import os
import statistics
import sys
import time
import warnings

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from comparison.barrier import Barrier  # noqa: E402

from torch_comparison import decode, workloads  # noqa: E402

warnings.filterwarnings("ignore")  # deprecations of names that older versions of torch need


class Bench:
    def __init__(self, options):
        self.options = options
        dist.init_process_group("gloo")
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.groups = {"gloo": dist.group.WORLD, "ccom": dist.new_group(backend="ccom")}
        self.single, _ = dist.new_subgroups(1)
        self.barrier = Barrier(options.barrier, self.rank, self.ranks)

    def seconds(self, call, times):
        """Per call, of the slowest rank."""
        self.barrier.wait()
        begin = time.perf_counter()
        for _ in range(times):
            call()
        return self.barrier.maximum((time.perf_counter() - begin) / times)

    def interleaved(self, calls, budget, warm_up=1):
        """Medians of calls' seconds over the repeats; the calls take turns within each."""
        times = {}
        for name, call in calls.items():
            for _ in range(warm_up):
                call()
            times[name] = max(1, int(self.barrier.maximum(budget / max(self.seconds(call, 1), 1e-7))))
            times[name] = min(times[name], 5000)
        found = {name: [] for name in calls}
        for repeat in range(self.options.repeats):
            order = list(calls) if repeat % 2 == 0 else list(calls)[::-1]
            for name in order:
                found[name].append(self.seconds(calls[name], times[name]))
        return {name: statistics.median(values) for name, values in found.items()}

    def write(self, row):
        if self.rank == 0:
            with open(self.options.out, "a", encoding="utf-8") as file:
                file.write(json.dumps({"ranks": self.ranks, **row}) + "\n")

    def collective(self, name, nbytes, dtype):
        make = workloads.COLLECTIVES[name]
        calls = {}
        reference = torch.float32 if dtype == torch.bfloat16 and not self.options.gloo_bf16 else dtype
        # The same count: where gloo lacks the type it moves the elements as float32.
        gloo_bytes = nbytes * reference.itemsize // dtype.itemsize
        calls["gloo"] = make(self.groups["gloo"], self.ranks, gloo_bytes, reference)
        calls["ccom"] = make(self.groups["ccom"], self.ranks, nbytes, dtype)
        if self.options.mapped:
            import ccom.torch

            tensor = torch.zeros(1)
            ccom.torch.enable_mapped_tensors(min_bytes=4096)
            calls["mapped"] = make(self.groups["ccom"], self.ranks, nbytes, dtype)
            ccom.torch.enable_mapped_tensors(min_bytes=1 << 62)
            del tensor
        seconds = self.interleaved(calls, self.options.budget_ms / 1e3, warm_up=5)
        self.write({"what": name, "bytes": nbytes, "dtype": str(dtype).removeprefix("torch."), "seconds": seconds})

    def step(self, what, precision, calls):
        # DDP arranges its buckets anew in the first steps, ccom maps them.
        seconds = self.interleaved(calls, self.options.budget_ms / 1e3, warm_up=4)
        self.write({"what": what, "dtype": str(precision).removeprefix("torch."), "seconds": seconds})

    def ddp(self, model, precision):
        import ccom.torch

        ways = {"gloo": ("gloo", workloads.sum_as_bfloat16), "ccom": ("ccom", ccom.torch.bfloat16_hook)}
        if precision == torch.bfloat16:
            ways["ccom, torch's hook"] = ("ccom", workloads.sum_as_bfloat16)
        steps = {name: workloads.DdpStep(self.groups[group], model, precision, hook)
                 for name, (group, hook) in ways.items()}
        self.step(f"ddp {model}", precision, {**steps, "alone": steps["ccom"].alone})

    def fsdp(self, model, precision):
        groups = {**self.groups, "alone": self.single}
        steps = {name: workloads.FsdpStep(group, model, precision) for name, group in groups.items()}
        self.step(f"fsdp {model}", precision, steps)

    def decode(self, model, precision):
        calls = decode.sums(self.groups, self.options, self.rank, self.ranks, self.barrier)
        for batch in map(int, self.options.batches.split(",")):
            step = decode.DecodeStep(model, self.ranks, batch, precision)
            seconds = self.interleaved({name: functools.partial(step, call) for name, call in calls.items()},
                                       self.options.budget_ms / 1e3)
            self.write({"what": f"decode {model} x{batch}", "dtype": str(precision).removeprefix("torch."),
                        "seconds": seconds})

    def run(self):
        for name in self.options.collectives.split(",") if self.options.collectives else []:
            for dtype in self.options.dtypes.split(",") if name == "allreduce" else ["float32"]:
                for nbytes in map(int, self.options.sizes.split(",")):
                    if name == "allreduce" or nbytes <= self.options.largest_other:
                        self.collective(name, nbytes, getattr(torch, dtype))
                        gc.collect()
        for kind, models in (("ddp", self.options.ddp), ("fsdp", self.options.fsdp), ("decode", self.options.decode)):
            for model in models.split(",") if models else []:
                for precision in self.options.precisions.split(","):
                    getattr(self, kind)(model, getattr(torch, precision))
                    gc.collect()
        self.barrier.wait()
        dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    for name in ("barrier", "out", "collectives", "dtypes", "sizes", "ddp", "fsdp", "decode", "batches", "precisions"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--largest-other", type=int, required=True)
    parser.add_argument("--budget-ms", type=float, required=True)
    parser.add_argument("--mapped", action="store_true")
    parser.add_argument("--gloo-bf16", action="store_true")
    parser.add_argument("--deepspeed", action="store_true")
    parser.add_argument("--vllm", help="the library of peers/vllm_sum.cc")
    torch.set_num_threads(1)
    Bench(parser.parse_args()).run()


if __name__ == "__main__":
    main()
