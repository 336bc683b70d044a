# SPDX-License-Identifier: Apache-2.0
"""vLLM's CPU platform with ccom between the ranks. It is found by its entry point; nothing has to be imported."""


def platform():
    """The name of the platform class, or None where vLLM was not built for CPUs: then this plug-in does nothing."""
    from vllm import platforms

    return "ccom_vllm.platform.CcomPlatform" if platforms.cpu_platform_plugin() else None
