# SPDX-License-Identifier: Apache-2.0
"""What bench/torch_compare runs: one program in every rank."""
