# SPDX-License-Identifier: Apache-2.0
"""Says to jaxlib where its MPI is, which it wants to know when it is loaded: so this is imported before jax.

Nothing comes of it unless use_in_jax_distributed() is called, or the program asks for "mpi" itself.
"""

import ctypes
import os
import sys

import ccom

_VARIABLE = "MPITRAMPOLINE_LIB"
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_mpi.so")
ccom.load_library()
library = (
    ctypes.CDLL(path) if os.path.exists(path) else None
)  # here, since jaxlib would bind its symbols in a way of its own
if library is not None and "jaxlib" not in sys.modules:
    os.environ.setdefault(_VARIABLE, path)
# Whether jaxlib has heard of it: what a program sets later it does not see.
is_known = library is not None and os.path.realpath(os.environ.get(_VARIABLE, "")) == os.path.realpath(path)
