# SPDX-License-Identifier: Apache-2.0
"""torchrun's elastic restarts over ccom: a rank dies, the others are told, torchrun starts all from the checkpoint.

    torchrun --nproc-per-node=2 --max-restarts=1 examples/recipes/elastic_digits.py --checkpoint /tmp/digits.pt

Nothing in it is ccom's but the name of the backend. To go on in the same processes instead: examples/torch_survive.py.
"""
import argparse
import os

import digits
import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


@record  # torchrun's closing report then names the error of the rank that failed first
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", required=True)
    path = parser.parse_args().checkpoint
    dist.init_process_group("ccom")
    restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])

    torch.manual_seed(1)
    model = DistributedDataParallel(digits.network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    begin = 0
    if os.path.exists(path):
        state = torch.load(path)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        begin = state["epochs"]
    training = digits.datasets()[0]
    sampler = DistributedSampler(training, seed=1, drop_last=True)
    for epoch in range(begin, 6):
        sampler.set_epoch(epoch)
        for pictures, wanted in DataLoader(training, batch_size=24, sampler=sampler):
            optimizer.zero_grad()
            cross_entropy(model(pictures), wanted).backward()
            optimizer.step()
        if dist.get_rank() == 0:  # written aside and renamed: a rank that dies meanwhile leaves the last one
            torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epochs": epoch + 1},
                       path + ".new")
            os.replace(path + ".new", path)
        dist.barrier()
        if restarts == 0:
            digits.die_if_told(dist.get_rank(), epoch)
    digits.finish("torchrun", digits.accuracy(model.module), restarts=restarts, begun_with_epoch=begin)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
