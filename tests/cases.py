"""tests/cases.py -- unittest.main() for the tests that are written in Python: says of each case, as cmocka does, how it
ended, so that tests/run.py counts it; of a skipped one the reason first."""
import unittest


class Result(unittest.TextTestResult):
    def tell(self, test, word, reason=None):
        test = getattr(test, "test_case", test) # a subtest is a part of its case
        name = getattr(test, "_testMethodName", None) or str(test)
        self.stream.writeln("%s[%s ] %s" % (reason + "\n" if reason else "", word.rjust(9), name))
        self.stream.flush()

    def startTest(self, test):
        super().startTest(test)
        self.tell(test, "RUN     ")

    def addSuccess(self, test):
        super().addSuccess(test)
        self.tell(test, "OK")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.tell(test, "SKIPPED", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.tell(test, "FAILED ")

    def addError(self, test, err):
        super().addError(test, err)
        self.tell(test, "FAILED ")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.tell(test, "FAILED ")


def main():
    unittest.main(testRunner=unittest.TextTestRunner(resultclass=Result, verbosity=0))
