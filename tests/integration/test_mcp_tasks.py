"""Long calls are answered with a task, if the client supports tasks (io.modelcontextprotocol/tasks)."""

import os
import signal
import threading
import time

import pytest
from conftest import Glovebox
from mcp_client import META, NEWEST, Bridge, Handshake, Stateless, messages_of, text_of
from serving import Serving, state_of_its_own
from test_mcp import running, wait_for

pytestmark = pytest.mark.usefixtures("python_template")

TASKS = {"extensions": {META + "tasks": {}}}
SLOW = {"name": "run_code", "arguments": {"code": "import time; time.sleep(4); print('late')", "policy": "minimal"}}
ENDLESS = {"name": "run_code", "arguments": {"code": "import time; time.sleep(60)", "policy": "minimal", "timeout_ms": 10000}}


@pytest.fixture(name="service", scope="module")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("mcp-tasks"))
    state_of_its_own(glovebox)
    with Serving(glovebox) as serving:
        yield serving


@pytest.fixture(name="client")
def client_(service):
    return Stateless(service, service.key("--scope", "run,sessions"), TASKS)


def begin(client, call=ENDLESS):
    result = client.ask("tools/call", call)["result"]
    assert result["resultType"] == "task" and result["status"] == "working", result
    return result["taskId"]


def look(client, task):
    return client.ask("tasks/get", {"taskId": task})["result"]


def ended(client, task):
    return wait_for(lambda: (told := look(client, task))["status"] != "working" and told)


def code_of(answer):
    assert "error" in answer, answer
    return answer["error"]["code"]


def test_a_long_run_is_a_task_that_gives_its_result(client):
    made = client.ask("tools/call", SLOW)["result"]
    assert made["resultType"] == "task" and made["status"] == "working" and made["taskId"].startswith("run_"), made
    assert not {"result", "content", "requestState", "inputRequests"} & set(made)
    seen = look(client, made["taskId"])
    assert seen["resultType"] == "complete" and seen["status"] == "working" and made["taskId"] in seen["statusMessage"], seen
    last = ended(client, made["taskId"])
    assert last["status"] == "completed" and last["taskId"] == made["taskId"] and last["createdAt"] == made["createdAt"], last
    assert last["lastUpdatedAt"] > made["createdAt"] and last["ttlMs"] >= 15 * 60 * 1000
    result = last["result"]
    assert not result["isError"] and "late" in text_of(result) and result["structuredContent"]["stdout"] == "late\n", result
    assert result["structuredContent"]["id"] == made["taskId"]
    assert look(client, made["taskId"]) == last, "it can be read again"


@pytest.mark.parametrize("accept", ["application/json", "application/json, text/event-stream"])
def test_a_short_run_is_answered_as_ever(client, accept):
    def call():
        message = client.message("tools/call", {"name": "run_code", "arguments": {"code": "print(1)", "policy": "minimal"}})
        return messages_of(client.post(message, client.headers(message) | {"Accept": accept}))[-1]["result"]
    result = call()
    for _ in range(4):  # a machine that is busy may have no sandbox for 2 s
        result = call() if result["resultType"] == "task" else result
    assert result["resultType"] == "complete" and result["structuredContent"]["stdout"] == "1\n"


def test_a_client_that_takes_no_stream_gets_a_task_too(client):
    message = client.message("tools/call", ENDLESS)
    answer = client.post(message, client.headers(message) | {"Accept": "application/json"})
    assert answer.headers["Content-Type"] == "application/json" and answer.json["result"]["resultType"] == "task"
    client.ask("tasks/cancel", {"taskId": answer.json["result"]["taskId"]})


def test_a_client_without_tasks_waits_for_the_result(service, client):
    result = Stateless(service, client.key).ask("tools/call", SLOW)["result"]
    assert result["resultType"] == "complete" and result["structuredContent"]["stdout"] == "late\n"
    result = Handshake(service, client.key, capabilities=TASKS).tool(**{"name": SLOW["name"]} | SLOW["arguments"])
    assert result["structuredContent"]["stdout"] == "late\n"


def test_cancel_ends_the_run_and_may_be_repeated(service, client):
    task = begin(client)
    wait_for(lambda: task in running(service, client.key))
    for _ in range(2):
        assert set(client.ask("tasks/cancel", {"taskId": task})["result"]) <= {"resultType", "_meta"}
        assert ended(client, task)["status"] == "cancelled"
    assert not {"result", "error"} & set(look(client, task))
    assert client.tool("run_status", run_id=task)["structuredContent"]["status"] == "cancelled"


@pytest.mark.parametrize(("code", "status"), [("import time; time.sleep(3); raise SystemExit(3)", "error"), ("import time; time.sleep(60)", "limit")])
def test_a_run_that_fails_is_completed_with_an_error_of_the_tool(client, code, status):
    last = ended(client, begin(client, {"name": "run_code", "arguments": {"code": code, "policy": "minimal", "timeout_ms": 4000}}))
    assert last["status"] == "completed" and last["result"]["isError"], last
    assert last["result"]["structuredContent"]["status"] in (status, "ok"), last


def test_a_cell_of_a_session_is_a_task_and_keeps_its_variables(client):
    task = begin(client, {"name": "run_code", "arguments": {"code": "import time; time.sleep(4); x = 41", "session": "mine"}})
    last = ended(client, task)
    assert "keeps variables" in text_of(last["result"]) and "(yours)" in text_of(last["result"])
    assert "42" in text_of(client.tool("run_code", code="x + 1", session="mine"))


def test_a_task_goes_on_without_connections(client):
    task = begin(client, SLOW)
    time.sleep(3)
    assert ended(client, task)["result"]["structuredContent"]["stdout"] == "late\n"


def test_unsolicited_responses_are_dropped(client):
    task = begin(client)
    for answers in ({}, {"approve": {"action": "accept"}}, {"x" * 1000: None}):
        assert client.ask("tasks/update", {"taskId": task, "inputResponses": answers})["result"]["resultType"] == "complete"
    assert code_of(client.ask("tasks/update", {"taskId": task})) == -32602
    assert look(client, task)["status"] == "working"
    client.ask("tasks/cancel", {"taskId": task})


# --- who may ask ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_client_without_tasks_gets_the_missing_capability(service, client, method):
    task = begin(client)
    for capabilities in ({}, {"extensions": {}}, {"extensions": []}, {"extensions": {META + "tasks": True}}, {"tasks": {}}):
        other = Stateless(service, client.key, capabilities)
        answer = other.post(other.message(method, {"taskId": task, "inputResponses": {}}))
        assert answer.status == 400 and code_of(answer.json) == -32021
        assert answer.json["error"]["data"] == {"requiredCapabilities": TASKS}
    assert look(client, task)["status"] == "working"
    client.ask("tasks/cancel", {"taskId": task})


def test_a_task_of_another_tenant_does_not_exist(service, client):
    task = begin(client)
    other = Stateless(service, service.key("--scope", "run,sessions"), TASKS)
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        theirs = other.ask(method, {"taskId": task, "inputResponses": {}})
        nobodys = other.ask(method, {"taskId": "run_" + "0" * 32, "inputResponses": {}})
        assert code_of(theirs) == code_of(nobodys) == -32602
        assert theirs["error"]["message"].replace(task, "") == nobodys["error"]["message"].replace("run_" + "0" * 32, "")
    assert look(client, task)["status"] == "working"
    approver = Stateless(service, service.key("--scope", "approve", "--tenant", "t"), TASKS)
    assert code_of(approver.ask("tasks/get", {"taskId": task})) == -32602
    client.ask("tasks/cancel", {"taskId": task})


def test_ids_that_are_no_task_of_the_caller(client):
    run = client.tool("run_code", code="1", policy="minimal")["structuredContent"]["id"]
    for id_ in (run, "", "run_", run.upper(), run[:-1], run + "0", "x" * 10000, "../" + run, "run_\0", "🧤"):
        message = client.message("tasks/get", {"taskId": id_})
        headers = client.headers(message)
        headers["Mcp-Name"] = "=?base64?" + __import__("base64").b64encode(id_.encode()).decode() + "?="
        answer = client.post(message, headers).json
        assert code_of(answer) in (-32602, -32020), id_
    for id_ in (None, 1, True, [], {}, [run]):
        message = client.message("tasks/get", {"taskId": id_})
        assert code_of(client.post(message, {name: value for name, value in client.headers(message).items() if name != "Mcp-Name"}).json) in (-32602, -32020)


def test_the_header_names_the_task(client):
    task = begin(client)
    for wrong in ("run_" + "0" * 32, ""):
        message = client.message("tasks/cancel", {"taskId": task})
        answer = client.post(message, client.headers(message) | {"Mcp-Name": wrong})
        assert answer.status == 400 and code_of(answer.json) == -32020
    assert look(client, task)["status"] == "working"
    client.ask("tasks/cancel", {"taskId": task})


def test_removed_and_unknown_methods_of_tasks_are_not_served(service, client):
    for method in ("tasks/list", "tasks/result", "tasks/", "tasks"):
        assert code_of(client.ask(method, {"taskId": "x"})) == -32601
    assert code_of(Handshake(service, client.key).ask("tasks/get", {"taskId": "x"})) == -32601


def test_discovery_names_the_extension_and_a_handshake_does_not(service, client):
    assert client.ask("server/discover")["result"]["capabilities"]["extensions"] == {META + "tasks": {}}
    assert "extensions" not in Handshake(service, client.key).began["capabilities"]


# --- its end ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("how", ["input", "kill"])
def test_tasks_of_a_process_end_with_it(service, how):
    bridge = Bridge(service.glovebox, "--socket", service.socket)
    meta = {META + "protocolVersion": NEWEST, META + "clientCapabilities": TASKS}
    made = bridge.ask(1, "tools/call", ENDLESS | {"_meta": meta})["result"]
    assert made["resultType"] == "task", made
    wait_for(lambda: made["taskId"] in running(service, None))
    if how == "input":
        bridge.end()
    else:
        os.kill(bridge.process.pid, signal.SIGKILL)
        bridge.process.wait(20)
    began = time.monotonic()
    wait_for(lambda: made["taskId"] not in running(service, None))
    assert time.monotonic() - began < 5


def test_many_tasks_of_one_key_take_the_places_of_its_own(service):
    """More than a key may have at once of results: the newest can be read."""
    client = Stateless(service, service.key("--scope", "run,sessions"), TASKS)
    large = {"name": "run_code", "arguments": {"code": "import time; print('x' * 900000); time.sleep(2.5)", "policy": "minimal"}}
    made = []
    threads = [threading.Thread(target=lambda: made.append(begin(client, large))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(made) == 4 and all(ended(client, task)["status"] == "completed" for task in made)


def test_runs_under_way_when_the_daemon_is_killed_are_reported_as_lost(tmp_path):
    glovebox = Glovebox(tmp_path)
    state_of_its_own(glovebox)
    with Serving(glovebox) as service:
        client = Stateless(service, service.key("--scope", "run,sessions"), TASKS)
        task = begin(client)
        dead = service.children()["gloveboxd"]
        os.kill(dead, signal.SIGKILL)

        def told():
            try:
                return service.children().get("gloveboxd") not in (None, dead) and look(client, task)
            except OSError:
                return None
        last = wait_for(told)
        assert last["status"] == "completed" and last["result"]["isError"], last
        assert last["result"]["structuredContent"]["status"] == "lost"
