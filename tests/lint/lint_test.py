# SPDX-License-Identifier: Apache-2.0
"""What scripts/lint must find, each in a small tree of its own: it fails and names the file."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("CCOM_SOURCE_DIR") or pathlib.Path(__file__).resolve().parents[2])
TOOLS = ROOT / "build" / "lint-tools"
COPIED = ["scripts/lint", ".ci/lint-requirements.txt", ".clang-format", ".clang-tidy", ".codespellrc", ".shellcheckrc",
          "ruff.toml", "src/base/mutex.h", "src/base/thread_annotations.h"]
COUNTER = """// SPDX-License-Identifier: Apache-2.0
#include "counter.h"

int next(Counter& counter) {
  ccom::Lock lock(counter.mutex);
  return ++counter.value;
}
"""
COUNTER_HEADER = """// SPDX-License-Identifier: Apache-2.0
#include "base/mutex.h"

struct Counter {
  ccom::Mutex mutex;
  int value CCOM_GUARDED_BY(mutex) = 0;
};
"""


class Lint(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cache = cls.enterClassContext(tempfile.TemporaryDirectory())

    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "a tree")
        for name in COPIED:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.root / name)
        (self.root / "build" / "given").mkdir(parents=True)
        (self.root / "build" / TOOLS.name).symlink_to(TOOLS)
        self.sources = []
        self.write(".gitignore", "/build\n")
        self.write("src/counter.h", COUNTER_HEADER)
        self.write("src/counter.cc", COUNTER)
        self.environment = {**os.environ, "XDG_CACHE_HOME": self.cache,
                            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        self.git("init", "--quiet")
        self.commit()
        self.commit()

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=nobody", "-c", "user.email=nobody", *words], cwd=self.root, check=True,
                       env=self.environment)

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "More")

    def write(self, name, text, compiled=True):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if compiled and path.suffix == ".cc" and name not in self.sources:
            self.sources.append(name)
        entries = [{"directory": str(self.root / "build" / "given"), "file": str(self.root / source),
                    "command": f"c++ -std=c++20 -O2 '-I{self.root}/src' -c '{self.root / source}'"}
                   for source in self.sources]
        (self.root / "build" / "given" / "compile_commands.json").write_text(json.dumps(entries))

    def lint(self, *words):
        done = subprocess.run([self.root / "scripts" / "lint", "--build", "build/given", *words], cwd=self.root,
                              env=self.environment, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def passes(self, *words):
        code, said = self.lint(*words)
        self.assertEqual(code, 0, said)
        return said

    def finds(self, faults, *words):
        """{file: (check, text)}: each time while the files are there, and nothing once they are gone."""
        for name, (_, text) in faults.items():
            self.write(name, text)
        for _ in range(2):
            code, said = self.lint(*words)
            self.assertEqual(code, 1, said)
            for name, (check, _) in faults.items():
                with self.subTest(check=check, name=name):
                    self.assertRegex(said, rf"(?m)^{check}:\n(?:(?!^\w+:$).*\n)*{name}:|^{name}: {check}:")
        for name in faults:
            (self.root / name).unlink()
            self.sources = [source for source in self.sources if source != name]
        self.write("src/counter.cc", COUNTER)
        self.passes(*words)

    def test_checks_without_a_compiler(self):
        self.finds({
            "src/badly_formatted.cc": ("format", "int  badly_formatted = 1;\n"),
            "tools/unused.py": ("ruff", "import os\n"),
            "tools/long": ("ruff", f"#!/usr/bin/env python3\n# {'long ' * 30}\n"),
            "scripts/unquoted": ("shellcheck", "#!/bin/sh\nrm $1\n"),
            "docs/page.md": ("spelling", "It occu" "red.\n"),
            "src/CMakeLists.txt": ("columns", f"# {'long ' * 30}\n"),
        })

    def test_checks_of_clang(self):
        self.finds({
            "src/counter.cc": ("clang", COUNTER.replace("  ccom::Lock lock(counter.mutex);\n", "")),
            "src/shout.cc": ("clang-tidy", "int SHOUT() { return 1; }\n"),
        })

    def test_what_clang_does_not_compile(self):
        self.finds({"src/wrong.cc": ("clang", "int wrong = nothing;\n")}, "--clang")

    def test_changed_header(self):
        self.passes()
        self.write("src/counter.h", COUNTER_HEADER.replace("  int value", "  ccom::Mutex other;\n  int value")
                   .replace("GUARDED_BY(mutex)", "GUARDED_BY(other)"))
        code, said = self.lint()
        self.assertEqual(code, 1, said)
        self.assertIn("src/counter.cc: clang:", said)

    def test_each_commit_since_the_last_that_passed(self):
        self.passes()
        self.write("src/shout.cc", "int SHOUT() { return 1; }\n")
        self.commit()
        self.commit()
        code, said = self.lint()
        self.assertEqual(code, 1, said)
        self.assertIn("src/shout.cc: clang-tidy:", said)

    def test_source_that_no_target_compiles(self):
        self.passes("--clang")
        self.write("src/forgotten.cc", "int forgotten = 1;\n", compiled=False)
        code, said = self.lint("--clang")
        self.assertEqual(code, 1, said)
        self.assertIn("src/forgotten.cc: clang: no target compiles it", said)

    def test_files_that_are_named(self):
        self.write("tools/unused.py", "import os\n")
        self.write("tools/used.py", "import os\n\nprint(os.name)\n")
        self.passes("tools/used.py", "src/counter.h")
        code, said = self.lint("tools/used.py", "tools/unused.py")
        self.assertEqual(code, 1, said)
        self.assertIn("tools/unused.py", said)

    def test_fixes(self):
        self.write("src/counter.h", COUNTER_HEADER.replace("  int value", "  int   value"))
        self.write("tools/unsorted.py", "import sys\nimport os\n\nprint(os.name, sys.path)\n")
        self.passes("--fix")
        self.assertEqual((self.root / "src" / "counter.h").read_text(), COUNTER_HEADER)

    def test_missing_tools(self):
        (self.root / "build" / TOOLS.name).unlink()
        code, said = self.lint()
        self.assertEqual(code, 1, said)
        self.assertIn("scripts/install-dependencies --lint", said)


if __name__ == "__main__":
    missing = [name for name in ("clang++", "clang-tidy", "codespell", "shellcheck") if not shutil.which(name)]
    if missing or not TOOLS.exists():
        print("skipped: scripts/install-dependencies --lint has not been run")
        sys.exit(77)
    unittest.main()
