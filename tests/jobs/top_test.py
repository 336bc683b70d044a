# SPDX-License-Identifier: Apache-2.0
"""ccom-top in a pseudo-terminal: what it shows at 80 x 24 and after a change of size, keys, the end by q and by a
signal, and that the terminal is as it was."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pyte
from harness.processes import PATIENCE, until
from support import TOP, TestCase


class Terminal:
    """Runs ccom-top as a shell would; screen() is what a person sees."""

    def __init__(self, *arguments, columns=80, rows=24):
        self.screen_, self.ended = pyte.Screen(columns, rows), False
        self.stream = pyte.ByteStream(self.screen_)
        self.master, slave = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        environment = {**os.environ, "TERM": "xterm", "LINES": "", "COLUMNS": ""}
        del environment["LINES"], environment["COLUMNS"]
        self.process = subprocess.Popen([TOP, "--interval", "0.2", *arguments], stdin=slave, stdout=slave,
                                        stderr=subprocess.STDOUT, env=environment, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen_.resize(rows, columns)

    def read(self):
        while select.select([self.master], [], [], 0.05)[0]:
            try:
                self.stream.feed(os.read(self.master, 65536))
            except OSError:
                return

    def wait_for_output(self):
        if not select.select([self.master], [], [], PATIENCE)[0]:
            raise AssertionError(f"shows nothing for {PATIENCE} s")
        self.read()

    def screen(self):
        self.read()
        return "\n".join(self.screen_.display)

    def wait_for(self, *words):
        return until(self.screen, lambda text: all(word in text for word in words))

    def press(self, keys):
        os.write(self.master, keys)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def said_once(*arguments):
    return subprocess.run([TOP, "--once", *arguments], capture_output=True, text=True, check=True).stdout


class Top(TestCase):
    def test_shows_ranks_and_quits(self):
        self.job("calls", 3)
        terminal = self.enterContext(Terminal())
        text = terminal.wait_for("training", "CALLS/S", "allreduce #")
        self.assertIn("ccom-top:", text.splitlines()[0])
        self.assertIn("q quit", text.splitlines()[23])
        terminal.press(b"q")
        self.assertEqual(terminal.process.wait(PATIENCE), 0)
        terminal.read()
        self.assertEqual(termios.tcgetattr(terminal.slave), terminal.before)

    def test_opens_ranks_and_the_history_of_one(self):
        self.job("calls", 3)
        terminal = self.enterContext(Terminal())
        terminal.wait_for("training")
        terminal.press(b"\r")
        terminal.wait_for("RANK")
        terminal.press(b"j\r")
        text = terminal.wait_for("AGO", "rank 1")
        self.assertIn("(training), rank 1", text)
        until(terminal.screen, lambda screen: screen.count(" allreduce #") >= 3)
        terminal.press(b"\x1b")
        terminal.wait_for("WAITS FOR")

    def test_pauses(self):
        self.job("calls", 2)
        terminal = self.enterContext(Terminal())
        terminal.wait_for("training")
        terminal.press(b"p")
        paused = terminal.wait_for("[paused]")
        time.sleep(1)  # it would have shown five other states
        self.assertEqual(terminal.screen(), paused)
        terminal.press(b"p")
        until(terminal.screen, lambda text: "[paused]" not in text and text != paused)

    def test_sorts(self):
        self.job("calls", 2)
        terminal = self.enterContext(Terminal())
        terminal.wait_for("sort: rank")
        terminal.press(b"s")
        terminal.wait_for("sort: calls/s")

    def test_follows_the_size_of_the_terminal(self):
        self.job("calls", 2)
        terminal = self.enterContext(Terminal())
        terminal.wait_for("training")
        for columns, rows in ((132, 40), (40, 8), (20, 3), (1, 1), (80, 24)):
            terminal.resize(columns, rows)
            os.killpg(terminal.process.pid, signal.SIGWINCH)
            terminal.wait_for_output()
            self.assertIsNone(terminal.process.poll())
        text = terminal.wait_for("training", "q quit")
        self.assertIn("q quit", text.splitlines()[23])

    def test_gives_the_terminal_back_after_signals(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with Terminal() as terminal:
                terminal.wait_for("q quit")
                terminal.process.send_signal(number)
                self.assertEqual(terminal.process.wait(PATIENCE), -number)
                self.assertEqual(termios.tcgetattr(terminal.slave), terminal.before)

    def test_says_so_where_there_is_no_terminal(self):
        done = subprocess.run([TOP], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 3)
        self.assertIn("--once", done.stderr)

    def test_prints_a_table_and_json_once(self):
        self.job("calls", 2)
        self.assertIn("training", said_once("-i", "0.3"))
        seen = json.loads(said_once("--json", "-i", "0.3"))
        (communicator,) = [each for each in seen["communicators"] if each["name"] == "training"]
        self.assertGreater(communicator["rate"]["calls_per_second"], 0)
        self.assertGreater(communicator["rate"]["bytes_per_second"], 0)

    def test_shows_connections_and_their_rates(self):
        self.job("calls", 2, CCOM_TRANSPORT="tcp")
        links = json.loads(said_once("--json", "-i", "0.5"))["links"]
        self.assertTrue(any(link["rate"]["sent_bytes_per_second"] > 0 for link in links if "rate" in link), links)

    def test_ends_when_its_reader_does(self):
        top = subprocess.Popen([TOP, "--json", "-i", "0.05"], stdout=subprocess.PIPE)
        top.stdout.readline()
        top.stdout.close()
        top.wait(PATIENCE)
