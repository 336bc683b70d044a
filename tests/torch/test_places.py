# SPDX-License-Identifier: Apache-2.0
"""Which line of the program an error or a tool names: not those of torch, nor of the wrappers that decorators make."""
import inspect
import os
import sys
import warnings

import pytest
import torch
import typing_extensions

pytestmark = pytest.mark.ccom
INSTALLED = "/usr/lib/python3/dist-packages/trainer/comm/torch.py"
OF_TORCH = os.path.join(os.path.dirname(torch.__file__), "distributed", "any.py")


def function_of(path):
    names = {}
    exec(compile("def call(look):\n    return look()\n", path, "exec"), names)
    return names["call"]


@pytest.fixture(params=["the call's", "the main thread's"])
def look(request):
    import ccom.torch
    from ccom import _places

    backend, folders = ccom.torch._load(), _places.folders_of([torch, ccom])
    if request.param == "the main thread's":
        return lambda: _places.place_of(sys._getframe().f_back, folders)
    backend.take_call_sites(folders)
    return backend.call_site


def test_a_deprecated_function_of_torch_is_called_by_the_program(look):
    call = typing_extensions.deprecated("use another one")(function_of(OF_TORCH))
    with warnings.catch_warnings(action="ignore"):
        place, line = call(look), inspect.currentframe().f_lineno
    assert place == f"test_places.py:{line} (test_a_deprecated_function_of_torch_is_called_by_the_program)"


def test_a_line_of_an_installed_package_has_the_packages_name(look):
    assert function_of(INSTALLED)(look) == "trainer/comm/torch.py:2 (call)"
