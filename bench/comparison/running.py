# SPDX-License-Identifier: Apache-2.0
"""Starts the ranks of one measurement, waits for them with a bound, and watches what else the machine is doing."""
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

QUIET = 0.25  # processors: below this, a measurement may begin
TICKS = os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """A run ended badly; the text says how. `printed` is what it said until then."""

    def __init__(self, text, printed):
        super().__init__(text)
        self.printed = printed


def busy_seconds():
    """Processor time spent since boot, by anybody; stolen time counts."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def wait_until_quiet(patience):
    """Returns once the machine has been idle for a moment, or after `patience` seconds; says how long it was not."""
    begin = time.monotonic()
    while True:
        busy, start = busy_seconds(), time.monotonic()
        time.sleep(0.3)
        now = time.monotonic()
        if (busy_seconds() - busy) / (now - start) < QUIET or now - begin >= patience:
            return start - begin


def passing_us(program):
    """What bench/peers/passing.c prints: microseconds that 32 KiB take between two processors; None with one alone."""
    printed = subprocess.run([program], capture_output=True, text=True, timeout=30, check=False).stdout
    return float(printed) if printed else None


def wait_until_near(program, most_us, patience):
    """Returns once processors pass 32 KiB in `most_us`, or after `patience` seconds; says how long they did not."""
    begin = time.monotonic()
    while True:
        start = time.monotonic()
        if (passing_us(program) or 0) <= most_us or start - begin >= patience:
            return start - begin
        time.sleep(0.2)


def kill(processes):
    """Ends the process groups that were started here: kindly, then not, since a launcher has ranks to take along."""
    for number, grace in ((signal.SIGTERM, 3), (signal.SIGKILL, 10)):
        for process in processes:
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                pass
        end = time.monotonic() + grace
        for process in processes:
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass


def wait_for(processes, timeout):
    """None, or why it failed. One rank that fails ends the others soon."""
    end = time.monotonic() + timeout
    failed = None
    while True:
        codes = [process.poll() for process in processes]
        bad = [code for code in codes if code not in (None, 0)]
        if bad and failed is None:
            name = signal.Signals(-bad[0]).name if bad[0] < 0 else f"code {bad[0]}"
            failed = f"ended with {name}"
            end = min(end, time.monotonic() + 3)
        if None not in codes:
            return failed
        if time.monotonic() > end:
            return failed or f"took longer than {timeout:.0f} s"
        time.sleep(0.005)


def tail(text, lines=3):
    kept = [line for line in text.splitlines() if line.strip()]
    return " | ".join(kept[-lines:])


def bench_row(build, words, environment, timeout):
    """What ccom-bench says of its first call; ends the program if it fails."""
    command = [os.path.join(build, "bench", "ccom-bench"), *words, "--json", "-"]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=timeout)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not rows:
        sys.exit(f"{' '.join(command)}: {done.stderr[-400:]}")
    return rows[0]


def run(launches, environment, timeout):
    """Runs (command, more environment) pairs beside each other. Returns what they printed and how many processors
    others kept busy meanwhile."""
    busy, own, start = busy_seconds(), children_seconds(), time.monotonic()
    processes = []
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            for command, more in launches:
                processes.append(subprocess.Popen(command, env={**os.environ, **environment, **more},
                                                  stdin=subprocess.DEVNULL,
                                                  stdout=out, stderr=err, start_new_session=True))
            failed = wait_for(processes, timeout)
        except OSError as error:
            failed = str(error)
        finally:
            if any(process.poll() is None for process in processes):
                kill(processes)
        out.seek(0)
        err.seek(0)
        printed, complaints = out.read(), err.read()
    foreign = (busy_seconds() - busy - (children_seconds() - own)) / (time.monotonic() - start)
    if failed is not None:
        said = tail(complaints) or tail(printed)
        raise Failed(failed + (f": {said}" if said else ""), printed)
    return printed, max(0.0, foreign)
