"""What holds for the whole suite: the host looks the same afterwards as it did before, and which tests may run at the
same time in several processes (pytest-xdist with --dist loadgroup)."""

import hashlib
import json
import os
import pathlib
import signal

import host_state
import pytest

# Tests press ^C and hang up. A suite that a script started in the background ignores that, and so does all that it
# starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as nohup(1) does with this one


@pytest.fixture(scope="session", autouse=True)
def host_before():
    """GLOVEBOX_HOST_BEFORE names what `host_state.py` printed before an earlier part of the suite."""
    if saved := os.environ.get("GLOVEBOX_HOST_BEFORE"):
        return json.loads(pathlib.Path(saved).read_text(encoding="utf-8"))
    return host_state.snapshot()


def pytest_addoption(parser):
    parser.addoption("--every", type=int, default=1, metavar="N", help="run every Nth test, always the same ones")


def group_of(path):
    """Tests that pytest-xdist runs in one process: those of a file share its fixtures, those that install packages look
    for pip and apt, sandboxes of the escape tests lock the same file of the template, and Meson keeps one list of what it
    has installed."""
    if path.parent.name == "escape":
        return "escape"
    if path.stem in ("test_library", "test_operators_pages"):
        return "installed"
    return "packages" if path.stem in ("test_libs", "test_sets", "test_build_walls", "test_template") else path.stem


# Groups that take longest begin first, so that no process waits for another at the end.
LONG = ("packages", "test_template_soak", "escape", "test_wheels", "test_spawner_faults", "test_branches", "test_gate_policy",
        "test_session_receipts", "test_keys", "test_withheld", "test_parked", "test_usage_watch", "test_receipt_bounds",
        "test_template_archive", "test_every_execution", "test_watchdog")


def order_of(item):
    group = group_of(item.path)
    return item.get_closest_marker("last") is not None, LONG.index(group) if group in LONG else len(LONG)


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in its own
def pytest_collection_modifyitems(config, items):
    """A sample takes the same share of each file. The check of what is left runs after everything else."""
    if (every := config.getoption("every")) > 1:
        files = {}
        for item in items:
            files.setdefault(item.path, []).append(item)
        ordered = [item for some in files.values()
                   for item in sorted(some, key=lambda item: hashlib.sha256(item.nodeid.encode()).digest())]
        kept = set(ordered[::every])
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]
    items.sort(key=order_of)
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item.path)))


def pytest_configure(config):
    config.addinivalue_line("markers", "last: runs after every other test")
    config.addinivalue_line("markers", "alone: looks at the whole machine; nothing else of the suite may run beside it")
    config.addinivalue_line("markers", "xdist_group(name): runs in one process with the others of that name (pytest-xdist)")
