#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python's json reads every line of CCOM_LOG_FORMAT=json: hostile contents, and processes that share a pipe.

log_json_test.py LOG_PROGRAM
"""
import datetime
import json
import os
import re
import select
import subprocess
import sys

PROGRAM = sys.argv[1]
ENVIRONMENT = {**os.environ, "CCOM_LOG_FORMAT": "json", "CCOM_LOG": "warn"}
MOST_BYTES = select.PIPE_BUF
FIELDS = ["time", "level", "room", "host", "pid", "communicator", "rank", "message", "truncated"]


def refuse(name):
    raise ValueError(f"{name} is no JSON")


def read(line):
    assert len(line) + 1 <= MOST_BYTES, len(line)
    pairs = json.loads(line.decode("utf-8", "strict"), object_pairs_hook=list, parse_constant=refuse)
    names = [name for name, _ in pairs]
    assert names == [name for name in FIELDS if name in names], names
    entry = dict(pairs)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", entry["time"]), entry["time"]
    assert abs(datetime.datetime.fromisoformat(entry["time"][:-1] + "+00:00").timestamp()
               - datetime.datetime.now(datetime.UTC).timestamp()) < 3600
    assert entry["level"] in ("error", "warn", "info", "debug") and entry["room"] == "base"
    assert entry.get("truncated", True) is True
    return entry


def hostile():
    run = subprocess.run([PROGRAM, "hostile"], env=ENVIRONMENT, stderr=subprocess.PIPE, check=True, timeout=60)
    entries = [read(line) for line in run.stderr.splitlines()]
    messages = [entry["message"] for entry in entries]
    every_byte = bytes(range(1, 256)).decode("utf-8", "replace")
    assert messages[:5] == ["plain", "", '"quotes" and \\ backslashes \\', "two\nlines\r\n\tand a tab",
                            "\x1b[31mred\x1b[0m"], messages[:5]
    assert messages[5][:127] == every_byte[:127] and set(messages[5][127:]) == {"\ufffd"}
    assert messages[6] == "umlauts \u00e4, \u20ac, \U0001f600"
    assert messages[7].startswith("cut \ufffd") and "surrogate \ufffd" in messages[8]
    assert messages[10:12] == ['{"level":"error"}', "</script>\u2028"]
    assert messages[13] == "x" * 2047 and entries[13]["truncated"]
    assert set(messages[12]) == {"\x01"} and entries[12]["truncated"], "six bytes each do not fit"
    assert set(messages[14]) == {'"'} and entries[14]["truncated"]
    assert messages[16] == "%s%n%d" and "truncated" not in entries[16]
    last = entries[17]
    assert (last["rank"], last["communicator"], last["level"]) == (7, "0000000000abcdef", "error"), last
    assert len(entries) == 18 and "rank" not in entries[0]
    print("hostile contents: all read")


def shared_pipe(processes=4, each=100):
    receiving, sending = os.pipe()
    command = [PROGRAM, "many", str(each)]
    running = [subprocess.Popen(command, env=ENVIRONMENT, stderr=sending) for _ in range(processes)]
    os.close(sending)
    with os.fdopen(receiving, "rb") as pipe:
        entries = [read(line.rstrip(b"\n")) for line in pipe]
    assert all(process.wait(60) == 0 for process in running)
    lines = dropped = 0
    for entry in entries:
        count = re.fullmatch(r"(\d+) lines were dropped, because those before could not be delivered", entry["message"])
        if count:
            dropped += int(count[1])
        else:
            assert re.match(r"\d \d+ x*$", entry["message"])
            lines += 1
    assert lines + dropped == processes * 4 * each, (lines, dropped)
    assert {entry["pid"] for entry in entries} == {process.pid for process in running}
    print(f"{processes} processes, one pipe: {lines} lines, {dropped} dropped")


def assertion():
    run = subprocess.run([PROGRAM, "asserts"], env=ENVIRONMENT, stderr=subprocess.PIPE, check=False, timeout=60)
    assert run.returncode < 0
    entries = [read(line) for line in run.stderr.splitlines()]
    assert len(entries) == 1 and "a \\\"quoted\\\" expression" in entries[0]["message"], entries


hostile()
shared_pipe()
assertion()
