# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed's ZeRO on CPUs over ccom: dist_backend, which DeepSpeed hands to torch as it is.

    torchrun --nproc-per-node=2 examples/recipes/deepspeed_digits.py --stage 2        1, 2 or 3
"""
import argparse
import os

os.environ.setdefault("DS_ACCELERATOR", "cpu")  # on a machine that has GPUs, too

import deepspeed  # noqa: E402
import digits  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402
from torch.utils.data import DataLoader, DistributedSampler  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", type=int, default=2)
    stage = parser.parse_args().stage
    # DeepSpeed's own allreduce for inference, in shared memory: not needed here, and compiled at the first start.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(dist_backend="ccom")  # before initialize(), which would take gloo

    torch.manual_seed(1)
    model = digits.network()
    engine, *_ = deepspeed.initialize(
        model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9),
        config={"train_micro_batch_size_per_gpu": 24, "zero_allow_untested_optimizer": True,
                "zero_optimization": {"stage": stage}})
    training = digits.datasets()[0]
    sampler = DistributedSampler(training, seed=1, drop_last=True)
    for epoch in range(6):
        sampler.set_epoch(epoch)
        for pictures, wanted in DataLoader(training, batch_size=24, sampler=sampler, drop_last=True):
            loss = cross_entropy(engine(pictures), wanted)
            engine.backward(loss)
            engine.step()
        digits.die_if_told(dist.get_rank(), epoch)
    digits.finish("DeepSpeed", digits.accuracy(engine), stage=stage)
    engine.destroy()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
