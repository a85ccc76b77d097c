"""Requests of several keys share gloveboxd's event loop: clients of one key that send requests all the time do not stop
runs of another key."""

import threading

import pytest
from serving import Serving, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")

READERS = 16


@pytest.fixture(name="service")
def service_(glovebox):
    state_of_its_own(glovebox)
    with Serving(glovebox) as service:
        for n in range(120):
            assert service.run(f"# {'x' * 2000}\nprint({n})").status == 200
        yield service


@pytest.mark.parametrize("path", ["/v1/receipts?limit=100", "/metrics", "/openapi.json"])
def test_readers_of_one_key_do_not_stop_runs_of_another(service, path):
    reader, runner = (service.key("--tenant", name, "--scope", "run,audit") for name in ("reader", "runner"))
    is_over, statuses = threading.Event(), []

    def read():
        while not is_over.is_set():
            statuses.append(service.call("GET", path, key=reader).status)

    threads = [threading.Thread(target=read) for _ in range(READERS)]
    for thread in threads:
        thread.start()
    try:
        for n in range(5):
            done = service.run(f"print({n})", key=runner, limits={"wall_ms": 8000})
            assert (done.status, done.json["status"], done.json["stdout"]) == (200, "ok", f"{n}\n"), done.json
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert len(statuses) >= READERS and set(statuses) == {200}
