# SPDX-License-Identifier: Apache-2.0
"""Replaces gloo by ccom: torch creates every gloo group by calling the name ProcessGroupGloo in one module."""
import sys
from datetime import timedelta

import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

_DEFAULT_TIMEOUT = timedelta(minutes=30)


class _StandsForGloo(type):
    """Calling the class creates a ccom group; isinstance() accepts both ccom's and gloo's own groups."""

    is_told = False

    def __call__(cls, store, rank, size, timeout=_DEFAULT_TIMEOUT, *_, enable_reconfigure=False):
        from ccom.torch import _beside_default, _load, _take_prepared

        # Once per job: launchers import torch too, but have no groups; the first group is that of all ranks.
        if rank == 0 and not _StandsForGloo.is_told:
            print("ccom.torch: process groups that request gloo use ccom", file=sys.stderr)
        _StandsForGloo.is_told = True
        prepared = _take_prepared(not dist.is_initialized())
        if prepared is not None:
            return prepared
        store = _beside_default(store)
        return _load().ProcessGroupCcom(store, rank, size, timeout=timeout, name="gloo, replaced", stands_for_gloo=True,
                                        waits_for_reconfigure=enable_reconfigure)

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.gloo) or type(instance).__name__ == "ProcessGroupCcom"

    def __getattr__(cls, name):
        return getattr(cls.gloo, name)


def replace():
    gloo = getattr(c10d, "ProcessGroupGloo", None)
    if gloo is None:
        raise RuntimeError("ccom.torch.replace_gloo: this torch has no gloo to replace")
    if isinstance(gloo, _StandsForGloo):
        return
    stand_in = _StandsForGloo("ProcessGroupGloo", (), {"gloo": gloo, "__module__": gloo.__module__})
    c10d.ProcessGroupGloo = stand_in
    if hasattr(dist, "ProcessGroupGloo"):
        dist.ProcessGroupGloo = stand_in
