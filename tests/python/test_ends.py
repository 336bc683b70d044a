# SPDX-License-Identifier: Apache-2.0
"""Communicators that end where an operation waits for the caller, and handles in forked children."""

import pytest
from launch import on_processes

BEGIN = """
    import gc, os, threading, weakref
    import ccom, numpy
    world = ccom.init(timeout=30, messages=True)
    ones = numpy.ones(4)
    ended = threading.Event()
    def is_closed_by_a_thread():
        assert ended.wait(20)
        [thread.join(20) for thread in threading.enumerate() if thread.name == "ccom-close"]
        return not [thread for thread in threading.enumerate() if thread.name == "ccom-close"]
"""

OPERATIONS = {
    "queued": "\n    handle = world.all_reduce(ones, blocking=False)",
    "message": """
    if world.rank == 0:
        handle = world.send(ones, 1, tag=5, blocking=False)
    else:
        handle = world.recv(numpy.empty(4), 0, tag=5, blocking=False)
    """,
}
IN_THE_CALLBACK = {
    "last_reference": """
    alive = weakref.ref(world)
    mine = [world, handle]
    handle.add_done_callback(lambda: (mine.clear(), gc.collect(), ended.set()))
    del world, handle
    assert is_closed_by_a_thread() and alive() is None
    """,
    "close": """
    handle.add_done_callback(lambda: (world.close(), ended.set()))
    assert is_closed_by_a_thread() and world.closed
    """,
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("end", IN_THE_CALLBACK)
def test_a_communicator_ends_in_a_callback(operation, end):
    """U6: the thread that runs the callback waited for itself."""
    program = BEGIN + OPERATIONS[operation] + IN_THE_CALLBACK[end] + "\n    print('over')"
    assert on_processes(2, program).count("over") == 2


@pytest.mark.parametrize("blocking", [True, False])
def test_a_communicator_is_closed_by_an_operator(blocking):
    program = f"""
    def add(a, b):
        world.close()
        ended.set()
        return a + b
    if world.rank == 0:
        operator = world.create_op(add, commutative=True)
    else:
        operator = world.create_op(lambda a, b: (ended.set(), a + b)[1], commutative=True)
    handle = world.all_reduce(ones, op=operator, blocking={blocking})
    result = handle if {blocking} else handle.wait()
    assert result.tolist() == [2] * 4, result
    assert world.rank or is_closed_by_a_thread() and world.closed
    print("over")
    """
    assert on_processes(2, BEGIN + program).count("over") == 2


USES = {
    "done": "handle.done()",
    "wait": "handle.wait()",
    "wait_with_a_timeout": "handle.wait(5)",
    "add_done_callback": "handle.add_done_callback(print)",
    "peer": "handle.peer",
    "call": "world.all_reduce(ones)",
    "queued_call": "world.all_reduce(ones, blocking=False)",
    "split": "world.split(0)",
    "abort": "world.abort()",
}


@pytest.mark.parametrize("use", USES)
def test_a_forked_child_is_told(use):
    """U7: the child waited for ever."""
    program = f"""
    handle = world.all_reduce(ones, blocking=False) if world.rank else None
    child = os.fork() if world.rank else None
    if child == 0:
        try:
            {USES[use]}
        except ccom.InvalidUsageError as error:
            os._exit(9 if "before fork() and belongs to the parent process" in str(error) else 1)
        os._exit(2)
    if world.rank:
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 9, status
        world.send(ones, 0, tag=1)
        assert handle.wait().tolist() == [2] * 4
    else:
        world.recv(ones.copy(), 1, tag=1)
        world.all_reduce(ones)
    print("over")
    """
    assert on_processes(2, BEGIN + program).count("over") == 2


def test_a_forked_child_forgets_the_communicator():
    program = """
    child = os.fork()
    if child == 0:
        world.close()
        assert world.closed
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert world.all_reduce(ones).tolist() == [2] * 4
    print("over")
    """
    assert on_processes(2, BEGIN + program).count("over") == 2


def test_a_sub_interpreter_is_refused():
    program = """
    import sys
    interpreters = __import__("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
    attempt = "try: import ccom\\nexcept ImportError as error: print('refused:', error)"
    for _ in range(2):
        interpreters.run_string(interpreters.create(), attempt)
        import ccom
    print(ccom.init().size)
    """
    output = on_processes(1, program)
    assert output.count("refused: ccom cannot be imported in a sub-interpreter") == 2
    assert output.rstrip().endswith("1")


def test_a_process_without_the_global_lock_is_refused():
    program = """
    import sys
    sys._is_gil_enabled = lambda: False
    import ccom
    try:
        ccom.init()
    except ImportError as error:
        print("refused:", error)
    """
    assert "refused: ccom needs Python's global lock" in on_processes(1, program)
