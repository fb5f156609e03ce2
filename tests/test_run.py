#!/usr/bin/env python3
"""tests/test_run.py -- what tests/run.py counts: each case once, a skipped one as skipped with its reason, and what
fails without saying so; and that tools/check_counts.py fails where the house grew."""
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True # the tree stays as it was
import cases  # noqa: E402
from cli_kit import Case  # noqa: E402

TESTS = os.path.dirname(os.path.abspath(__file__))
CMOCKA = """printf '[==========] Running 3 test(s).\\n[ RUN      ] test_a\\n[       OK ] test_a\\n[ RUN      ] test_b\\n'
printf 'no disk\\n[  SKIPPED ] test_b\\n[ RUN      ] test_c\\n%s\\n[==========] 3 test(s) run.\\n'
"""
UNITTEST = """import sys, unittest
sys.path.insert(0, %r)
sys.dont_write_bytecode = True
import cases
class Some(unittest.TestCase):
    def test_good(self):
        pass
    @unittest.skip("no GPU")
    def test_decorated(self):
        pass
    def test_later(self):
        self.skipTest("no JPEG")
    def test_parts(self):
        for i in range(3):
            with self.subTest(i):
                if i == 1:
                    self.skipTest("no middle")
cases.main()
"""


class Run(Case):
    def write(self, name, text):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n" + text if not name.endswith(".py") else text)
        os.chmod(path, 0o755)
        return path

    def run_tests(self, *arguments, results=None):
        """(exit status, all that was printed, the closing line)"""
        environment = {name: value for name, value in os.environ.items() if name != "GPST_RESULTS"}
        if results:
            environment["GPST_RESULTS"] = results
        done = subprocess.run([sys.executable, os.path.join(TESTS, "run.py"), *arguments], env=environment,
                              stdout=subprocess.PIPE, check=False)
        text = done.stdout.decode()
        return done.returncode, text, text.splitlines()[-1]

    def test_a_case_counts_once(self):
        good = CMOCKA % "[       OK ] test_c"
        both = [self.write(build + "/test_x", good) for build in ("split", "amalgam")]
        status, text, sums = self.run_tests(*both, "--on", "sim", both[0])
        self.assertEqual((status, sums), (0, "2 passed, 0 failed, 1 skipped"))
        self.assertEqual(re.findall("^skip: .*$", text, re.M), ["skip: test_x test_b: no disk"])
        self.assertEqual(len(re.findall("^passed .* 1 of 3 cases skipped$", text, re.M)), 3)
        other = self.write("amalgam/test_x", CMOCKA.replace("  SKIPPED ", "       OK ") % "[  FAILED  ] test_c" + "exit 1\n")
        status, text, sums = self.run_tests(both[0], other)
        self.assertEqual((status, sums), (1, "2 passed, 1 failed, 0 skipped"), "passed once, failed once")

    def test_python(self):
        status, text, sums = self.run_tests(self.write("test_y.py", UNITTEST % TESTS))
        self.assertEqual((status, sums), (0, "1 passed, 0 failed, 3 skipped"))
        self.assertEqual(re.findall("^skip: .*$", text, re.M), ["skip: test_y.py test_decorated: no GPU",
                         "skip: test_y.py test_later: no JPEG", "skip: test_y.py test_parts: no middle"])
        failing = self.write("test_z.py", UNITTEST.replace("        pass", "        self.fail()") % TESTS)
        self.assertEqual(self.run_tests(failing)[::2], (1, "0 passed, 1 failed, 3 skipped"))

    def test_what_says_nothing(self):
        crashed = self.write("split/test_x", CMOCKA % "" + "kill -SEGV $$\n") # in test_c
        late = self.write("split/test_w", CMOCKA % "[       OK ] test_c" + "exit 3\n") # behind all cases
        script = self.write("test_v.sh", "exit 0\n")
        absent = self.write("test_u.sh", "echo no such machine; exit 77\n")
        status, text, sums = self.run_tests(crashed, late, script, absent)
        self.assertEqual((status, sums), (1, "4 passed, 2 failed, 3 skipped"))
        self.assertIn("skip: test_u.sh: no such machine\n", text)
        self.assertIn("only 6 executed, at least 7 are expected\n", self.run_tests(crashed, late, script, "--floor", "7")[1])

    def test_a_failed_program_shows_what_failed(self):
        talks = CMOCKA % "0x1 != 0x2\\n[  FAILED  ] test_c\\n[ RUN      ] test_d\\n[       OK ] test_d"
        _, text, _ = self.run_tests(self.write("split/test_x", talks + "exit 1\n"))
        shown = re.findall(r"^    \| (.*)$", text, re.M)
        self.assertEqual(shown, ["[==========] Running 3 test(s).", "[ RUN      ] test_b", "no disk",
                                 "[  SKIPPED ] test_b", "[ RUN      ] test_c", "0x1 != 0x2", "[  FAILED  ] test_c",
                                 "[==========] 3 test(s) run."])
        said = CMOCKA.replace("test_a\\n[       OK", "test_a\\nseed 7\\n[       OK") % "[  FAILED  ] test_c"
        self.assertIn("    | [ RUN      ] test_a\n    | seed 7\n    | [       OK ] test_a\n",
                      self.run_tests(self.write("split/test_w", said + "exit 1\n"))[1], "it said something")

    def test_a_sum_of_runs(self):
        results = self.path("results")
        one = self.write("split/test_x", CMOCKA % "[       OK ] test_c")
        two = self.write("test_v.sh", "exit 0\n")
        self.run_tests(one, results=results)
        self.run_tests(one, two, "--skip", "test_s.sh=no cmocka: install it", results=results)
        self.assertEqual(self.run_tests("--sum", results)[2], "3 passed, 0 failed, 2 skipped")

    @unittest.skipUnless(shutil.which("gcc") and shutil.which("size"), "no gcc or no size")
    def test_counts_have_limits(self):
        limits, made = self.path("counts.txt"), self.path("gpustage.o")
        shutil.copy(os.path.join(TESTS, "..", "tools", "counts.txt"), limits)
        subprocess.run(["gcc", "-c", "-x", "c", "-", "-o", made], input=b"int f(void) { return 1; }", check=True)

        def check(*arguments):
            done = subprocess.run([sys.executable, os.path.join(TESTS, "..", "tools", "check_counts.py"),
                                   "--file", limits, "--object", made, *arguments], stdout=subprocess.PIPE, check=False)
            return done.returncode, re.findall("^(.*) is .*, above ", done.stdout.decode(), re.M)

        self.assertEqual(check("--set"), (0, []))
        with open(limits, encoding="ascii") as file:
            text = file.read()
        names = re.findall(r"^(\w+) [1-9]\d*$", text, re.M) # what comes later has a dot, and raises nothing yet
        self.assertEqual(len(names), 6)
        for low in (names, ["public_fields"]):
            self.write("counts.txt", re.sub(r"^(\w+) (\d+)$", lambda found: "%s %d" % (
                found.group(1), int(found.group(2)) + (-1 if found.group(1) in low else 1)), text, flags=re.M))
            status, grown = check()
            self.assertEqual((status, sorted(grown)), (1, sorted(low)))
        self.write("counts.txt", text.replace("text_bytes ", "text_bytes -", 1).replace("text_gcc ", "text_gcc 1"))
        self.assertEqual(check(), (0, []), "another compiler's bytes are not judged")


if __name__ == "__main__":
    cases.main()
