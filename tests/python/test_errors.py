# SPDX-License-Identifier: Apache-2.0
"""ccom's errors as exceptions: kinds, fields, and what is left of the communicator."""

import builtins
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import ccom
import numpy
import pytest
from launch import on_processes, on_threads, run

ONES = numpy.ones(4, "float32")


def raised_on_each(size, body, **settings):
    def run(world):
        with pytest.raises(ccom.Error) as caught:
            body(world)
        return caught.value

    return on_threads(size, run, **settings)


def test_mismatch():
    for error in raised_on_each(2, lambda world: world.all_reduce(ONES[: 2 + world.rank])):
        assert type(error) is ccom.MismatchError and error.code == 32
        assert "count" in str(error) or "2" in str(error)
        assert str(error).startswith("all_reduce: ") and error.key and f"[{error.key}]" in str(error)
        assert error.call == "all_reduce" and error.sequence == 1
        assert error.ranks == [] or set(error.ranks) <= {0, 1}


def test_mismatch_of_types():
    for error in raised_on_each(2, lambda world: world.all_reduce(ONES.astype(["float32", "float64"][world.rank]))):
        assert isinstance(error, ccom.MismatchError) and "float64" in str(error) and "float32" in str(error)


def test_lines_of_the_program():
    def body(world):
        if world.rank == 0:
            world.all_reduce(ONES)
        else:
            world.all_gather(ONES)

    for error in raised_on_each(2, body):
        assert "test_errors.py:" in str(error)


def test_timeout():
    def body(world):
        if world.rank == 1:
            return None
        world.set_timeout(0.3)
        with pytest.raises(TimeoutError) as caught:
            world.barrier()
        return caught.value

    error = on_threads(2, body)[0]
    assert isinstance(error, ccom.TimeoutError) and isinstance(error, builtins.TimeoutError) and error.ranks == [1]
    assert "timeoutMs" not in str(error)


def test_errors_are_final():
    def body(world):
        with pytest.raises(ccom.MismatchError) as first:
            world.all_reduce(ONES[: 1 + world.rank])
        assert isinstance(world.async_error(), ccom.MismatchError)
        with pytest.raises(ccom.MismatchError) as second:
            world.barrier()
        assert second.value.text == first.value.text or second.value.key == first.value.key

    on_threads(2, body)


def test_kinds():
    assert {kind.code for kind in ccom.Error.__subclasses__()} == {2, 3, 4, 5, 6, 8, 32, 33, 34, 35, 36, 37, 38, 39}
    assert issubclass(ccom.InvalidArgumentError, ValueError) and issubclass(ccom.OutOfMemoryError, MemoryError)
    error = ccom.RankLostError("gone", ranks=[3], host="h7", cure="look there", key="CCOM-E025")
    again = pickle.loads(pickle.dumps(error))
    assert (again.ranks, again.host, str(again)) == ([3], "h7", "gone (on h7). To do: look there [CCOM-E025]")


def test_settings_are_checked():
    with pytest.raises(ccom.ConfigError, match="rounding"):
        ccom.init_all(1, rounding="up")
    with pytest.raises(TypeError, match="name: needs a text"):
        ccom.init_all(1, name=3)


LOSES_A_RANK = """
    import os, signal, ccom, numpy
    world = ccom.init(timeout=20)
    world.barrier()
    if world.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        while True:
            world.all_reduce(numpy.ones(1000))
    except ccom.RankLostError as error:
        print("rank", world.rank, "lost", error.ranks, type(error).__name__, error.cure != "", flush=True)
        with world.shrink() as rest:
            print("left", rest.size, rest.parent_ranks(), rest.all_reduce(numpy.ones(1))[0], flush=True)
"""


def test_a_killed_rank_and_who_is_left():
    output = on_processes(3, LOSES_A_RANK, "--grace", "20", code=137)
    assert "rank 0 lost [1] RankLostError" in output and "rank 2 lost [1] RankLostError" in output
    assert output.count("left 2 [0, 2] 2.0") == 2
    assert "ccom: rank 1 was ended by signal 9" in output


def test_an_exception_in_a_with_block_tells_the_others():
    program = """
        import ccom, numpy
        with ccom.init(timeout=50) as world:
            if world.rank == 1:
                raise ValueError("mine")
            world.all_reduce(numpy.ones(3))
    """
    begin = time.monotonic()
    output = on_processes(2, program, code=1)
    assert "ValueError: mine" in output and "AbortedError" in output and time.monotonic() - begin < 30


@pytest.mark.parametrize(
    "waits", ["world.all_reduce(numpy.ones(3))", "world.all_reduce(numpy.ones(3), blocking=False).wait()"]
)
def test_ctrl_c(waits):
    program = f"""
        import os, signal, ccom, numpy
        from harness.processes import until, when_asleep
        world = ccom.init(timeout=50)
        world.barrier()
        if world.rank == 0:
            when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
            try:
                {waits}
            except KeyboardInterrupt:
                print("interrupted", flush=True)
                world.abort()
        else:
            until(world.async_error)
            try:
                world.barrier()
            except ccom.Error as error:
                print(type(error).__name__, flush=True)
    """
    begin = time.monotonic()
    output = on_processes(2, program)
    assert (
        "interrupted" in output
        and ("AbortedError" in output or "MismatchError" in output)
        and time.monotonic() - begin < 30
    )


def test_ctrl_c_while_ranks_meet(tmp_path):
    program = """
        import os, signal, sys, ccom
        from harness.processes import when_asleep
        when_asleep(lambda: os.kill(os.getpid(), signal.SIGINT))
        try:
            ccom.init("file://" + sys.argv[1], rank=int(sys.argv[2]), size=2, init_timeout=50)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    for rank in "01":
        begin = time.monotonic()
        output = run(1, ["-c", textwrap.dedent(program), tmp_path / rank, rank], timeout=40)
        assert "interrupted" in output and time.monotonic() - begin < 30


def test_abort_revoke_agree():
    all_know = threading.Barrier(3)

    def body(world):
        if world.rank == 0:
            threading.Timer(0.1, world.revoke).start()
        with pytest.raises(ccom.RevokedError):
            while True:
                world.all_reduce(ONES)
        assert world.agree(0b110 if world.rank == 0 else 0b011) == (0b010, [])
        all_know.wait(20)
        with world.shrink(exclude=[1]) if world.rank != 1 else ccom.init_all(1)[0] as rest:
            return rest.size

    assert on_threads(3, body) == [2, 1, 2]


def test_finalize():
    def body(world):
        world.finalize()
        with pytest.raises(ccom.InvalidUsageError):
            world.barrier()

    on_threads(2, body)


def test_signals_reach_python():
    """A handler that raises nothing leaves the wait alone."""
    program = """
        import os, signal, ccom
        from harness.processes import when_asleep
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
        world = ccom.init(timeout=50)
        calls, pids = [], world.all_gather_object(os.getpid())

        def tell(*_):
            calls.append(1)
            os.kill(pids[1], signal.SIGUSR2)

        signal.signal(signal.SIGUSR1, tell)
        if world.rank == 0:
            when_asleep(lambda: os.kill(os.getpid(), signal.SIGUSR1))
        else:
            signal.sigwait([signal.SIGUSR2])
        world.barrier()
        print(len(calls), flush=True)
    """
    assert sorted(on_processes(2, program).split()) == ["0", "1"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("module, needs, install", [("torch", "PyTorch", "torch"), ("jax", "JAX", "jax")])
def test_imports_say_what_they_need(module, needs, install):
    program = f"import sys; sys.modules['{install}'] = None; import ccom.{module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    said = done.stderr.splitlines()[-1]
    assert f"ccom.{module} needs {needs}, which is not installed here: pip install {install}" in said
