# SPDX-License-Identifier: Apache-2.0
"""Lightning over ccom: process_group_backend of the strategy.

    python examples/recipes/lightning_digits.py            Lightning starts the other rank itself; under torchrun, too
"""
import digits
import lightning
import torch
import torch.distributed as dist
from lightning.pytorch.strategies import DDPStrategy
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader


class Digits(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.network = digits.network()

    def training_step(self, batch, _):
        pictures, wanted = batch
        loss = cross_entropy(self.network(pictures), wanted)
        self.log("loss", loss, sync_dist=True)  # an average over the ranks
        return loss

    def on_train_epoch_end(self):
        digits.die_if_told(self.global_rank, self.current_epoch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.02, momentum=0.9)


def main():
    lightning.seed_everything(1, verbose=False)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=2, strategy=DDPStrategy(process_group_backend="ccom"), max_epochs=6,
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    model = Digits()
    trainer.fit(model, DataLoader(digits.datasets()[0], batch_size=24, shuffle=True))
    digits.finish("Lightning", digits.accuracy(model.network), loss=trainer.callback_metrics["loss"].item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
