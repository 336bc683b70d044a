# SPDX-License-Identifier: Apache-2.0
"""The process group of torchft's managers (package torchft): `torchft.Manager(pg=ProcessGroupCcom(), ...)`.

torchft configures it anew, with other ranks, for each quorum. What ran in the former one is aborted then, on all of its
ranks.
"""
from datetime import timedelta

import torch
import torch.distributed as dist
from torchft.process_group import ProcessGroupWrapper

from ccom.torch import _load


class ProcessGroupCcom(ProcessGroupWrapper):
    """For CPU tensors. timeout: of calls, and of a start, which blocks until all replicas of the quorum have come."""

    def __init__(self, timeout=timedelta(seconds=60)):
        super().__init__(timeout)
        self._backend = None

    def getBackendName(self):
        return "torchft-ccom"

    def _create_pg(self, store, rank, world_size):
        name = f"quorum {self._quorum_id}" if self._quorum_id is not None else "torchft"
        backend = _load().ProcessGroupCcom(store, rank, world_size, timeout=self._timeout, name=name)
        group = dist.ProcessGroup(store, rank, world_size)
        group._set_default_backend(dist.ProcessGroup.BackendType.CUSTOM)
        group._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.CUSTOM, backend)
        self._backend = backend
        return group

    def abort(self, errored=True):
        """Fails what runs, on this rank and on its peers. Any thread; returns at once."""
        backend, self._backend = self._backend, None
        if backend is not None:
            backend.abort()
        self._pg = None

    def shutdown(self):
        """Waits for what runs, for the timeout at most."""
        backend, self._backend = self._backend, None
        if backend is not None:
            backend.shutdown()
        self._pg = None

    def set_timeout(self, timeout):
        super().set_timeout(timeout)
        if self._backend is not None:
            self._backend._set_default_timeout(timeout)
