# SPDX-License-Identifier: Apache-2.0
"""ccom-run: what ranks get, how the job ends, and what it refuses."""

import signal
import subprocess
import sys
import textwrap

import pytest
from harness.processes import clean_environment, has_ended, until
from launch import RUN, on_processes, output, start


def run(*words, **more):
    return subprocess.run([RUN, *words], env=clean_environment(), capture_output=True, text=True, timeout=60, **more)


def start_two(program):
    """A job of two ranks, when each has printed a line; and these."""
    job = start(2, ["-c", textwrap.dedent(program)])
    return job, until(lambda: job.output(0).splitlines(), lambda lines: len(lines) == 2)


def test_the_first_failure_is_the_jobs():
    job = run("-n", "3", "--grace", "1", "sh", "-c", '[ "$CCOM_RANK" = 1 ] && exit 7; exec sleep 50')
    assert job.returncode == 7 and job.stderr == "ccom: rank 1 ended with exit code 7; the other ranks are ended\n"


def test_tags():
    job = run("-n", "2", "--tag-output", "sh", "-c", 'printf "a\\nb of $CCOM_RANK"; echo c >&2')
    assert sorted(job.stdout.splitlines()) == ["[0] a", "[0] b of 0", "[1] a", "[1] b of 1"]
    assert sorted(job.stderr.splitlines()) == ["[0] c", "[1] c"]


def test_places_and_input():
    say = "echo $CCOM_RANK/$CCOM_NRANKS $CCOM_LOCAL_RANK/$CCOM_LOCAL_NRANKS $(wc -c)"
    job = run("-np", "2", "sh", "-c", say, input="four")
    assert sorted(job.stdout.split("\n")) == ["", "0/2 0/2 4", "1/2 1/2 0"]


def test_python_files_and_their_own_options(tmp_path):
    (tmp_path / "say.py").write_text("import sys; print(sys.argv[1:], sys.executable)")
    job = run("-n", "1", "--python", sys.executable, str(tmp_path / "say.py"), "-n", "--tag-output")
    assert job.stdout == f"['-n', '--tag-output'] {sys.executable}\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals(number):
    job, _ = start_two("""
        import time
        try:
            print("ready", flush=True)
            while True:
                time.sleep(0.05)  # one long sleep could begin between the signal and its handler
        except KeyboardInterrupt:
            print("interrupted")
    """)
    job.kill(0, number)
    assert output(job, 128 + number).count("interrupted") == (2 if number == signal.SIGINT else 0)


def test_signals_that_do_not_end_it():
    job, _ = start_two("""
        import signal
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])  # one that comes before sigwait stays pending
        print("ready", flush=True)
        signal.sigwait([signal.SIGUSR1])
        print("had it")
    """)
    job.kill(0, signal.SIGUSR1)
    assert output(job).count("had it") == 2


def test_ranks_end_with_it():
    job, pids = start_two("import os, time; print(os.getpid(), flush=True); time.sleep(50)")
    with job:
        job.kill(0)
        until(lambda: [pid for pid in pids if not has_ended(pid)], lambda left: not left)


def test_timeout():
    output = on_processes(2, "import time; time.sleep(50)", timeout=1, code=5)
    assert "timeout after 1 s" in output


@pytest.mark.parametrize(
    "words, text",
    [
        ((), "ccom-run: needs the number of ranks: ccom-run -n 4 PROGRAM"),
        (("-n", "2"), "ccom-run: needs a program: ccom-run -n 2 PROGRAM"),
        (("-n", "0", "true"), "not in range 1 to 4096"),
        (("-n", "x", "true"), "not in range 1 to 4096"),
        (("--ranks", "2", "true"), "--ranks"),
        (("-n", "2", "--grace", "-1", "true"), "--grace"),
    ],
)
def test_refused(words, text):
    job = run(*words)
    assert job.returncode == 3 and text in job.stderr and job.stdout == ""


def test_a_program_that_is_not_there():
    job = run("-n", "2", "no-such-program")
    assert job.returncode == 127 and "is the program there" in job.stderr


def test_not_in_a_rank():
    job = run("-n", "1", RUN, "-n", "2", "true")
    assert job.returncode == 3 and "CCOM_RANK is set: this process is a rank and starts none" in job.stderr
