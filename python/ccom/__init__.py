# SPDX-License-Identifier: Apache-2.0
"""ccom: collective communication for data-parallel training on host memory.

This package carries the C library; `ccom.torch` is PyTorch's backend on it.
"""
import ctypes
import os

__version__ = "0.1.0"

_library = None


def load_library():
    """Loads libccom, once.

    By itself, before anything that needs it: then it and its libraries (protobuf, gRPC) find one another first, whatever the
    libraries that are loaded along with torch call by the same names.
    """
    global _library
    if _library is None:
        folder = os.path.join(os.path.dirname(__file__), "lib")
        name = next(name for name in sorted(os.listdir(folder)) if name.startswith("libccom.so"))
        _library = ctypes.CDLL(os.path.join(folder, name), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    return _library


def version():
    """The C library's version, as (major, minor, patch)."""
    number = ctypes.c_int()
    load_library().ccomGetVersion(ctypes.byref(number))
    return number.value // 10000, number.value // 100 % 100, number.value % 100
