# SPDX-License-Identifier: Apache-2.0
"""Every method of a Work, of every kind, by every thread, in every state (programs/work_matrix.py) returns or raises
what torch says.

The same table is held against Gloo, whose differences are named with their reasons.
"""
import re

import launch
import pytest

ENDED = [f"{ends}{after}" for ends in ("complete", "mismatched") for after in
         ("", " and aborted", " and destroyed", " and dropped")]
STATES = [("ccom", state) for state in ["open", "open and aborted", "open and destroyed", "open and dropped", *ENDED,
                                        "killed", "killed and aborted", "killed and destroyed", "killed and dropped"]]
# Gloo may end the process after a mismatch, and its abort() does not end what is under way.
STATES += [("gloo", state) for state in ["open", "complete", "complete and aborted", "complete and destroyed",
                                         "killed"]]
MESSAGES = ("batch", "send", "receive")
# {value}: of the tensors that rank 0 receives, by kind. {error}: by how the calls ended.
VALUES = {"batch": 1 << 18, "send": 0, "barrier": 0}  # else 8
ERRORS = {"open": "rank 0 aborted|has been shut down|was aborted", "mismatched": "ranks made different calls",
          "killed": "rank 1 .*died"}
NOT_THERE = "raises RuntimeError: Work::getFutureResult not implemented."
# By method: when the call is under way, complete, failed.
TABLE = {
    "wait": ("True", "True", "raises DistBackendError: .*({error})"),
    "wait for 20 ms": ("raises DistBackendError: .*Timed out waiting 20 ms.*", "True",
                       "raises DistBackendError: .*({error})"),
    "is_completed": ("False", "True", "True"),
    "is_success": ("False", "True", "False"),
    "exception": ("None", "None", "the error DistBackendError: .*({error})"),
    "result": ("raises RuntimeError: .*not complete, call wait", "sum {value}", r"sum \d+"),
    "synchronize": ("None", "None", "None"),
    "get_future": ("Future", "Future", "Future"),
    "get_future().done": ("False", "True", "True"),
    "get_future().wait": ("sum {value}", "sum {value}", "raises DistBackendError: .*({error})"),
    "get_future().then": ("sum {value}", "sum {value}", "raises RuntimeError: .*DistBackendError: .*({error})"),
    "future.wait": ("sum {value}", "sum {value}", "raises DistBackendError: .*({error})"),
    "get_future_result": (NOT_THERE, NOT_THERE, NOT_THERE),
    "source_rank": ("raises RuntimeError: .*no source rank", "raises RuntimeError: .*no source rank",
                    "raises RuntimeError: .*no source rank"),
    "block_current_stream": ("raises RuntimeError: ", "raises RuntimeError: ", "raises RuntimeError: "),  # no stream
    "boxed": ("ScriptObject", "ScriptObject", "ScriptObject"),
    "unbox": ("False", "True", "True"),
    "_get_op_type": (r"\d+", r"\d+", r"\d+"),
    "_get_duration": ("raises RuntimeError: .*not complete", "float", "float"),
}
TABLE["_source_rank"] = TABLE["source_rank"]
OPEN, COMPLETE, FAILED = range(3)
# Method, kinds, phases, reason.
OF_GLOO = [
    ("is_success", None, (OPEN,), "Gloo's is True until the call has failed"),
    ("_get_duration", None, (COMPLETE, FAILED), "Gloo does not measure"),
    ("is_completed|unbox|exception|is_success", MESSAGES, (COMPLETE, FAILED), "Gloo's messages ask only in wait()"),
    (r"get_future.*|result", MESSAGES, (OPEN, COMPLETE, FAILED), "Gloo's messages have neither"),
    ("_?source_rank", ("batch", "receive"), (OPEN, COMPLETE, FAILED), "Gloo says -1 before wait(); of a batch there "
     "are several works, of which the receive is called"),
]


def phases_of(state, kind):
    if state == "open":
        return [OPEN]
    if state == "open and dropped":  # the destructor waits for collectives
        return [COMPLETE, FAILED] if kind in MESSAGES else [COMPLETE]
    return [COMPLETE] if state.startswith("complete") else [FAILED]


def pattern_of(method, kind, phase, ends):
    if method.endswith("source_rank") and kind == "receive" and phase != OPEN:
        return "1"
    return TABLE[method][phase].format(value=VALUES.get(kind, 8), error=ERRORS.get(ends))


def agrees(backend, outcome, pattern):
    """Gloo's errors have other types and texts."""
    is_error = pattern.startswith(("raises", "the error"))
    if is_error and backend == "gloo":
        return outcome.startswith(pattern.split()[0])
    return re.match(pattern, outcome, re.DOTALL) if is_error else re.fullmatch(pattern, outcome)


def differs(method, kind, phase):
    return any(re.fullmatch(methods, method) and kind in (kinds or [kind]) and phase in phases
               for methods, kinds, phases, _ in OF_GLOO)


def is_expected(backend, state, entry, outcome):
    method, kind = entry["method"], entry["kind"]
    if method not in TABLE:  # of a later torch
        return outcome != "hangs"
    return any(agrees(backend, outcome, pattern_of(method, kind, phase, state.split()[0])) or
               (backend == "gloo" and outcome != "hangs" and differs(method, kind, phase))
               for phase in phases_of(state, kind))


@pytest.mark.parametrize("backend,state", STATES)
def test_every_method_of_a_work(backend, state):
    finished = launch.ranks("work_matrix.py", backend, state, count=2, succeeds=None)
    wrong = [f"{entry['kind']}, {entry['method']}, {entry['thread']}, {state}: {outcome[:300]}"
             for entry in finished.told for outcome in entry["outcomes"]
             if not is_expected(backend, state, entry, outcome)]
    assert not wrong, f"{len(wrong)} cells are wrong:\n" + "\n".join(wrong)
    assert finished.codes == [0, -9 if "killed" in state else 0], \
        f"ended with {finished.codes} after {finished.told[-1:]}\n{finished.report}"
    cells = {(entry["kind"], entry["method"], entry["thread"]) for entry in finished.told}
    print(f"{len(cells)} cells")
    assert len(cells) == len(finished.told) > 120, finished.report
