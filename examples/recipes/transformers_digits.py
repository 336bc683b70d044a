# SPDX-License-Identifier: Apache-2.0
"""Hugging Face's Trainer over ccom: the process group is made before TrainingArguments, as for Accelerate below it.

    torchrun --nproc-per-node=2 examples/recipes/transformers_digits.py
    CCOM_TORCH_REPLACE_GLOO=1 torchrun --nproc-per-node=2 examples/recipes/transformers_digits.py --unchanged
"""
import sys
import tempfile

import digits
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from transformers import Trainer, TrainerCallback, TrainingArguments


class Network(torch.nn.Module):
    """As the Trainer wants it: gets what a batch has by name, returns the loss."""

    def __init__(self):
        super().__init__()
        self.network = digits.network()

    def forward(self, pictures, labels):
        found = self.network(pictures)
        return {"loss": cross_entropy(found, labels), "logits": found}


class DieIfTold(TrainerCallback):
    def on_epoch_end(self, args, state, control, **_):
        digits.die_if_told(args.process_index, round(state.epoch) - 1)


def main():
    if "--unchanged" not in sys.argv:
        dist.init_process_group("ccom")  # the one line more
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, use_cpu=True, num_train_epochs=8, per_device_train_batch_size=24,
                                      learning_rate=3e-3, lr_scheduler_type="constant", seed=1, save_strategy="no",
                                      logging_strategy="no", report_to="none", disable_tqdm=True)
        train, _ = digits.datasets()
        items = [{"pictures": picture, "labels": wanted} for picture, wanted in train]
        trainer = Trainer(Network(), arguments, train_dataset=items, callbacks=[DieIfTold()])
        loss = trainer.train().training_loss
    digits.finish("Trainer", digits.accuracy(trainer.accelerator.unwrap_model(trainer.model).network), loss=loss)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
