# SPDX-License-Identifier: Apache-2.0
"""Which line of the program is meant: for errors and tools that say where ranks are."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import threading
import warnings
from collections.abc import Iterable
from types import FrameType, ModuleType
from typing import Any


def folders_of(modules: Iterable[ModuleType]) -> list[str]:
    """Whose lines are not the program's: these packages', and those of the files that decorators' wrappers are in."""
    wrappers = [contextlib, functools, warnings, sys.modules.get("typing_extensions")]
    return [*(os.path.join(os.path.dirname(str(module.__file__)), "") for module in modules),
            *(str(module.__file__) for module in wrappers if module is not None)]


def _shown(path: str) -> str:
    _, installed, below = path.rpartition("-packages/")  # site-packages, Debian's dist-packages
    if installed:
        return below
    folder, name = os.path.split(path)
    return os.path.join(os.path.basename(folder), name) if name.startswith("__") else name


def place_of(frame: FrameType | None, folders: list[str]) -> str:
    """The innermost line outside of `folders` (and files), as "train.py:214 (evaluate)"; "" if there is none."""
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith("<frozen") and not any(path.startswith(folder) for folder in folders):
            return f"{_shown(path)}:{frame.f_lineno} ({frame.f_code.co_name})"
        frame = frame.f_back
    return ""


def tell(extension: Any, modules: Iterable[ModuleType], is_wanted: bool) -> None:
    """Has an extension say which lines outside of `modules` call it, and where the main thread is."""
    if not is_wanted:
        return
    folders = folders_of(modules)
    main = threading.main_thread().ident or 0
    extension.take_call_sites(folders)
    extension.locate_by(lambda: place_of(sys._current_frames().get(main), folders))
    atexit.register(extension.locate_by, None)
