# SPDX-License-Identifier: Apache-2.0
"""ccom: collective communication for data-parallel training on host memory.

This package carries the C library and its programs, or finds the system's library; `ccom.torch` is PyTorch's backend on it, for which torch
must be installed.
"""
import ctypes
import os

__version__ = "0.9.0"

_library = None


def _library_file():
    """The library that is installed with this module, else the system's (Debian's python3-ccom has none of its own)."""
    folder = os.path.join(os.path.dirname(__file__), "lib")
    if not os.path.isdir(folder):
        return "libccom.so.0"
    return os.path.join(folder, next(name for name in sorted(os.listdir(folder)) if name.startswith("libccom.so")))


def load_library():
    """Loads libccom, once.

    By itself, before anything that needs it: then it and its libraries (protobuf, gRPC) find one another first, whatever the
    libraries that are loaded along with torch call by the same names.
    """
    global _library
    if _library is None:
        _library = ctypes.CDLL(_library_file(), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    return _library


def version():
    """The C library's version, as (major, minor, patch)."""
    number = ctypes.c_int()
    load_library().ccomGetVersion(ctypes.byref(number))
    return number.value // 10000, number.value // 100 % 100, number.value % 100
