# SPDX-License-Identifier: Apache-2.0
"""--help of every script says how it is called, and does nothing else: it needs no program but those that print."""
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Scripts(unittest.TestCase):
    def test_help_only_helps(self):
        with tempfile.TemporaryDirectory() as programs:
            for program in ("bash", "sed", "env", "python3"):
                (pathlib.Path(programs) / program).symlink_to(f"/usr/bin/{program}")
            for script in sorted((ROOT / "scripts").iterdir()):
                for flag in ("--help", "-h"):
                    with self.subTest(script=script.name, flag=flag):
                        shown = subprocess.run([script, flag], env={"PATH": programs}, capture_output=True, text=True,
                                               timeout=20)
                        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
                        self.assertIn(script.name, shown.stdout)


if __name__ == "__main__":
    unittest.main()
