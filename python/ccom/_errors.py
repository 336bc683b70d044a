# SPDX-License-Identifier: Apache-2.0
"""ccom's errors as exceptions."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable
from typing import Any


class Error(Exception):
    """An error of ccom. str() is the whole text, with what to do and the key, which docs/errors.md explains.

    text: what happened. cure: what to do, "" if unknown. key: "CCOM-E025". code: ccomResult_t's number. call: the
    operation ("all_reduce"), "" outside of one. ranks: those to blame (the first 16). host: of the first of them, "" if
    unknown. sequence: number of the collective call on this communicator. errno: 0 if no system call is involved.

    Errors of calls are final: every later call of the communicator raises the same, but InvalidArgumentError and
    InvalidUsageError, which have no effect, and errors of starts.
    """

    code = 0

    def __init__(
        self,
        text: str = "",
        *,
        call: str = "",
        ranks: Iterable[int] = (),
        host: str = "",
        cure: str = "",
        key: str = "",
        sequence: int = 0,
        errno: int = 0,
        code: int | None = None,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.call = call
        self.ranks = list(ranks)
        self.host = host
        self.cure = cure
        self.key = key
        self.sequence = sequence
        self.errno = errno
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        text = self.text
        if self.host and self.host not in text:
            text += f" (on {self.host})"
        if self.cure:
            text += f". To do: {self.cure}"
        return f"{text} [{self.key}]" if self.key else text

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.text, self.__dict__.copy())


def _rebuilt(kind: type[Error], text: str, fields: dict[str, Any]) -> Error:
    error = kind(text)
    error.__dict__.update(fields)
    return error


class SystemCallError(Error):
    """A system call failed; errno and the text say why."""

    code = 2


class InternalError(Error):
    """A bug in ccom."""

    code = 3


class InvalidArgumentError(Error, ValueError):
    """A value that no rank may pass. Nothing has happened."""

    code = 4


class InvalidUsageError(Error, RuntimeError):
    """A valid call, but not in this state. Nothing has happened."""

    code = 5


class RankLostError(Error):
    """A process has ended or cannot be reached: ranks and host name it. Communicator.shrink goes on without it."""

    code = 6


class TimeoutError(Error, builtins.TimeoutError):  # type: ignore[misc]  # errno: 0 is none
    """An operation has timed out; ranks names those that did not come."""

    code = 8


class MismatchError(Error):
    """Ranks have made different calls; the text has both."""

    code = 32


class AbortedError(Error):
    """abort() was called here or on another rank."""

    code = 33


class RevokedError(Error):
    """revoke() was called here or on another rank."""

    code = 34


class OutOfMemoryError(Error, MemoryError):
    """Out of memory, file descriptors or disk space."""

    code = 35


class ConfigError(Error):
    """A setting is wrong or differs between ranks."""

    code = 36


class TransportError(Error):
    """A transport failed, but not because of a dead rank."""

    code = 37


class NotSupportedError(Error):
    """Valid, but not supported by this build, machine or fabric."""

    code = 38


class OperatorError(Error):
    """A function given to create_op has failed; ranks and text name where and why."""

    code = 39


_CALLS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "alltoall": "all_to_all",
    "allgatherv": "all_gather_v",
    "alltoallv": "all_to_all_v",
    "reduce_scatterv": "reduce_scatter_v",
    "gatherv": "gather_v",
    "scatterv": "scatter_v",
}
KINDS: dict[int, type[Error]] = {kind.code: kind for kind in Error.__subclasses__()}
_SECONDS = {"initTimeoutMs": "init_timeout", "timeoutMs": "timeout", "hostId": "host_id", "maxMemory": "max_memory"}


def _in_python(text: str) -> str:
    for name, own in _SECONDS.items():
        text = re.sub(rf"\b{name}\b", own, text)
    return re.sub(r"\bccomComm(Grow|Shrink|Abort|Revoke|Agree|Split)\b", lambda name: name[1].lower(), text)


def error_of(
    code: int, text: str, call: str, ranks: list[int], host: str, cure: str, key: str, sequence: int, errno: int
) -> Error:
    """The exception for an error by its parts. ccom's texts begin with the C function's name, if with any."""
    call = _CALLS.get(call, call)
    text = re.sub(r"^ccom\w+: ", "", text)
    if call and not text.startswith(call + ":"):
        text = f"{call}: {text}"
    return KINDS.get(code, Error)(
        _in_python(text),
        call=call,
        ranks=ranks,
        host=host,
        cure=_in_python(cure),
        key=key,
        sequence=sequence,
        errno=errno,
        code=code,
    )
