# SPDX-License-Identifier: Apache-2.0
"""Ray Train over ccom: the backend of TorchConfig, which Ray hands to torch as it is.

    python examples/recipes/ray_digits.py        with --failures 1, workers are replaced if one dies
"""
import argparse
import os
import tempfile

import digits
import ray
import ray.train
import torch
import torch.distributed as dist
from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer, prepare_data_loader, prepare_model
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader


def train(options):
    """Runs in each worker; the default process group is there already."""
    torch.manual_seed(1)
    model = prepare_model(digits.network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    batches = prepare_data_loader(DataLoader(digits.datasets()[0], batch_size=24, shuffle=True))
    begin = 0
    if checkpoint := ray.train.get_checkpoint():  # of the workers before these
        with checkpoint.as_directory() as folder:
            state = torch.load(os.path.join(folder, "state.pt"))
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        begin = state["epochs"]
    for epoch in range(begin, 6):
        batches.sampler.set_epoch(epoch)
        for pictures, wanted in batches:
            optimizer.zero_grad()
            loss = cross_entropy(model(pictures), wanted)
            loss.backward()
            optimizer.step()
        with tempfile.TemporaryDirectory() as folder:
            if dist.get_rank() == 0:
                torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(),
                            "epochs": epoch + 1}, os.path.join(folder, "state.pt"))
            kept = Checkpoint.from_directory(folder) if dist.get_rank() == 0 else None
            ray.train.report({"loss": loss.item()}, checkpoint=kept)
        if begin == 0:
            ray.train.get_all_reported_checkpoints()  # returns when Ray's controller, which polls, has seen them
            digits.die_if_told(dist.get_rank(), epoch)
    digits.finish("Ray Train", digits.accuracy(model.module), begun_with_epoch=begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--failures", type=int, default=0)
    parser.add_argument("--storage", help="folder of the checkpoints [a temporary one]")
    options = parser.parse_args()
    # Workers are started in Ray's folders: they import digits.py by its place.
    ray.init(num_cpus=2, include_dashboard=False,
             runtime_env={"env_vars": {"PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}})
    with tempfile.TemporaryDirectory() as storage:
        trainer = TorchTrainer(
            train, train_loop_config={}, torch_config=TorchConfig(backend="ccom"),
            scaling_config=ScalingConfig(num_workers=2),
            run_config=RunConfig(storage_path=options.storage or storage,
                                 failure_config=FailureConfig(max_failures=options.failures)))
        trainer.fit()


if __name__ == "__main__":
    main()
