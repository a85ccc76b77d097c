"""What holds for the whole suite: the host looks the same afterwards as it did before."""

import hashlib
import signal

import host_state
import pytest

# Tests press ^C and hang up. A suite that a script started in the background ignores that, and so does all that it
# starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as nohup(1) does with this one


@pytest.fixture(scope="session", autouse=True)
def host_before():
    return host_state.snapshot()


def pytest_addoption(parser):
    parser.addoption("--every", type=int, default=1, metavar="N", help="run every Nth test, always the same ones")


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
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


def pytest_configure(config):
    config.addinivalue_line("markers", "last: runs after every other test")
