"""Approvals on a web page: clients that can open the page of approval_url for their user."""

import pytest
from conftest import Glovebox
from mcp_client import Handshake, Stateless, text_of
from serving import Serving, state_of_its_own, with_policies
from test_mcp import answered, read_event

pytestmark = pytest.mark.usefixtures("python_template")

URL = "https://console.example.com/approvals/{id}?from=host"
POLICIES = {"asked": "approval: {when: [always], expires: 1h}", "elsewhere": "approval: {when: [always], by: out_of_band, scopes: [once]}"}
BOTH = {"elicitation": {"form": {}, "url": {}}}


@pytest.fixture(name="service", scope="module")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("mcp-url"))
    state_of_its_own(glovebox)
    with Serving(glovebox, "--approval-url", URL, env=with_policies(glovebox, POLICIES)) as serving:
        yield serving


def pending(service, key):
    return service.call("GET", "/v1/approvals?state=pending", key=key).json["approvals"][-1]["id"]


@pytest.mark.parametrize("capabilities", [BOTH, {"elicitation": {"url": {}}}], ids=["both", "url"])
def test_the_user_is_led_to_the_page_and_the_call_finds_what_was_decided_there(service, capabilities):
    tenant = ("--tenant", "mcp-url")
    client, decider = Stateless(service, service.key(*tenant, "--scope", "run,sessions"), capabilities), service.key(*tenant, "--scope", "approve")
    code = f"print({len(capabilities['elicitation'])})"
    first = client.tool("run_code", code=code, policy="elsewhere")
    assert first["resultType"] == "input_required"
    approval = pending(service, decider)
    question = first["inputRequests"]["approve"]
    assert question["method"] == "elicitation/create" and set(question["params"]) == {"mode", "message", "url"}
    assert question["params"]["mode"] == "url" and question["params"]["url"] == URL.replace("{id}", approval)
    assert service.call("POST", f"/v1/approvals/{approval}:decide", {"decision": "approve"}, key=decider).status == 200
    result = client.tool("run_code", answered(first, "accept"), code=code, policy="elsewhere")
    assert result["structuredContent"]["status"] == "ok", result


@pytest.mark.parametrize("answer", [{}, {"decision": "approve"}])
def test_a_host_that_accepts_at_once_decides_nothing(service, answer):
    for key in (service.key("--scope", "run,sessions,approve"), None):
        client = Stateless(service, key, BOTH)
        code = f"print('at once', {bool(key)}, {answer!r})"
        first = client.tool("run_code", code=code, policy="elsewhere")
        assert first["inputRequests"]["approve"]["params"]["mode"] == "url"
        result = client.tool("run_code", answered(first, "accept", **answer), code=code, policy="elsewhere")
        assert result["structuredContent"]["status"] == "pending_approval" and result["isError"]
        assert "https://console.example.com/approvals/apr_" in text_of(result), text_of(result)


def test_where_the_users_word_decides_a_form_is_shown(service):
    first = Stateless(service, capabilities=BOTH).tool("run_code", code="print('form')", policy="asked")
    assert first["inputRequests"]["approve"]["params"]["mode"] == "form"
    only_url = Stateless(service, capabilities={"elicitation": {"url": {}}}).tool("run_code", code="print('no form')", policy="asked")
    assert only_url["structuredContent"]["status"] == "pending_approval" and only_url["resultType"] == "complete", "it shows no forms"


def test_a_client_without_pages_gets_a_form_that_names_the_command(service):
    first = Stateless(service, service.key("--scope", "run,sessions"), {"elicitation": {}}).tool("run_code", code="print('old')", policy="elsewhere")
    assert first["inputRequests"]["approve"]["params"]["mode"] == "form"
    result = Stateless(service, service.key("--scope", "run,sessions")).tool("run_code", code="print('none')", policy="elsewhere")
    approval = result["structuredContent"]["approval"]
    assert f"glovebox approve {approval}, or at {URL.replace('{id}', approval)}. Then" in text_of(result)


def test_on_the_stream_of_a_handshake(service):
    client = Handshake(service, service.key("--scope", "run,sessions"), capabilities=BOTH)
    call = {"name": "run_code", "arguments": {"code": "print('stream')", "policy": "elsewhere"}}
    response = service.open("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}, headers=client.headers(), key=client.key)
    question = read_event(response)
    params = question["params"]
    assert params["mode"] == "url" and params["elicitationId"].startswith("apr_") and params["elicitationId"] in params["url"]
    client.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
    assert "it was not approved here" in text_of(read_event(response)["result"])
    older = Handshake(service, service.key("--scope", "run,sessions"), version="2025-06-18", capabilities=BOTH)
    response = service.open("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}, headers=older.headers(), key=older.key)
    assert "url" not in read_event(response)["params"], "that revision has no pages"
