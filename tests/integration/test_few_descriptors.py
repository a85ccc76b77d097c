"""Few descriptors: gloveboxd raises the soft limit to the hard limit, HTTP connections use at most half of them, and a
packet that arrives without its descriptors costs one request, not every session of every tenant."""

import contextlib
import pathlib
import resource
import socket
import time

import pytest
from serving import Serving, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")


def limits_of(pid):
    line, = (row for row in pathlib.Path(f"/proc/{pid}/limits").read_text().splitlines() if row.startswith("Max open"))
    return tuple(int(word) for word in line.split()[3:5])


def limited(glovebox, program, ulimit):
    wrapper = glovebox.folder / "limited"
    wrapper.write_text(f"#!/bin/sh\nulimit {ulimit}\nexec {program} \"$@\"\n")
    wrapper.chmod(0o755)
    return wrapper


def serving(glovebox, ulimit, **how):
    """A service that is started with these limits of open files."""
    state_of_its_own(glovebox)
    program, glovebox.program = glovebox.program, limited(glovebox, glovebox.program, ulimit)
    try:
        return Serving(glovebox, **how)
    finally:
        glovebox.program = program


def session(service, **request):
    return service.call("POST", "/v1/sessions", {"policy": "minimal"} | request)


def test_the_soft_limit_is_raised(glovebox):
    with serving(glovebox, "-S -n 256") as service:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        for name in ("gloveboxd", "glovebox-spawner"):
            assert limits_of(service.children()[name]) == (hard, hard), name
        assert service.run("print(1)").json["stdout"] == "1\n"


@pytest.mark.parametrize("verb", [("serve", "--socket"), ("run", "--private", "-c", "print(1)")])
def test_too_few_are_refused_with_both_numbers(glovebox, verb):
    """A low soft limit is raised; a low hard limit was "Invalid argument" of every program, five times."""
    state_of_its_own(glovebox)
    if verb[0] == "serve":
        verb += (glovebox.folder / "s",)
    program = glovebox.program
    for ulimit in ("-n 40", "-n 128", "-n 169"):
        glovebox.program = limited(glovebox, program, ulimit)
        done = glovebox(*verb)
        assert done.returncode == 125 and done.stdout == b"", done
        number = ulimit.split()[1]
        assert f"{number} descriptors are allowed (ulimit -Hn), 170 are needed" in done.stderr.decode()
        assert done.stderr.count(b"\n") == 1, done.stderr
    glovebox.program = program


@pytest.mark.parametrize("ulimit", ["-n 170", "-S -n 40"])
def test_enough_are_enough(glovebox, ulimit):
    with serving(glovebox, ulimit, slots=2) as service:
        assert service.run("print(1)").json["stdout"] == "1\n"


def test_a_packet_without_its_descriptors_costs_one_request(glovebox):
    """gloveboxd has no more: what is built then cannot reach it. What it had goes on."""
    with serving(glovebox, "-n 200", slots=40) as service:
        daemon, made, refused = service.children()["gloveboxd"], [], None
        assert limits_of(daemon) == (200, 200)
        while refused is None and len(made) < 40:
            answer = session(service)
            if answer.status == 201:
                made.append(f"/v1/sessions/{answer.json['id']}")
                run = service.call("POST", f"{made[-1]}/contexts/python/run", {"code": "x = 7"})
                assert run.status == 200 or len(made) > 1, run.body
            else:
                refused = answer
        assert refused is not None and refused.status in (429, 503), refused and refused.body
        strangers = [socket.create_connection(("127.0.0.1", service.port), timeout=10) for _ in range(60)]
        for peer in strangers:
            with contextlib.suppress(ConnectionError):  # a silent one makes room for the next
                peer.sendall(b"GET / HTTP/1.1\r\n")
        assert service.children()["gloveboxd"] == daemon
        for _ in range(5):  # the log's own files are opened for each, and have descriptors left
            again = service.call("POST", f"{made[0]}/contexts/python/run", {"code": "print(x)"})
            assert again.json.get("stdout") == "7\n", again.body
        for peer in strangers:
            peer.close()
        for place in made[1:]:
            assert service.call("DELETE", place).status == 200
        end = time.monotonic() + 60
        while (answer := session(service)).status != 201:
            assert time.monotonic() < end, answer.body
            time.sleep(0.2)
        assert "spawner.exited" not in service.log.read_text()


def test_strangers_leave_room_for_sandboxes(glovebox):
    """A limit that cannot be raised: half of what is left is theirs, and they are no more."""
    strangers = []
    with serving(glovebox, "-n 320", slots=6) as service:
        try:
            for _ in range(200):
                strangers.append(socket.create_connection(("127.0.0.1", service.port), timeout=10))
                strangers[-1].sendall(b"GET / HTTP/1.1\r\n")
            sessions = [session(service) for _ in range(3)]
            assert [answer.status for answer in sessions] == [201] * 3, sessions[-1].body
            assert "spawner.exited" not in service.log.read_text()
        finally:
            for peer in strangers:
                peer.close()
