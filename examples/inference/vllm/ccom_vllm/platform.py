# SPDX-License-Identifier: Apache-2.0
"""What vLLM asks its platform: everything as on CPUs, but for the backend of torch.distributed and the communicator."""
from vllm.platforms.cpu import CpuPlatform


class CcomPlatform(CpuPlatform):
    dist_backend = "ccom"  # of the default group, and of each group's device_group

    @classmethod
    def get_device_communicator_cls(cls):
        return "ccom_vllm.communicator.CcomCommunicator"
