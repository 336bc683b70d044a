# SPDX-License-Identifier: Apache-2.0
"""One rank of a job that runs checks one after another:

    run_checks.py --backend gloo --results FOLDER checks_reduce checks_move.check_broadcast

With --victim that rank kills itself first, and the others run the checks on what is left of the group.

A check is a function check_*(job) of the named modules, called by every rank at about the same time. All share one
process group; after a check that failed anywhere a new one is made, so that the following ones say something too. Ranks
agree on that through the store. Each rank writes FOLDER/<rank>.json: {"checks_reduce.check_all_reduce": [failure, ...]}
"""
import argparse
import datetime
import importlib
import json
import os
import signal
import sys
import time
import traceback

import torch
import torch.distributed as dist

MOST_FAILURES = 20  # of one check that are told
STORE_TIMEOUT = datetime.timedelta(seconds=90)


class Job:
    """What checks know, and where they tell what is wrong."""

    def __init__(self, backend, store):
        self.backend = backend
        self.is_ccom = backend == "ccom"
        self.library = "ccom" if self.is_ccom or "CCOM_TORCH_REPLACE_GLOO" in os.environ else backend
        self.one_host = "CCOM_HOSTID" not in os.environ
        self.store = store
        self.rank = int(os.environ["RANK"])
        self.ranks = int(os.environ["WORLD_SIZE"])
        self.failures = []
        self._groups = 0
        self._kept = []

    def start_group(self, timeout=20):
        """The default process group, on keys that nobody has used before."""
        self._groups += 1
        store = dist.PrefixStore(f"group-{self._groups}", self.store)
        dist.init_process_group(self.backend, store=store, rank=self.rank, world_size=self.ranks,
                                timeout=datetime.timedelta(seconds=timeout))

    def go_on_without(self, victim):
        import ccom.torch

        if self.rank == victim:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            while True:
                dist.all_reduce(torch.ones(10))
        except dist.DistBackendError:
            ccom.torch.shrink_group()
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        os.environ.update(RANK=str(self.rank), WORLD_SIZE=str(self.ranks))

    def end_group(self):
        if not self.is_ccom:
            self._kept.append(dist.group.WORLD)  # Gloo's destructor may hang: see leave.py
        dist.destroy_process_group()

    def meet(self, name):
        """All ranks have come here. Through the store, not through the backend."""
        self.store.set(f"meet/{name}/{self.rank}", "")
        self.store.wait([f"meet/{name}/{rank}" for rank in range(self.ranks)], STORE_TIMEOUT)

    def fail(self, text):
        self.failures.append(text)

    def expect(self, condition, what):
        if not condition:
            self.fail(what)

    def expect_equal(self, found, expected, what):
        """Bit for bit; NaN equals NaN."""
        if found.dtype != expected.dtype or found.shape != expected.shape:
            self.fail(f"{what}: {found.dtype} {tuple(found.shape)} instead of {expected.dtype} {tuple(expected.shape)}")
        elif not torch.equal(raw(found), raw(expected)):
            wrong = (raw(found) != raw(expected)).nonzero()
            first = wrong[0].item() // max(found.element_size(), 1)
            self.fail(f"{what}: {len(wrong)} bytes of {raw(found).numel()} differ, first in element {first}: "
                      f"{found.reshape(-1)[first].item()} instead of {expected.reshape(-1)[first].item()}")

    def expect_close(self, found, expected, what, ulps=2):
        kind = expected.dtype.to_real() if expected.is_complex() else expected.dtype
        exact = torch.complex128 if expected.is_complex() else torch.float64
        tolerance = ulps * torch.finfo(kind).eps
        try:
            torch.testing.assert_close(found.to(exact), expected.to(exact), rtol=tolerance, atol=tolerance * 1e-2)
        except AssertionError as error:
            self.fail(f"{what}: {' '.join(str(error).split())}")

    def expect_error(self, call, what, *words):
        """The call raises, and the text holds the words."""
        try:
            call()
        except Exception as error:
            text = str(error)
            for word in words:
                self.expect(word in text, f"{what}: the error does not say {word!r}: {text[:400]}")
            return text
        self.fail(f"{what}: no error")
        return ""


def raw(tensor):
    return tensor.detach().clone(memory_format=torch.contiguous_format).resolve_neg().reshape(-1).view(torch.uint8)


def run(job, name, check, number):
    """Runs one check. Whether it went well on all ranks."""
    job.failures = []
    begin = time.monotonic()
    try:
        if job.ranks >= getattr(sys.modules[name.partition(".")[0]], "FEWEST_RANKS", 1):
            check(job)
    except Exception:
        job.fail(traceback.format_exc())
    seconds = time.monotonic() - begin
    job.store.set(f"check/{number}/{job.rank}", "bad" if job.failures else "good")
    ends = [f"check/{number}/{rank}" for rank in range(job.ranks)]
    job.store.wait(ends, STORE_TIMEOUT)
    print(f"{name}: {seconds:.2f} s{', FAILED' if job.failures else ''}", flush=True)
    return all(job.store.get(end) == b"good" for end in ends)


def checks_of(names):
    for module_name, _, only in (name.partition(".") for name in names):
        module = importlib.import_module(module_name)
        for name, check in list(vars(module).items()):
            if name.startswith("check_") and callable(check) and only in ("", name):
                yield f"{module_name}.{name}", check


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", required=True)
    parser.add_argument("--results", required=True)
    parser.add_argument("--victim", type=int)
    parser.add_argument("checks", nargs="+", help="a module, or one check of it")
    options = parser.parse_args()

    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    job = Job(options.backend, store)
    job.start_group()
    if options.victim is not None:
        job.go_on_without(options.victim)
    results = {}
    for number, (name, check) in enumerate(checks_of(options.checks)):
        good = run(job, name, check, number)
        results[name] = job.failures[:MOST_FAILURES]
        with open(os.path.join(options.results, f"{job.rank}.json"), "w", encoding="utf-8") as file:
            json.dump(results, file)
        if not good:
            job.end_group()
            job.start_group()
    job.meet("end")
    job.end_group()
    if not job.is_ccom:
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
