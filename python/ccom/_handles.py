# SPDX-License-Identifier: Apache-2.0
"""Handles in asyncio: the event loop learns of the end from ccom's thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ccom._core import Handle


async def awaited(handle: Handle) -> Any:
    """Waits in the running loop for the operation, without a thread of its own. As handle.wait()."""
    if not handle.done():
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def end() -> None:
            if not ended.done():  # else the wait was cancelled
                ended.set_result(None)

        def end_in_loop() -> None:
            try:
                loop.call_soon_threadsafe(end)
            except RuntimeError:  # the loop is closed
                pass

        handle.add_done_callback(end_in_loop)
        await ended
    return handle.wait(0)
