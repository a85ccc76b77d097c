"""Signed URLs and port tokens act with the rights of the key that requested them, and end with that key."""

import contextlib
import json
import socket

import pytest
from serving import Serving, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")


@pytest.fixture
def service(glovebox):
    state_of_its_own(glovebox)
    with Serving(glovebox) as serving:
        yield serving


def new_key(service, *arguments):
    return service.key("--scope", "run,sessions", *arguments)


def new_session(service, key, policy="minimal"):
    for _ in range(4):  # on a busy machine the first zygote may not be warm in time
        answer = service.call("POST", "/v1/sessions", {"policy": policy}, key=key)
        if answer.status not in (429, 504):
            break
    assert answer.status == 201, answer.json
    return f"/v1/sessions/{answer.json['id']}"


def sign(service, place, key, **wish):
    answer = service.call("POST", f"{place}/files:sign", wish, key=key)
    assert answer.status == 200, answer.json
    return answer.json["url"]


def by_nobody(service, method, path, body=None, **headers):
    """Over the port, without a key."""
    return service.call(method, path, body, tcp=True, headers=headers)


def test_what_a_key_has_signed_ends_with_it(service):
    key, other = new_key(service, "--tenant", "a"), new_key(service, "--tenant", "a")
    place = new_session(service, other)
    put = sign(service, place, key, path="x", method="PUT")
    get = sign(service, place, key, path="x")
    of_other = sign(service, place, other, path="x")
    token = service.call("GET", f"{place}/ports:token", key=key).json["token"]
    assert by_nobody(service, "PUT", put, b"1").status == 200
    assert by_nobody(service, "GET", get).body == b"1"
    assert by_nobody(service, "GET", get.replace(key["id"], other["id"])).status == 401
    opened = by_nobody(service, "GET", f"{place}/ports/8080/", **{"X-Glovebox-Port-Token": token})
    assert opened.status == 403, opened.json
    assert "network: loopback" in opened.json["error"]["message"]

    assert service.glovebox("key", "revoke", key["id"]).returncode == 0
    for refused in (by_nobody(service, "GET", get), by_nobody(service, "PUT", put, b"2"),
                    by_nobody(service, "GET", f"{place}/ports/8080/", **{"X-Glovebox-Port-Token": token})):
        assert refused.status == 401 and "was revoked" in refused.json["error"]["message"], refused.json
    assert by_nobody(service, "GET", of_other).body == b"1"


def test_the_mode_of_a_file_is_signed_with_it(service):
    key = new_key(service)
    place = new_session(service, key)
    plain = sign(service, place, key, path="a", method="PUT")
    assert by_nobody(service, "PUT", plain + "&mode=777", b"1").status == 401
    private = sign(service, place, key, path="a", method="PUT", mode="600")
    assert by_nobody(service, "PUT", private.replace("mode=600", "mode=777"), b"1").status == 401
    assert by_nobody(service, "PUT", private, b"1").status == 200
    assert service.call("POST", f"{place}/files:stat", {"path": "a"}, key=key).json["mode"] in ("600", "0600", 0o600)
    assert service.call("POST", f"{place}/files:sign", {"path": "a", "mode": "600"}, key=key).status == 400
    assert service.call("POST", f"{place}/files:sign", {"path": "a", "method": "PUT", "mode": "9"}, key=key).status == 400


def test_a_key_does_nothing_in_a_session_whose_policy_it_may_not_use(service):
    wide = new_key(service, "--tenant", "a")
    narrow = new_key(service, "--tenant", "a", "--policy", "minimal")
    place = new_session(service, wide, "data")
    own = new_session(service, narrow)
    for method, path, body in (("GET", "", None), ("DELETE", "", None), ("POST", "/files:list", {"path": ""}),
                               ("POST", "/files:sign", {"path": "x"}), ("GET", "/ports:token", None),
                               ("POST", "/contexts/python/run", {"code": "1"}), ("POST", "/processes", {"command": ["id"]}),
                               ("GET", "/ports/8080/", None), ("PUT", "/files/x", b"1")):
        answer = service.call(method, place + path, body, key=narrow)
        assert answer.status == 403, (method, path, answer.json)
        assert "may not use policy 'data'" in answer.json["error"]["message"]
        assert service.call(method, own + path, body, key=wide).status != 403 or "ports" in path
        if method == "DELETE":
            own = new_session(service, narrow)


def test_a_signed_url_counts_for_the_key_that_signed_it(service):
    key = new_key(service, "--tenant", "a")
    place = new_session(service, key)
    url = sign(service, place, key, path="etc/passwd")
    token = service.call("GET", f"{place}/ports:token", key=key).json["token"]
    run = service.call("POST", "/v1/runs", {"code": "import time; time.sleep(60)", "policy": "minimal"}, key=key,
                       headers={"Prefer": "respond-async"}).json
    with contextlib.ExitStack() as held:
        for _ in range(257):
            peer = held.enter_context(socket.create_connection(("127.0.0.1", service.port)))
            peer.sendall(f"GET /v1/runs/{run['id']}/events HTTP/1.1\r\nHost: localhost\r\n"
                         f"Authorization: Bearer {key['key']}\r\n\r\n".encode())
            assert peer.recv(12).startswith(b"HTTP/1.1 ")
        for refused in (by_nobody(service, "GET", url),
                        by_nobody(service, "GET", f"{place}/ports/8080/", **{"X-Glovebox-Port-Token": token})):
            assert refused.status == 429, refused.body
            assert "requests of tenant 'a' are under way" in json.loads(refused.body)["error"]["message"]
        assert service.call("GET", "/v1/limits", key=new_key(service, "--tenant", "b")).status == 200
    service.call("DELETE", f"/v1/runs/{run['id']}", key=key)  # else the service waits for it at its end
