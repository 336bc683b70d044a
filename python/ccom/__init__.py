# SPDX-License-Identifier: Apache-2.0
"""ccom: collective communication for data-parallel training on host memory.

    import ccom, numpy
    with ccom.init() as world:                      # ccom-run -n 4 script.py
        total = world.all_reduce(numpy.ones(3))     # a new array; out=..., inplace=True, blocking=False

Arrays are numpy's, objects with DLPack (tensors on the CPU) or with the buffer protocol: contiguous, of ccom's 17 types
(bfloat16 and float8 by ml_dtypes or DLPack). Results are new arrays of numpy's unless `out` is given. Calls block,
without the GIL, until this rank's part is complete; with blocking=False they return a Handle. All ranks make the same
calls in the same order. Results are bitwise equal on all ranks and in every run. Errors are exceptions of ccom.Error;
wrong arguments are TypeError or ValueError, which have no effect. Ctrl-C in a blocking call ends it, and the
communicator. docs/doors/python.md

`ccom.torch` is PyTorch's backend. This package carries the C library and its programs, or finds the system's library.
"""

import ctypes
import importlib
import os
import typing

from ccom._errors import (
    AbortedError,
    ConfigError,
    Error,
    InternalError,
    InvalidArgumentError,
    InvalidUsageError,
    MismatchError,
    NotSupportedError,
    OperatorError,
    OutOfMemoryError,
    RankLostError,
    RevokedError,
    SystemCallError,
    TimeoutError,
    TransportError,
)

if typing.TYPE_CHECKING:
    from ccom._communicator import (
        ANY_RANK,
        Communicator,
        empty,
        empty_like,
        explain_topology,
        group,
        init,
        init_all,
        join,
        launch,
        unique_id,
        variables,
    )
    from ccom._core import Handle, Operator, Registration, Window

__version__ = "0.9.0"


def _is_in_sub_interpreter() -> bool:
    current, number = ctypes.pythonapi.PyInterpreterState_Get, ctypes.pythonapi.PyInterpreterState_GetID
    current.restype, number.argtypes, number.restype = ctypes.c_void_p, [ctypes.c_void_p], ctypes.c_int64
    return number(current()) != 0


if _is_in_sub_interpreter():
    raise ImportError("ccom cannot be imported in a sub-interpreter: its threads call Python in the main one")

_library: typing.Optional[ctypes.CDLL] = None


def _library_file() -> str:
    """The library that is installed with this module, else the system's (Debian's python3-ccom has none of its own)."""
    folder = os.path.join(os.path.dirname(__file__), "lib")
    if not os.path.isdir(folder):
        return "libccom.so.0"
    return os.path.join(folder, next(name for name in sorted(os.listdir(folder)) if name.startswith("libccom.so")))


def load_library() -> ctypes.CDLL:
    """Loads libccom, once.

    By itself, before anything that needs it: then it and its libraries (protobuf, gRPC) find one another first,
    whatever the libraries that are loaded along with torch call by the same names.
    """
    global _library
    if _library is None:
        _library = ctypes.CDLL(_library_file(), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    return _library


def version() -> tuple[int, int, int]:
    """The C library's version, as (major, minor, patch)."""
    number = ctypes.c_int()
    load_library().ccomGetVersion(ctypes.byref(number))
    return number.value // 10000, number.value // 100 % 100, number.value % 100


__all__ = [
    "ANY_RANK",
    "Communicator",
    "Handle",
    "Operator",
    "Registration",
    "Window",
    "empty",
    "empty_like",
    "explain_topology",
    "group",
    "init",
    "init_all",
    "join",
    "launch",
    "load_library",
    "unique_id",
    "variables",
    "version",
    "AbortedError",
    "ConfigError",
    "Error",
    "InternalError",
    "InvalidArgumentError",
    "InvalidUsageError",
    "MismatchError",
    "NotSupportedError",
    "OperatorError",
    "OutOfMemoryError",
    "RankLostError",
    "RevokedError",
    "SystemCallError",
    "TimeoutError",
    "TransportError",
]


# What needs the library is loaded when it is first used: importing torch imports this package too.
def _load_on_use(name: str) -> typing.Any:
    if name not in __all__:
        raise AttributeError(f"module 'ccom' has no attribute '{name}'")
    value = getattr(importlib.import_module("ccom._communicator"), name)
    globals()[name] = value
    return value


if not typing.TYPE_CHECKING:  # to type checkers an unknown name is an error
    __getattr__ = _load_on_use


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
