"""A client of the Model Context Protocol that can also be hostile: messages as they are, over HTTP or stdin."""

import itertools
import json
import subprocess
import time

META = "io.modelcontextprotocol/"
NEWEST = "2026-07-28"
ACCEPT = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def patient(call):
    """Makes a call again while the machine is too busy for it, as its result says that it may."""
    for _ in range(5):
        result = call()
        if not (result.get("isError") and "The same call may succeed in a moment" in text_of(result)):
            break
        time.sleep(0.5)
    return result


def messages_of(answer):
    """What an answer says: JSON, or the events of a stream."""
    if answer.headers.get("Content-Type") == "text/event-stream":
        return [json.loads(line[6:]) for line in answer.body.decode().splitlines() if line.startswith("data: ")]
    return [answer.json] if answer.body else []


class Stateless:
    """Each request says all about itself (2026-07-28)."""

    def __init__(self, service, key=None, capabilities=None):
        self.service, self.key, self.capabilities = service, key, capabilities or {}
        self.ids = itertools.count(1)

    def message(self, method, params=None, **meta):
        own = {META + "protocolVersion": NEWEST, META + "clientCapabilities": self.capabilities,
               META + "clientInfo": {"name": "test", "version": "1"}}
        return {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": {"_meta": own | meta} | (params or {})}

    def headers(self, message):
        params = message["params"]
        headers = ACCEPT | {"MCP-Protocol-Version": NEWEST, "Mcp-Method": message["method"]}
        name = params.get("name") or params.get("uri") or params.get("taskId")
        session = params.get("arguments", {}).get("session_id")
        return headers | ({"Mcp-Name": name} if name else {}) | ({"Mcp-Param-Session": session} if session else {})

    def post(self, message, headers=None):
        return self.service.call("POST", "/mcp", message, key=self.key,
                                 headers=self.headers(message) if headers is None else headers)

    def ask(self, method, params=None, **meta):
        answer = self.post(self.message(method, params, **meta))
        return messages_of(answer)[-1]

    def tool(self, name, rounds=None, **arguments):
        """The result of a call; `rounds` are the members of a later round."""
        def call():
            answer = self.ask("tools/call", {"name": name, "arguments": arguments} | (rounds or {}))
            assert "result" in answer, answer
            return answer["result"]
        return call() if rounds else patient(call)


class Handshake:
    """A session that begins with initialize (2025-03-26 to 2025-11-25)."""

    def __init__(self, service, key=None, version="2025-11-25", capabilities=None):
        self.service, self.key, self.session, self.version = service, key, None, version
        self.ids = itertools.count(1)
        answer = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": {"name": "test", "version": "1"}}})
        self.began = answer.json["result"]
        self.version = self.began["protocolVersion"]
        self.session = answer.headers["Mcp-Session-Id"]
        assert self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202

    def headers(self):
        return ACCEPT | ({"Mcp-Session-Id": self.session, "MCP-Protocol-Version": self.version} if self.session else {})

    def post(self, message):
        return self.service.call("POST", "/mcp", message, key=self.key, headers=self.headers())

    def ask(self, method, params=None):
        return messages_of(self.post({"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params or {}}))[-1]

    def tool(self, name, **arguments):
        return patient(lambda: self.ask("tools/call", {"name": name, "arguments": arguments})["result"])


class Bridge:
    """A `glovebox mcp`."""

    def __init__(self, glovebox, *arguments, env=None):
        self.process = glovebox.start("mcp", *arguments, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE)

    def send(self, message):
        self.process.stdin.write((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")
        self.process.stdin.flush()

    def read(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, id_, method, params=None):
        self.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}})
        return self.read()

    def end(self):
        self.process.stdin.close()
        return self.process.wait(20)


def text_of(result):
    return result["content"][0]["text"]
