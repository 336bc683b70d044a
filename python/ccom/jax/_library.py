# SPDX-License-Identifier: Apache-2.0
"""The handlers' library, the numbers of communicators in compiled functions, and errors."""

import atexit
import contextlib
import ctypes
import os
import re
import sys
import weakref

import jax

import ccom
from ccom import _errors, _places

try:  # which computations of this thread wait for one another; without it an old error stays until jax.clear_caches()
    from jax._src.dispatch import runtime_tokens
except ImportError:
    runtime_tokens = None

HANDLERS = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "exchange",
    "barrier",
)


class _ErrorInfo(ctypes.Structure):  # ccomErrorInfo_t
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("magic", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("result", ctypes.c_int),
        ("errno", ctypes.c_int),
        ("sequence", ctypes.c_uint64),
        ("operation", ctypes.c_char * 32),
        ("n_peers", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("peers", ctypes.c_int * 16),
        ("host", ctypes.c_char * 256),
        ("text", ctypes.c_char * 1024),
        ("cure", ctypes.c_char * 256),
        ("key", ctypes.c_char * 16),
    ]


def _load():
    ccom.load_library()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_handlers.so")
    if not os.path.exists(path):
        raise ImportError(
            f"this installation of ccom has no handlers for JAX ({path}): it was built without jax; docs/doors/jax.md"
        )
    library = ctypes.CDLL(path)
    library.ccom_jax_add.argtypes = [ctypes.c_void_p]
    library.ccom_jax_add.restype = ctypes.c_int64
    library.ccom_jax_remove.argtypes = [ctypes.c_int64]
    library.ccom_jax_remove.restype = None
    library.ccom_jax_last_error.argtypes = [ctypes.POINTER(_ErrorInfo)]
    library.ccom_jax_last_error.restype = None
    for name in HANDLERS:
        jax.ffi.register_ffi_target(
            f"ccom_{name}", jax.ffi.pycapsule(getattr(library, f"ccom_jax_{name}")), platform="cpu"
        )
    return library


_library = _load()
_numbers = weakref.WeakKeyDictionary()
_folders = [os.path.join(os.path.dirname(module.__file__), "") for module in (ccom, jax)]
_has_places = os.environ.get("CCOM_CALL_SITES", "1") != "0"


def number_of(comm):
    """The number of a communicator, which compiled functions have instead of its address: in the order of first use.

    So a function that JAX keeps in a file for the next run of the program finds the same communicator there.
    """
    if not isinstance(comm, ccom.Communicator):
        raise TypeError(f"comm: needs a ccom.Communicator (ccom.init()), got {type(comm).__name__}")
    number = _numbers.get(comm)
    if comm.closed:
        raise ValueError(f"comm: communicator {'of this process' if number is None else number} is closed")
    if number is None:
        number = _library.ccom_jax_add(comm.handle)
        _numbers[comm] = number
        comm._before_close(weakref.finalize(comm, _library.ccom_jax_remove, number))
        forget_errors()
    return number


@atexit.register  # before ccom closes communicators, which began to be used earlier
def _remove_all():
    with contextlib.suppress(jax.errors.JaxRuntimeError):
        jax.effects_barrier()
    for number in list(_numbers.values()):
        _library.ccom_jax_remove(number)


def forget_errors() -> None:
    """Lets this thread go on after an error, which all its later calls of any communicator would have otherwise. Waits
    for its calls.

    JAX orders computations by a token of each, which after an error is that error. A function that is traced with a new
    communicator does this by itself. Errors of a communicator remain: its calls fail again.
    """
    try:
        jax.effects_barrier()
    except jax.errors.JaxRuntimeError:
        if runtime_tokens is not None:
            runtime_tokens.clear()


def place():
    """The line of the program that calls, or rather is traced: "train.py:220 (step)"."""
    return _places.place_of(sys._getframe(1), _folders) if _has_places else ""


def error_of(exception):
    info = _ErrorInfo()
    _library.ccom_jax_last_error(ctypes.byref(info))
    text = info.text.decode(errors="replace")
    if not text or re.sub(r"^ccom\w+: ", "", text)[:200] not in str(exception):
        return None
    fields = [field.decode(errors="replace") for field in (info.operation, info.host, info.cure, info.key)]
    ranks = list(info.peers[: min(info.n_peers, 16)])
    return _errors.error_of(
        info.result, text, fields[0], ranks, fields[1], fields[2], fields[3], info.sequence, info.errno
    )
