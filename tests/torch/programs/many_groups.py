# SPDX-License-Identifier: Apache-2.0
"""Makes, uses and destroys process groups and says what they leave: many_groups.py NUMBER. Rank 0 prints JSON."""
import json
import os
import sys
import time

import torch
import torch.distributed as dist

# gRPC keeps threads for as long as the process lives, up to two for each processor; how many depends on how busy it
# was.
OF_GRPC = ("default-executo", "resolver-execut", "grpc_")


def thread_names():
    names = []
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/comm", encoding="utf-8") as file:
                names.append(file.read().strip())
        except OSError:  # it has just ended
            pass
    return names


def resources():
    with open("/proc/self/status", encoding="ascii") as file:
        status = dict(line.split(":", 1) for line in file)
    names = thread_names()
    own = [name for name in names if not name.startswith(OF_GRPC)]
    return {"descriptors": len(os.listdir("/proc/self/fd")), "threads": len(own), "of_grpc": len(names) - len(own),
            "memory_kib": int(status["VmRSS"].split()[0]), "mappings": len(open("/proc/self/maps", "rb").readlines())}


def live(number):
    """One group's life; every third one runs something asynchronously, every fourth ends without having been used."""
    group = dist.new_group()
    if number % 4 != 3:
        tensor = torch.ones(50_000)
        work = dist.all_reduce(tensor, group=group, async_op=number % 3 == 0)
        if work is not None:
            work.wait()
    dist.destroy_process_group(group)


def main():
    count = int(sys.argv[1])
    dist.init_process_group("ccom")
    for number in range(30):
        live(number)
    dist.barrier()
    time.sleep(2)
    before, begin = resources(), time.monotonic()
    for number in range(count):
        live(number)
    dist.barrier()
    seconds = time.monotonic() - begin
    after, end = resources(), time.monotonic() + 10
    while any(after[what] > before[what] for what in ("threads", "descriptors")) and time.monotonic() < end:
        time.sleep(0.05)  # what served a start-up ends a little later than the group
        after = resources()
    if dist.get_rank() == 0:
        print(json.dumps({"before": before, "after": after, "ms_per_group": 1e3 * seconds / count}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
