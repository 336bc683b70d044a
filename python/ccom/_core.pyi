# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Generator, Iterable
from types import TracebackType
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

import numpy
from typing_extensions import Buffer, Self

class _DLPack(Protocol):
    def __dlpack__(self, *, stream: Any = ...) -> Any: ...

_Array: TypeAlias = Buffer | _DLPack
_Result: TypeAlias = numpy.ndarray[Any, Any]
_Op: TypeAlias = str | numpy.ufunc | Operator
_Out = TypeVar("_Out", bound=_Array)

class Operator:
    def destroy(self) -> None: ...

class Handle:
    def done(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> Any: ...
    def add_done_callback(self, function: Callable[[], object]) -> None: ...
    @property
    def peer(self) -> int: ...
    def __await__(self) -> Generator[Any, None, Any]: ...

class Registration:
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

class Window:
    def peer(self, rank: int) -> _Result: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

class Started:
    @property
    def is_none(self) -> bool: ...

class Communicator:
    def __init__(self, started: Started) -> None: ...
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def handle(self) -> int: ...
    @overload
    def all_reduce(
        self,
        array: _Array,
        op: _Op = "sum",
        *,
        out: _Out,
        residual: _Array | None = None,
        blocking: Literal[True] = True,
    ) -> _Out: ...
    @overload
    def all_reduce(
        self,
        array: _Array,
        op: _Op = "sum",
        *,
        out: None = None,
        inplace: Literal[True],
        residual: _Array | None = None,
        blocking: Literal[True] = True,
    ) -> Any: ...
    @overload
    def all_reduce(
        self,
        array: _Array,
        op: _Op = "sum",
        *,
        out: None = None,
        inplace: Literal[False] = False,
        residual: _Array | None = None,
        blocking: Literal[True] = True,
    ) -> _Result: ...
    @overload
    def all_reduce(
        self,
        array: _Array,
        op: _Op = "sum",
        *,
        out: _Array | None = None,
        inplace: bool = False,
        residual: _Array | None = None,
        blocking: Literal[False],
    ) -> Handle: ...
    @overload
    def reduce(
        self, array: _Array, op: _Op = "sum", root: int = 0, *, out: _Out, blocking: Literal[True] = True
    ) -> _Out | None: ...
    @overload
    def reduce(
        self,
        array: _Array,
        op: _Op = "sum",
        root: int = 0,
        *,
        out: None = None,
        inplace: Literal[True],
        blocking: Literal[True] = True,
    ) -> Any: ...
    @overload
    def reduce(
        self,
        array: _Array,
        op: _Op = "sum",
        root: int = 0,
        *,
        out: None = None,
        inplace: Literal[False] = False,
        blocking: Literal[True] = True,
    ) -> _Result | None: ...
    @overload
    def reduce(
        self,
        array: _Array,
        op: _Op = "sum",
        root: int = 0,
        *,
        out: _Array | None = None,
        inplace: bool = False,
        blocking: Literal[False],
    ) -> Handle: ...
    @overload
    def all_gather(self, array: _Array, *, out: _Out, blocking: Literal[True] = True) -> _Out: ...
    @overload
    def all_gather(self, array: _Array, *, out: None = None, blocking: Literal[True] = True) -> _Result: ...
    @overload
    def all_gather(self, array: _Array, *, out: _Array | None = None, blocking: Literal[False]) -> Handle: ...
    @overload
    def gather(self, array: _Array, root: int = 0, *, out: _Out, blocking: Literal[True] = True) -> _Out | None: ...
    @overload
    def gather(
        self, array: _Array, root: int = 0, *, out: None = None, blocking: Literal[True] = True
    ) -> _Result | None: ...
    @overload
    def gather(
        self, array: _Array, root: int = 0, *, out: _Array | None = None, blocking: Literal[False]
    ) -> Handle: ...
    @overload
    def reduce_scatter(self, array: _Array, op: _Op = "sum", *, out: _Out, blocking: Literal[True] = True) -> _Out: ...
    @overload
    def reduce_scatter(
        self, array: _Array, op: _Op = "sum", *, out: None = None, blocking: Literal[True] = True
    ) -> _Result: ...
    @overload
    def reduce_scatter(
        self, array: _Array, op: _Op = "sum", *, out: _Array | None = None, blocking: Literal[False]
    ) -> Handle: ...
    @overload
    def scatter(self, array: _Array | None, root: int = 0, *, out: _Out, blocking: Literal[True] = True) -> _Out: ...
    @overload
    def scatter(
        self, array: _Array | None, root: int = 0, *, out: None = None, blocking: Literal[True] = True
    ) -> _Result: ...
    @overload
    def scatter(
        self, array: _Array | None, root: int = 0, *, out: _Array | None = None, blocking: Literal[False]
    ) -> Handle: ...
    @overload
    def all_to_all(self, array: _Array, *, out: _Out, blocking: Literal[True] = True) -> _Out: ...
    @overload
    def all_to_all(
        self, array: _Array, *, out: None = None, inplace: Literal[True], blocking: Literal[True] = True
    ) -> Any: ...
    @overload
    def all_to_all(
        self, array: _Array, *, out: None = None, inplace: Literal[False] = False, blocking: Literal[True] = True
    ) -> _Result: ...
    @overload
    def all_to_all(
        self, array: _Array, *, out: _Array | None = None, inplace: bool = False, blocking: Literal[False]
    ) -> Handle: ...
    @overload
    def all_gather_v(
        self, array: _Array, counts: Iterable[int] | None = None, *, out: _Out, blocking: Literal[True] = True
    ) -> _Out: ...
    @overload
    def all_gather_v(
        self, array: _Array, counts: Iterable[int] | None = None, *, out: None = None, blocking: Literal[True] = True
    ) -> _Result: ...
    @overload
    def all_gather_v(
        self, array: _Array, counts: Iterable[int] | None = None, *, out: _Array | None = None, blocking: Literal[False]
    ) -> Handle: ...
    @overload
    def gather_v(
        self,
        array: _Array,
        counts: Iterable[int] | None = None,
        root: int = 0,
        *,
        out: _Out,
        blocking: Literal[True] = True,
    ) -> _Out | None: ...
    @overload
    def gather_v(
        self,
        array: _Array,
        counts: Iterable[int] | None = None,
        root: int = 0,
        *,
        out: None = None,
        blocking: Literal[True] = True,
    ) -> _Result | None: ...
    @overload
    def gather_v(
        self,
        array: _Array,
        counts: Iterable[int] | None = None,
        root: int = 0,
        *,
        out: _Array | None = None,
        blocking: Literal[False],
    ) -> Handle: ...
    @overload
    def reduce_scatter_v(
        self, array: _Array, counts: Iterable[int], op: _Op = "sum", *, out: _Out, blocking: Literal[True] = True
    ) -> _Out: ...
    @overload
    def reduce_scatter_v(
        self, array: _Array, counts: Iterable[int], op: _Op = "sum", *, out: None = None, blocking: Literal[True] = True
    ) -> _Result: ...
    @overload
    def reduce_scatter_v(
        self,
        array: _Array,
        counts: Iterable[int],
        op: _Op = "sum",
        *,
        out: _Array | None = None,
        blocking: Literal[False],
    ) -> Handle: ...
    @overload
    def scatter_v(
        self,
        array: _Array | None,
        counts: Iterable[int] | None = None,
        root: int = 0,
        *,
        out: _Out,
        blocking: Literal[True] = True,
    ) -> _Out: ...
    @overload
    def scatter_v(
        self,
        array: _Array | None,
        counts: Iterable[int] | None = None,
        root: int = 0,
        *,
        out: None = None,
        blocking: Literal[True] = True,
    ) -> _Result: ...
    @overload
    def scatter_v(
        self,
        array: _Array | None,
        counts: Iterable[int] | None = None,
        root: int = 0,
        *,
        out: _Array | None = None,
        blocking: Literal[False],
    ) -> Handle: ...
    @overload
    def all_to_all_v(
        self,
        array: _Array,
        send_counts: Iterable[int],
        recv_counts: Iterable[int] | None = None,
        *,
        out: _Out,
        blocking: Literal[True] = True,
    ) -> _Out: ...
    @overload
    def all_to_all_v(
        self,
        array: _Array,
        send_counts: Iterable[int],
        recv_counts: Iterable[int] | None = None,
        *,
        out: None = None,
        blocking: Literal[True] = True,
    ) -> _Result: ...
    @overload
    def all_to_all_v(
        self,
        array: _Array,
        send_counts: Iterable[int],
        recv_counts: Iterable[int] | None = None,
        *,
        out: _Array | None = None,
        blocking: Literal[False],
    ) -> Handle: ...
    @overload
    def broadcast(self, array: _Array | None, root: int = 0, *, out: _Out, blocking: Literal[True] = True) -> _Out: ...
    @overload
    def broadcast(self, array: _Out, root: int = 0, *, out: None = None, blocking: Literal[True] = True) -> _Out: ...
    @overload
    def broadcast(
        self, array: _Array | None, root: int = 0, *, out: _Array | None = None, blocking: Literal[False]
    ) -> Handle: ...
    @overload
    def barrier(self, *, blocking: Literal[True] = True) -> None: ...
    @overload
    def barrier(self, *, blocking: Literal[False]) -> Handle: ...
    @overload
    def send(self, array: _Array, peer: int, tag: int | None = None, *, blocking: Literal[True] = True) -> None: ...
    @overload
    def send(self, array: _Array, peer: int, tag: int | None = None, *, blocking: Literal[False]) -> Handle: ...
    @overload
    def recv(self, out: _Out, peer: int, tag: int | None = None, *, blocking: Literal[True] = True) -> _Out: ...
    @overload
    def recv(self, out: _Array, peer: int, tag: int | None = None, *, blocking: Literal[False]) -> Handle: ...
    def create_op(self, function: Callable[[_Result, _Result], Any], *, commutative: bool = False) -> Operator: ...
    def premultiplied_sum(self, scalar: complex, dtype: Any) -> Operator: ...
    def agree(self, flags: int = -1) -> tuple[int, list[int]]: ...
    def unique_id_to_grow(self) -> bytes: ...
    def abort(self) -> None: ...
    def revoke(self) -> None: ...
    def finalize(self) -> None: ...
    def close(self) -> None: ...
    def set_timeout(self, seconds: float) -> None: ...
    def info(self) -> dict[str, Any]: ...
    def async_error(self) -> Exception | None: ...
    def parent_ranks(self) -> list[int]: ...
    def witness(self, array: _Array) -> None: ...
    def register(self, array: _Array) -> Registration: ...
    def window(self, array: _Array) -> Window: ...
    def _split(self, color: int, key: int, settings: dict[str, Any]) -> Started: ...
    def _create_group(self, ranks: list[int], settings: dict[str, Any]) -> Started: ...
    def _shrink(self, exclude: list[int], abort: bool, settings: dict[str, Any]) -> Started: ...
    def _grow(self, size: int, unique_id: bytes | None, settings: dict[str, Any]) -> Started: ...
    def _report(self, json: bool, host: bool) -> str: ...
    def _explain(self, collective: str, count: int, dtype: Any, root: int) -> str: ...

def launch() -> tuple[int, int, int, int] | None: ...
def unique_id() -> bytes: ...
def unique_id_from_url(url: str, size: int, rank: int) -> bytes: ...
def start(unique_id: bytes, rank: int, size: int, settings: dict[str, Any]) -> Started: ...
def start_all(size: int, settings: dict[str, Any]) -> list[Started]: ...
def join(unique_id: bytes, rank: int, size: int, settings: dict[str, Any]) -> Started: ...
def watch_wakeups() -> None: ...
def take_call_sites(folders: list[str]) -> None: ...
def locate_by(function: Callable[[], str] | None) -> None: ...
def _allocate(bytes: int) -> _Result: ...
def _start_group() -> None: ...
def _end_group() -> None: ...
def _make_errors_by(factory: Callable[..., Exception]) -> None: ...
def _close_all() -> None: ...
def _explain_topology(topology: str, collective: str, count: int, dtype: Any, root: int) -> str: ...
def _variables() -> list[tuple[str, str, str, str, str]]: ...
