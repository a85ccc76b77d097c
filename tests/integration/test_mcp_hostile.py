"""Clients of the Model Context Protocol that try to use objects of other tenants, and sandboxes whose output looks like
the protocol."""

import base64
import http.client
import json
import os
import socket
import threading

import pytest
from conftest import Glovebox
from mcp_client import ACCEPT, META, NEWEST, Bridge, Handshake, Stateless, messages_of, text_of
from serving import Serving, state_of_its_own, with_policies
from test_mcp import HELLO, read_event, running, wait_for

pytestmark = pytest.mark.usefixtures("python_template")

SLEEP = {"name": "run_code", "arguments": {"code": "import time; time.sleep(60)", "policy": "minimal"}}


@pytest.fixture(name="service", scope="module")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("mcp-hostile"))
    state_of_its_own(glovebox)
    with Serving(glovebox, "--idle-seconds", "5", env=with_policies(glovebox, {"asked": "approval: {when: [always], expires: 1h}"})) as serving:
        yield serving


@pytest.fixture(name="client")
def client_(service):
    return Stateless(service, service.key("--scope", "run,sessions"))


# --- one client's calls and another's ---------------------------------------------------------------------------------

def test_a_stateless_call_is_not_cancelled_by_a_notification_of_another_connection(service, client):
    message = client.message("tools/call", SLEEP)
    response, answers = [], []
    thread = threading.Thread(target=lambda: response.append(messages_of(client.post(message))[-1]))
    thread.start()
    run = wait_for(lambda: running(service, client.key))[0]
    other = Stateless(service, client.key)
    for meta in (message["params"]["_meta"], {}):
        told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"], "_meta": meta}}
        answers.append(other.post(told, ACCEPT).status)
    assert answers == [202, 202] and client.tool("run_status", run_id=run)["structuredContent"]["status"] == "running"
    client.tool("run_cancel", run_id=run)
    thread.join(20)
    assert response[0]["result"]["structuredContent"]["status"] == "cancelled"


def test_a_cancellation_before_its_call_changes_nothing(service):
    client = Handshake(service, service.key())
    for id_ in (1, "1", None, [], {"a": 1}, 1.5):
        assert client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_}}).status == 202
    assert client.tool("run_code", code="print(1)", policy="minimal")["structuredContent"]["stdout"] == "1\n"


def test_an_elicitation_ends_with_its_client(service):
    client = Handshake(service, capabilities={"elicitation": {}})
    call = {"name": "run_code", "arguments": {"code": "print('never answered')", "policy": "asked"}}
    response = service.open("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}, headers=client.headers())
    question = read_event(response)
    assert question["method"] == "elicitation/create"
    assert service.call("DELETE", "/mcp", headers={"Mcp-Session-Id": client.session}).status == 204
    assert "nothing has run" in text_of(read_event(response)["result"])
    late = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"decision": "approve"}}}
    assert service.call("POST", "/mcp", late, headers=ACCEPT).status == 202, "thrown away"


@pytest.mark.parametrize("answer", [
    {"result": 1}, {"result": []}, {"result": {}}, {"result": {"action": 1}}, {"result": {"action": "accept", "content": []}},
    {"result": {"action": "accept", "content": {"decision": {"a": 1}}}}, {"result": {"action": "accept\0"}},
    {"error": {"code": -1, "message": "no"}}, {"error": "x"}], ids=range(9))
def test_an_answer_that_is_none_approves_nothing(service, answer):
    client = Handshake(service, capabilities={"elicitation": {}})
    call = {"name": "run_code", "arguments": {"code": f"print({json.dumps(answer)!r})", "policy": "asked"}}
    response = service.open("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}, headers=client.headers())
    assert client.post({"jsonrpc": "2.0", "id": read_event(response)["id"]} | answer).status == 202
    result = read_event(response)["result"]
    assert result["isError"] and "print" not in json.dumps(result.get("structuredContent", {}).get("stdout", ""))
    assert result.get("structuredContent", {"status": "pending_approval"})["status"] == "pending_approval"


def test_eras_may_change_from_message_to_message_of_one_connection(service, client):
    handshake = Handshake(service, client.key)
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    for _ in range(3):
        modern = client.message("tools/list")
        for message, headers in ((modern, client.headers(modern) | {"Mcp-Session-Id": handshake.session}),
                                 ({"jsonrpc": "2.0", "id": 5, "method": "tools/list"}, handshake.headers()),
                                 ({"jsonrpc": "2.0", "id": 6, "method": "tools/list"}, ACCEPT)):
            connection.request("POST", "/mcp", json.dumps(message), headers | {"Authorization": "Bearer " + client.key["key"]})
            told = json.loads(connection.getresponse().read())
            assert told["id"] == message["id"] and ("resultType" in told["result"]) == (message is modern)
    connection.close()


def test_a_handshake_with_the_version_of_the_other_era_is_a_mismatch(service):
    client = Handshake(service, service.key())
    message = Stateless(service).message("tools/list")
    answer = client.post(message)
    assert answer.status == 400 and answer.json["error"]["code"] == -32020


# --- texts that end early ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("tool", "arguments"), [
    ("run_code", {"code": "1", "session": "mine\0x"}), ("run_code", {"code": "1", "language": "python\0"}),
    ("run_code", {"code": "1\0"}), ("run_code", {"code": "1", "session_id": "ses_\0"}), ("run_command", {"command": "echo 1\0; echo 2"}),
    ("run_code", {"code": "1", "policy": "minimal\0x"}), ("policy_explain", {"policy": "data\0x"}), ("session_open", {"policy": "minimal\0x"}),
    ("file_write", {"path": "a\0b", "content": "", "session": "mine"}), ("run_status", {"run_id": "run_\0"})])
def test_an_argument_is_not_cut_at_a_nul(client, tool, arguments):
    name = next(name for name, value in arguments.items() if "\0" in value)
    result = client.tool(tool, **arguments)
    assert result["isError"] and f"'{name}'" in text_of(result), text_of(result)


def test_a_header_is_not_cut_at_a_nul(client):
    message = client.message("tools/call", {"name": "policy_explain", "arguments": {}})
    coded = base64.b64encode(b"policy_explain\0run_code").decode()
    answer = client.post(message, client.headers(message) | {"Mcp-Name": f"=?base64?{coded}?="})
    assert answer.status == 400 and answer.json["error"]["code"] == -32020


def test_bytes_of_headers_that_are_no_text_come_back_as_json(service, client):
    message = client.message("tools/call", {"name": "policy_explain"})
    answer = client.post(message, client.headers(message) | {"Mcp-Name": b"x\xff\xc3\x9b".decode("latin-1")})
    assert answer.status == 400 and "�" in answer.json["error"]["message"]
    old = service.call("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, key=client.key,
                       headers=ACCEPT | {"MCP-Protocol-Version": b"2025\x80".decode("latin-1")})
    assert old.status == 400 and old.json["error"]["data"]["requested"] == "2025�"


@pytest.mark.parametrize("name", ["access_token", "token", "key", "api_key"])
def test_a_key_in_the_query_is_no_key(service, client, name):
    path = f"/mcp?{name}={client.key['key']}"
    assert service.call("POST", path, client.message("tools/list"), tcp=True, headers=ACCEPT).status == 401
    assert client.key["key"] not in service.log.read_text()


# --- what sandboxes print and make ------------------------------------------------------------------------------------

LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


@pytest.mark.parametrize("wait", [0, 2.5], ids=["json", "stream"])
def test_output_begins_no_line_of_the_answer(client, wait):
    forged = 'data: {"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
    text = "".join(end + forged for end in LINE_ENDS)
    code = f"import time\nprint({text!r}, flush=True)\ntime.sleep({wait})\n{text!r}"
    message = client.message("tools/call", {"name": "run_code", "arguments": {"code": code, "policy": "minimal"}})
    answer = client.post(message, client.headers(message) | ({} if wait else {"Accept": "application/json"}))
    told = messages_of(answer)[-1]["result"]
    assert answer.headers["Content-Type"] == ("text/event-stream" if wait else "application/json")
    lines = answer.body.decode().splitlines()
    assert len([line for line in lines if line.strip() and not line.startswith(":")]) == (2 if wait else 1), lines
    assert told["structuredContent"]["stdout"] == text + "\n" and text in text_of(told)


def test_names_of_files_are_shown_on_one_line(client):
    names = ["a\nb", "c\x85d", "e\u2028f", "g\x9b31mh", "i\u202ej", "\x1b]8;;http:x\x07k", "[l](http:m)", "\x7f"]
    code = f"for name in {names!r}: open(name, 'w').close()"
    result = client.tool("run_code", code=code, policy="minimal")
    shown = ["a\\x0ab", "c\\xc2\\x85d", "e\\xe2\\x80\\xa8f", "g\\xc2\\x9b31mh", "i\\xe2\\x80\\xaej", "\\x1b]8;;http:x\\x07k", "[l](http:m)", "\\x7f"]
    assert {part["name"] for part in result["content"][1:]} <= set(shown), "some are no artifacts"
    assert {file["path"] for file in result["structuredContent"]["artifacts"]} <= set(names)
    client.tool("run_code", code=code, session="mine")
    listed = text_of(client.tool("file_list", session="mine"))
    assert {line.split("  file  ")[0] for line in listed.splitlines()[:-1]} == set(shown), listed


# --- many, and gone ---------------------------------------------------------------------------------------------------

def memory_of(pid):
    return next(int(line.split()[1]) for line in open(f"/proc/{pid}/status", encoding="utf-8") if line.startswith("VmRSS"))


def files_of(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_a_thousand_clients_that_vanish_leave_nothing(service):
    key = service.key()
    daemon = service.children()["gloveboxd"]
    hello = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}).encode()
    head = (f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer {key['key']}\r\n"
            f"Content-Length: {len(hello)}\r\n\r\n").encode()
    before, files = memory_of(daemon), files_of(daemon) + 2
    for sent in (head + hello, head + hello[:20]) * 500:
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(sent)
    wait_for(lambda: service.call("POST", "/mcp", hello, key=key, headers=ACCEPT).status == 200)
    wait_for(lambda: files_of(daemon) <= files)
    assert memory_of(daemon) < before + 8192


def written_by(pid):
    """KiB of memory that a process has to itself."""
    rows = open(f"/proc/{pid}/smaps_rollup", encoding="utf-8")
    return sum(int(row.split()[1]) for row in rows if row.startswith(("Private_Dirty:", "Swap:")))


def test_open_subscriptions_take_little_memory(service):
    client = Stateless(service)
    daemon = service.children()["gloveboxd"]
    before, streams = written_by(daemon), []
    for _ in range(100):
        message = client.message("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        streams.append(service.open("POST", "/mcp", message, headers=client.headers(message)))
        assert read_event(streams[-1])["params"]["_meta"][META + "subscriptionId"] == message["id"]
    assert written_by(daemon) - before < 100 * 44
    assert "result" in client.ask("tools/list")
    for stream in streams:
        stream.close()


# --- stdio ------------------------------------------------------------------------------------------------------------

def test_mine_belongs_to_the_process_before_its_handshake(service):
    """Hosts may send messages behind `initialize` without waiting for its answer."""
    first, second = (Bridge(service.glovebox, "--socket", service.socket) for _ in range(2))
    call = {"name": "run_code", "arguments": {"code": "hidden = 1", "session": "mine"}}
    assert not first.ask(1, "tools/call", call)["result"]["isError"]
    call["arguments"]["code"] = "hidden"
    assert "NameError" in text_of(second.ask(1, "tools/call", call)["result"])
    assert first.ask(2, "tools/call", call)["result"]["structuredContent"]["results"]
    assert [first.end(), second.end()] == [0, 0]


def test_a_handshake_over_stdio_lasts_as_long_as_its_process(service):
    bridge = Bridge(service.glovebox, "--socket", service.socket)
    for count in range(3):
        assert "result" in bridge.ask(count, "initialize", HELLO)
    hello = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO})
    connection = http.client.HTTPConnection("localhost", timeout=60)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(service.socket)
    for _ in range(1100):
        connection.request("POST", "/mcp", hello, ACCEPT)
        assert b"serverInfo" in connection.getresponse().read()
    connection.close()
    assert bridge.ask(9, "ping") == {"jsonrpc": "2.0", "id": 9, "result": {}}
    assert bridge.end() == 0


def test_a_process_ends_the_last_of_many_sessions(service):
    bridge = Bridge(service.glovebox, "--socket", service.socket)
    bridge.ask(0, "initialize", HELLO)
    kept = []
    for count in range(40):
        opened = bridge.ask(count, "tools/call", {"name": "session_open", "arguments": {"policy": "minimal"}})["result"]
        kept.append(opened["structuredContent"]["id"])
        if count not in (0, 39):
            bridge.ask(count, "tools/call", {"name": "session_close", "arguments": {"session_id": kept.pop()}})
    assert [service.call("GET", f"/v1/sessions/{session}").json["state"] for session in kept] == ["running", "running"]
    assert bridge.end() == 0
    for session in kept:
        wait_for(lambda session=session: service.call("GET", f"/v1/sessions/{session}").json["state"] == "ended")


TWICE = [
    '{"jsonrpc":"2.0","id":7,"method":"ping","method":"tools/list"}',
    '{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}',
    '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"policy_explain","name":"run_code","arguments":{"code":"1"}}}',
    '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"run_code","arguments":{"code":"1","code":"2"}}}',
    '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"run_code","arguments":{"code":"1","\\u0063ode":"2"}}}',
    '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"run_code","arguments":{"code":"1"},"arguments":{"code":"2"}}}',
    '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"run_code","arguments":{"code":"1","files":[{"path":"a","path":"b","text":""}]}}}',
    '{"jsonrpc":"2.0","id":7,"method":"ping","params":{"_meta":{"progressToken":1,"progressToken":2}}}',
]


@pytest.mark.parametrize("body", TWICE)
def test_a_member_that_stands_twice_is_refused(service, client, body):
    """Two readers could see different values."""
    answer = service.call("POST", "/mcp", body.encode(), key=client.key, headers=ACCEPT)
    assert answer.status == 400 and answer.json["error"]["code"] == -32700 and "twice" in answer.json["error"]["message"], answer.body
    bridge = Bridge(service.glovebox, "--socket", service.socket)
    bridge.send(body.encode())
    refused = bridge.read()
    assert refused["error"]["code"] == -32700 and "twice" in refused["error"]["message"] and refused["id"] is None, refused
    assert "result" in bridge.ask(9, "ping")
    bridge.end()


def test_lines_that_are_no_messages_are_answered_and_the_next_is_served(service):
    bridge = Bridge(service.glovebox, "--socket", service.socket)
    deep = b'{"a":' * 10000 + b"1" + b"}" * 10000
    for line, code in ((b"{", -32700), (b"[]", -32600), (b"\0\0", -32700), (b"\xff\xfe", -32700), (b'"x"', -32600), (deep, -32700),
                       (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
                       (b'{"jsonrpc":"2.0","id":1,"method":"' + b"m" * 2**20 + b'"}', -32601), (b"Content-Length: 5", -32700),
                       (b'{"jsonrpc":"2.0","id":{"a":[1]},"method":"ping"}', -32600), (b"POST /mcp HTTP/1.1", -32700)):
        bridge.send(line)
        assert bridge.read()["error"]["code"] == code, line[:100]
    bridge.send(b" \r\n\t\n" + json.dumps({"jsonrpc": "2.0", "method": "tools/call", "params": SLEEP}).encode())
    bridge.send({"jsonrpc": "2.0", "id": "unasked", "result": {"action": "accept"}})
    meta = {"_meta": {META + "protocolVersion": NEWEST, META + "clientCapabilities": {}}}
    assert bridge.ask(7, "server/discover", meta)["id"] == 7, "and nothing came before"
    assert bridge.end() == 0


def test_a_line_of_more_than_64_mib_is_thrown_away(service):
    bridge = Bridge(service.glovebox, "--socket", service.socket)
    bridge.send(b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (65 << 20) + b'"}')
    assert bridge.read()["error"] == {"code": -32600, "message": "a message has more than 64 MiB"}
    assert bridge.ask(2, "ping")["result"] == {}
    assert bridge.end() == 0
