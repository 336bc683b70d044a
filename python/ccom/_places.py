# SPDX-License-Identifier: Apache-2.0
"""Which line of the program is meant: for errors and tools that say where ranks are."""
import atexit
import os
import sys
import threading


def _shown(path):
    folder, name = os.path.split(path)
    return os.path.join(os.path.basename(folder), name) if name.startswith("__") else name


def place_of(frame, folders):
    """The innermost line outside of `folders`, as "train.py:214 (evaluate)"; "" if there is none."""
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith("<frozen") and not any(path.startswith(folder) for folder in folders):
            return f"{_shown(path)}:{frame.f_lineno} ({frame.f_code.co_name})"
        frame = frame.f_back
    return ""


def tell(extension, modules, is_wanted):
    """Has an extension say which lines call it, and where the main thread is. Lines of `modules` are not the program's."""
    if not is_wanted:
        return
    folders = [os.path.join(os.path.dirname(module.__file__), "") for module in modules]
    main = threading.main_thread().ident
    extension.take_call_sites(folders)
    extension.locate_by(lambda: place_of(sys._current_frames().get(main), folders))
    atexit.register(extension.locate_by, None)
