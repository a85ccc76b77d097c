"""What holds for the whole suite: the host looks the same afterwards as it did before."""

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


def pytest_collection_modifyitems(items):
    """The check of what is left runs after everything else."""
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


def pytest_configure(config):
    config.addinivalue_line("markers", "last: runs after every other test")
