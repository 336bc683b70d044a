# SPDX-License-Identifier: Apache-2.0
"""Replicas that torchft's manager drops when they die and takes in when they come (pip install torchft).

    python examples/torch_replicas.py
    python examples/torch_replicas.py --replicas 4 --victim 2 --dies-at 20

Each replica is one process. Before step --dies-at the --victim kills itself; the others go on without the step in which
they were interrupted, and a new replica, which is started then, gets the weights from one of them. All that are left
have equal weights in the end.
"""
import datetime
import multiprocessing
import os
import signal
import sys

import torch
import torch_common as common
from ccom.torch.torchft import ProcessGroupCcom
from torch import nn
from torch_ddp_digits import network
from torchft import Manager
from torchft.coordination import LighthouseServer
from torchft.ddp import DistributedDataParallel
from torchft.optim import OptimizerWrapper

TIMEOUT = datetime.timedelta(seconds=20)


def share(options, count, step, replica, replicas):
    """Rows of a global batch; the remainder of the division is left out."""
    generator = torch.Generator().manual_seed(options.seed * 1000 + step)
    rows = torch.randperm(count, generator=generator)[:options.batch]
    return rows[replica::replicas][:options.batch // replicas]


def work(number, dies_at, lighthouse, options, weights):
    torch.set_num_threads(1)
    pictures, digits, _, _ = common.read_digits()
    store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    torch.manual_seed(options.seed)
    model = network()

    def load(state):
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])

    manager = Manager(
        pg=ProcessGroupCcom(TIMEOUT), load_state_dict=load, use_async_quorum=False,
        min_replica_size=options.replicas - 1,
        state_dict=lambda: {"model": model.state_dict(), "optimizer": optimizer.state_dict()}, timeout=TIMEOUT,
        quorum_timeout=TIMEOUT, rank=0, world_size=1, store_addr="127.0.0.1", store_port=store.port,
        hostname="127.0.0.1",
        lighthouse_addr=lighthouse, replica_id=f"replica-{number}")
    parallel = DistributedDataParallel(manager, model)
    optimizer = OptimizerWrapper(manager, torch.optim.SGD(model.parameters(), lr=options.rate, momentum=0.9))
    most = 0
    while manager.current_step() < options.steps or most < options.replicas:
        if manager.current_step() == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if manager.current_step() > 10 * options.steps:
            sys.exit(f"replica {number}: no new replica has come")
        optimizer.zero_grad()
        replicas = most = manager.num_participants()
        rows = share(options, len(digits), manager.current_step(), manager.participating_rank() or 0, replicas)
        loss = nn.functional.cross_entropy(parallel(pictures[rows]), digits[rows])
        loss.backward()
        optimizer.step()
        if manager.current_step() % 20 == 0 and manager.participating_rank() == 0:
            print(f"step {manager.current_step():3}  {replicas} replicas  loss {loss.item():.4f}", flush=True)
    loss = nn.functional.cross_entropy(model(pictures), digits).item()
    weights.put((number, manager.current_step(), loss,
                 torch.cat([p.detach().flatten() for p in model.parameters()]).tolist()))
    manager.shutdown(wait=False)


def main():
    options = common.parser(__doc__, replicas=3, victim=1, dies_at=15, steps=60, batch=48, rate=0.02).parse_args()
    lighthouse = LighthouseServer(bind="127.0.0.1:0", min_replicas=options.replicas - 1, join_timeout_ms=200,
                                  quorum_tick_ms=20, heartbeat_timeout_ms=1000)
    context = multiprocessing.get_context("spawn")
    weights = context.Queue()

    def start(number, dies_at=None):
        address = f"http://127.0.0.1:{lighthouse.address().rsplit(':', 1)[1]}"
        process = context.Process(target=work, args=(number, dies_at, address, options, weights))
        process.start()
        return process

    replicas = [start(number, options.dies_at if number == options.victim else None)
                for number in range(options.replicas)]
    replicas[options.victim].join()
    replicas.append(start(options.replicas))
    found = [weights.get(timeout=300) for _ in range(options.replicas)]
    for process in replicas:
        process.join()
    lighthouse.shutdown()
    codes = [process.exitcode for process in replicas]
    expected = [-signal.SIGKILL if number == options.victim else 0 for number in range(options.replicas + 1)]
    if codes != expected:
        sys.exit(f"replicas ended with {codes} instead of {expected}")
    if any(other[1:] != found[0][1:] for other in found):
        sys.exit("replicas ended with different steps or weights")
    print(f"{options.replicas} replicas, torchft with ccom: {found[0][1]} steps, loss {found[0][2]:.4f}, equal weights",
          flush=True)


if __name__ == "__main__":
    main()
