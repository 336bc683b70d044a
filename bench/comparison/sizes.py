# SPDX-License-Identifier: Apache-2.0
"""Sizes in bytes on command lines."""


def size(text):
    """Bytes: "64K" is 65536."""
    for unit, factor in (("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)):
        if text.endswith(unit):
            return int(text[:-1]) * factor
    return int(text)
