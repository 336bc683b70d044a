# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel's communication hooks for gradients that cross between hosts in fewer bits.

    model.register_comm_hook(None, ccom.torch.bfloat16_hook)
    model.register_comm_hook(ccom.torch.ErrorFeedback(), ccom.torch.narrow_hook)     # error feedback for CCOM_WIRE
"""
import torch

from ccom.torch import _load, backend_of


class ErrorFeedback:
    """The state of narrow_hook: for every parameter, in float32, what this rank's encodings have lost of its gradients.

    group: as DistributedDataParallel's (None: the default group). ValueError if it is not ccom's, or if its sums do not
    cross hosts in 8 bits, because CCOM_WIRE is off. One for each model; not part of checkpoints: a new one begins with
    zeros, which loses what one step's encodings did. It takes as much memory as the gradients in float32.
    """

    def __init__(self, group=None):
        self.backend = backend_of(group)
        if _load().variable("CCOM_WIRE") == "off":
            raise ValueError("CCOM_WIRE is off: gradients cross hosts as they are, and no encoding loses anything. "
                             "Set CCOM_WIRE=fp8 or int8 on all ranks before the group is created, or use no hook")
        self._buckets = {}  # by index: its parameters and their residuals in one tensor
        self._parts = {}  # by parameter: its part of that tensor

    def residual_of(self, bucket):
        """Laid out as the bucket's buffer. After its first step DDP makes other buckets: parts go with parameters."""
        parameters = bucket.parameters()
        known = self._buckets.get(bucket.index())
        if known is not None and len(known[0]) == len(parameters) and all(a is b for a, b in zip(known[0], parameters)):
            return known[1]
        if bucket.is_last():
            self._buckets = {index: kept for index, kept in self._buckets.items() if index < bucket.index()}
        buffer = bucket.buffer()
        residual = torch.zeros(buffer.numel(), dtype=torch.float32)
        for parameter, gradient in zip(parameters, bucket.gradients()):
            begin = gradient.storage_offset() - buffer.storage_offset()
            part = residual.narrow(0, begin, gradient.numel())
            if id(parameter) in self._parts:
                part.copy_(self._parts[id(parameter)])
            self._parts[id(parameter)] = part
        self._buckets[bucket.index()] = (parameters, residual)
        return residual


def narrow_hook(state, bucket):
    """A DDP communication hook that averages a bucket of gradients, and gives to the next step what encodings lose.

    state: an ErrorFeedback. Returns a future of the averaged buffer. Gradients of other types than float32 are added to
    the residual in float32; what rounding the sum to their type loses is kept too.
    """
    buffer, residual = bucket.buffer(), state.residual_of(bucket)
    if buffer.dtype == torch.float32:
        buffer.add_(residual)
        work = state.backend.average_with_residual(buffer, residual)
        return work.get_future().then(lambda future: future.value()[0])
    exact = residual + buffer
    buffer.copy_(exact)
    rounding = exact.sub_(buffer).nan_to_num_(0, 0, 0)  # an infinite gradient leaves nothing
    work = state.backend.average_with_residual(buffer, residual)

    def keep(future):
        residual.add_(rounding)
        return future.value()[0]

    return work.get_future().then(keep)


def bfloat16_hook(group, bucket):
    """A DDP communication hook that averages gradients, which cross between hosts as bfloat16.

    group: the one that DistributedDataParallel has (None: the default group). Returns a future of the averaged buffer.
    Where ranks are on several hosts, float32 gradients are rounded to bfloat16 on their way into the memory where they
    are averaged, and so are the averages. On one host, where rounding takes longer than it saves, and for gradients of
    other types, averages are formed as without the hook. ValueError if the group is not ccom's.
    """
    work = backend_of(group).average_as_bfloat16(bucket.buffer())
    return work.get_future().then(lambda future: future.value()[0])
