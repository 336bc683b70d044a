# SPDX-License-Identifier: Apache-2.0
"""Prints what a program can know of its process, and ends in one of several ways: ordinary.py END"""
import atexit
import json
import os
import signal
import sys
import threading

END = sys.argv[1]
OWN = {"CCOM_TEST_JOB", "MASTER_PORT"}  # another one in each job
kept = ["until the end"]


def facts():
    return {
        "arguments": sys.argv, "name": __name__, "file": __file__, "path": sys.path, "folder": os.getcwd(),
        "main": sys.modules["__main__"].kept, "globals": sorted(globals()),
        "environment": sorted((name, value) for name, value in os.environ.items() if name not in OWN),
        "files": {number: os.path.basename(os.readlink(f"/proc/self/fd/{number}")) for number in range(8)
                  if os.path.exists(f"/proc/self/fd/{number}")},
        "leads its session": os.getsid(0) == os.getpid(), "threads": len(os.listdir("/proc/self/task")),
        "signals": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
        "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "mark": f"CCOM_TEST_JOB={os.environ['CCOM_TEST_JOB']}" in open("/proc/self/environ").read().split("\0"),
    }


def last():
    started.wait()
    print("a thread's end", kept)


atexit.register(lambda: print("exit function", kept))
started = threading.Event()
threading.Thread(target=last).start()
print(json.dumps(facts()))
print("an error's text", file=sys.stderr)
started.set()
if END == "exit":
    sys.exit(3)
elif END == "text":
    sys.exit("a text")
elif END == "exception":
    raise ValueError("on purpose")
elif END == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
elif END == "at once":
    os._exit(4)
elif END == "child":
    child = os.fork()
    os.setsid() if child == 0 else None
    signal.pause() if child == 0 else None
