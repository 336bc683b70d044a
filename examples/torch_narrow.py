# SPDX-License-Identifier: Apache-2.0
"""Gradients that cross hosts in 8 bits, with error feedback: handwritten digits with DistributedDataParallel.

    CCOM_WIRE=fp8 torchrun --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=HOST:29400 examples/torch_narrow.py --feedback

On each of two hosts; on one machine twice, with CCOM_HOSTID=a and CCOM_HOSTID=b. The training is that of
torch_ddp_digits.py.
`scripts/draw-narrow-training` compares what it learns with float32's.
"""
import torch
import torch.distributed as dist
import torch_common as common
from torch.nn.parallel import DistributedDataParallel
from torch_ddp_digits import network, train_epoch


def main():
    parser = common.parser(__doc__, epochs=20, batch=48, rate=0.02)
    parser.add_argument("--feedback", action="store_true",
                        help="add to each step what the encodings of the step before have lost")
    options = parser.parse_args()
    dist.init_process_group(options.backend)
    pictures, digits, test_pictures, test_digits = common.read_digits()

    torch.manual_seed(options.seed + dist.get_rank())
    model = DistributedDataParallel(network())
    if options.feedback:
        import ccom.torch

        model.register_comm_hook(ccom.torch.ErrorFeedback(), ccom.torch.narrow_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.rate, momentum=0.9)

    losses = []
    for epoch in range(options.epochs):
        shares = common.shares(len(digits), options.batch, epoch, options.seed)
        losses.append(common.mean_over_ranks(train_epoch(model, optimizer, pictures, digits, shares)))

    right = common.accuracy(model.module, test_pictures, test_digits)
    common.require_same_bits(model.parameters())
    common.finish(options, f"loss {losses[0]:.4f} to {losses[-1]:.4f}, test accuracy {right:.4f}", losses,
                  model.module.state_dict())


if __name__ == "__main__":
    main()
