# SPDX-License-Identifier: Apache-2.0
"""The communicator of one of vLLM's groups (tensor, pipeline, expert, data parallel): its device_group is ccom's.

Point-to-point calls, broadcast, gather and reduce_scatter are those of the base class, which calls torch.distributed.
"""
import ccom.torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import AllgatherOptions, AllreduceOptions
from vllm.distributed.device_communicators.base_device_communicator import DeviceCommunicatorBase


class CcomCommunicator(DeviceCommunicatorBase):
    def __init__(self, cpu_group, device=None, device_group=None, unique_name="", *rest, **more):
        super().__init__(cpu_group, device, device_group, unique_name, *rest, **more)
        self._backend = ccom.torch.backend_of(self.device_group)
        self._reducing, self._gathering = AllreduceOptions(), AllgatherOptions()
        self._reducing.asyncOp = self._gathering.asyncOp = False
        if self.use_all2all:
            from vllm.distributed.device_communicators.all2all import AgRsAll2AllManager

            self.all2all_manager = AgRsAll2AllManager(self.cpu_group)

    def all_reduce(self, input_):
        """The sum, in place as vLLM's own communicator for CPUs does it. This is the call of every decode step: it goes
        to ccom's backend without torch.distributed's layers in Python."""
        self._backend.allreduce([input_], self._reducing).wait()
        return input_

    def all_gather(self, input_, dim=-1):
        """The ranks' tensors side by side along `dim`."""
        dim %= input_.dim()
        shape = input_.shape
        every = input_.new_empty((self.world_size, *shape))
        self._backend._allgather_base(every, input_, self._gathering).wait()  # the input may have any strides
        if dim == 0:
            return every.view(-1, *shape[1:])
        return every.movedim(0, dim).reshape(*shape[:dim], -1, *shape[dim + 1:])

    def all_gatherv(self, input_, dim=0, sizes=None):
        """The same along dimension 0 for ranks with different numbers of rows; of a list, for each of its tensors."""
        if isinstance(input_, (list, tuple)):
            return [self.all_gatherv(tensor, dim, sizes) for tensor in input_]
        if dim != 0:
            raise NotImplementedError("all_gatherv only along dimension 0")
        if sizes is None:
            return self.all_gather(input_, 0)
        joined = input_.new_empty((sum(sizes), *input_.shape[1:]))
        dist.all_gather(list(joined.split(sizes)), input_.contiguous(), group=self.device_group)
        return joined

    def reduce_scatterv(self, input_, dim=-1, sizes=None):
        """The sum, of which each rank gets sizes[rank] rows along `dim`."""
        if sizes is None:
            return self.reduce_scatter(input_, dim)
        rows = input_.movedim(dim, 0).contiguous()
        mine = rows.new_empty((sizes[self.rank_in_group], *rows.shape[1:]))
        dist.reduce_scatter(mine, list(rows.split(sizes)), group=self.device_group)
        return mine.movedim(0, dim).contiguous()

    def dispatch_router_logits(self, hidden_states, router_logits, is_sequence_parallel=False, extra_tensors=None):
        return self.all2all_manager.dispatch_router_logits(
            hidden_states, router_logits, is_sequence_parallel, extra_tensors)

    def dispatch(self, hidden_states, topk_weights, topk_ids, is_sequence_parallel=False, extra_tensors=None):
        return self.all2all_manager.dispatch(
            hidden_states, topk_weights, topk_ids, is_sequence_parallel, extra_tensors=extra_tensors)

    def combine(self, hidden_states, is_sequence_parallel=False):
        return self.all2all_manager.combine(hidden_states, is_sequence_parallel)
