"""A pytest plugin for a serial console: one TAP line as each test ends, with its seconds."""

import pytest


class Tap:
    def __init__(self):
        self.count = 0

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.failed or (report.when == "setup" and report.skipped):
            self.count += 1
            word = "not ok" if report.failed else "ok"
            note = f" # SKIP {report.longrepr[2]}" if report.skipped and isinstance(report.longrepr, tuple) else ""
            print(f"\n{word} {self.count} - {report.nodeid} ({report.duration:.1f} s){note}", flush=True)
            if report.failed:
                for line in str(report.longrepr).splitlines()[-40:]:
                    print(f"# {line}", flush=True)

    @pytest.hookimpl
    def pytest_report_teststatus(self, report):
        return ("passed" if report.passed else report.outcome), "", ""


def pytest_configure(config):
    config.pluginmanager.register(Tap(), "tap")
