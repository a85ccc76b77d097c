// The parts that need no server: events, paths, errors, results, the answers of servers that are none.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { describe, test } from "node:test";
import { inspect } from "node:util";

import * as glovebox from "glovebox-sandbox";
import { Client, Execution, Result } from "glovebox-sandbox";

import { pathOf } from "../dist/esm/client.js";
import { errorOf } from "../dist/esm/errors.js";
import { EventReader } from "../dist/esm/events.js";
import { absolute, entryOf, textFields } from "../dist/esm/models.js";

const bytes = (text) => Buffer.from(text);

describe("events", () => {
  const wanted = [{ kind: "stdout", id: "3", data: { data: "a\u2028b" } }, { kind: "end", id: "3", data: {} }];
  const text = 'event: stdout\nid: 3\ndata: {"data":"a\u2028b"}\n\n: comment\n\nevent: end\ndata: {}\n\n';
  for (const size of [1, 2, 3, 7, 1000])
    test(`in pieces of ${size} bytes`, () => {
      const reader = new EventReader();
      const found = [];
      for (let at = 0; at < bytes(text).length; at += size) found.push(...reader.feed(bytes(text).subarray(at, at + size)));
      assert.deepEqual(found, wanted);
    });

  test("with carriage returns, and data in two lines", () => {
    assert.deepEqual([...new EventReader().feed(bytes('event: a\r\ndata: {"x":\r\ndata: 1}\r\n\r\n'))], [{ kind: "a", id: undefined, data: { x: 1 } }]);
  });

  for (const data of ["{", "1", "null", '"x"', ""])
    test(`data that is ${data || "nothing"}`, () => {
      const feed = () => [...new EventReader().feed(bytes(`data: ${data}\n\n`))];
      assert.throws(feed, glovebox.ProtocolError);
    });

  test("what has not ended is none", () => {
    assert.deepEqual([...new EventReader().feed(bytes("event: a\ndata: {}\n"))], []);
  });
});

describe("paths", () => {
  for (const [parts, path] of [
    [["v1", "runs"], "/v1/runs"], [["a b"], "/a%20b"], [["/etc/passwd"], "/%2Fetc%2Fpasswd"], [[".."], "/%2E%2E"], [["."], "/%2E"], [["..", "x"], "/%2E%2E/x"],
    [["a/../b"], "/a%2F..%2Fb"], [["ä?#%"], "/%C3%A4%3F%23%25"], [["\r\n"], "/%0D%0A"],
  ])
    test(inspect(parts), () => {
      assert.equal(pathOf(...parts), path);
    });

  test("lie below /workspace unless they are absolute", () => {
    assert.deepEqual([absolute("a"), absolute("/a")], ["/workspace/a", "/a"]);
    assert.equal(entryOf({ path: "b", bytes: 1, mode: "644", modified_at: "1970-01-01T00:00:00.000Z" }, "/x/").path, "/x/b");
  });

  for (const [data, fields] of [["ä", { f: "ä" }], [bytes("ä"), { f: "ä" }], [new Uint8Array([255]), { f_base64: "/w==" }], [new Uint8Array(), { f: "" }]])
    test(`${inspect(data)} as a field`, () => {
      assert.deepEqual(textFields("f", data), fields);
    });
});

describe("errors", () => {
  const kinds = { bad_request: "InvalidArgumentError", not_found: "NotFoundError", conflict: "ConflictError", busy: "RateLimitError", quota: "RateLimitError",
    timeout: "TimeoutError", unavailable: "UnavailableError", unauthorized: "AuthenticationError", forbidden: "AuthenticationError", full: "NotEnoughSpaceError",
    unreached: "ConnectionLostError", something_new: "GloveboxError", __proto__x: "GloveboxError", constructor: "GloveboxError", toString: "GloveboxError" };
  for (const [code, name] of Object.entries(kinds))
    test(`${code} is a ${name}`, () => {
      const error = errorOf(418, { error: { code, message: "m", fault: "caller", retryable: true, request_id: "r" } });
      assert.deepEqual([error.name, error.code, error.status, error.message, error.fault, error.retryable, error.requestId],
        [name, code, 418, "m", "caller", true, "r"]);
    });

  for (const body of [undefined, null, "x", 5, [], {}, { error: null }, { error: "x" }])
    test(`a body that is ${inspect(body)} is no error of glovebox`, () => {
      assert.ok(errorOf(500, body) instanceof glovebox.ProtocolError);
    });
});

describe("results", () => {
  for (const row of [undefined, null, 5, "x", [], {}, { data: null }, { data: [] }, { data: { "text/plain": 5, "image/png": {} }, chart: 5, metadata: "x" }])
    test(`a result that is ${inspect(row)}`, () => {
      const result = new Result(row);
      assert.deepEqual([result.text, result.png, result.chart, result.isMainResult], [undefined, undefined, undefined, false]);
      assert.ok(Array.isArray(result.formats()));
    });

  for (const raw of [{}, { results: 5, denials: null, artifacts: {}, error: 7, limit: null, cell: 3, usage: "x" }, { status: "lost", error: null }])
    test(`an execution that is ${inspect(raw)}`, () => {
      const execution = new Execution(raw);
      assert.equal(execution.status, raw.status ?? "lost");
      assert.equal(typeof execution.explain(), "string");
      assert.deepEqual([execution.results, execution.stdout, execution.text], [[], "", undefined]);
    });

  test("keys of code inside change no object", () => {
    const raw = JSON.parse('{"id":"r","status":"ok","results":[{"main":true,"data":{"__proto__":{"x":1},"text/plain":"1"},"metadata":{"__proto__":{"x":1}}}]}');
    assert.equal(new Execution(raw).text, "1");
    assert.equal({}.x, undefined);
  });

  test("more denials than are told one by one", () => {
    const denials = Array.from({ length: 8 }, (_, i) => ({ layer: "l", target: "t", count: 1, message: `m${i}` }));
    assert.match(new Execution({ status: "error", denials }).explain(), /m4\n3 more were refused/);
  });
});

describe("what JavaScript does not check", () => {
  test("a timeout that is no number of seconds above 0 is refused, and no server is asked", async () => {
    for (const timeout of [-1, Infinity, -0.5])
      await assert.rejects(async () => await glovebox.run("1", { timeout }), /seconds above 0, not/);
  });

  test("a misspelt option is refused, and no server is asked", async () => {
    const wrong = (call) => assert.rejects(async () => await call(), (error) => error instanceof glovebox.InvalidArgumentError && /no option "tmieout"; there are .*timeout/.test(error.message));
    await wrong(() => glovebox.run("1", { tmieout: 1 }));
    await wrong(() => glovebox.map(["1"], { tmieout: 1, atOnce: 2 }));
    await wrong(() => glovebox.stream("1", { tmieout: 1 }).next());
    await wrong(() => glovebox.Sandbox.create({ tmieout: 1 }));
    await wrong(() => new glovebox.Tools({ names: ["run_shell"], tmieout: 1 }).sandbox());
  });

  test("one server is named", async () => {
    await assert.rejects(new Client({ url: "http://127.0.0.1:9", socket: "/x" }).call("GET", "/v1/limits"), /url and socket exclude each other/);
  });

  test("a format of definitions is one of three", () => {
    assert.throws(() => new glovebox.Tools().definitions("mistral"), /one of openai, anthropic, gemini, not "mistral"/);
  });
});

describe("servers that are none", () => {
  for (const [options, place] of [[{ url: "http://127.0.0.1:9" }, "http://127.0.0.1:9 (ECONNREFUSED)"], [{ socket: "/no/such" }, "/no/such (ENOENT)"]])
    test(`nothing listens at ${place}`, async () => {
      const refused = new Client({ apiKey: "glb_secret", ...options }).call("POST", "/v1/runs", {});
      await assert.rejects(refused, { name: "ConnectionLostError", message: `no server answers at ${place}; start it there: glovebox serve, or name another` });
    });

  test("one without TLS", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const url = `https://127.0.0.1:${server.address().port}`;
    const message = `the server at ${url} does not speak TLS: write http:// for glovebox serve's own address, or name the proxy's`;
    await assert.rejects(new Client({ url }).call("POST", "/v1/runs", {}), { name: "ConnectionLostError", message });
    server.close();
  });

  /** A server that answers all with these bytes, or does what a function says. */
  async function against(answer, body) {
    const server = createTcpServer((peer) => {
      peer.on("error", () => undefined);
      peer.once("data", () => (typeof answer === "function" ? answer(peer) : peer.end(answer)));
    });
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    const client = new Client({ url: `http://127.0.0.1:${server.address().port}` });
    try {
      await body(client);
    } finally {
      await client.close();
      server.close();
    }
  }

  const head = (more, body = "") => `HTTP/1.1 200 OK\r\n${more}\r\n\r\n${body}`;
  const answers = [
    ["nothing", ""], ["no HTTP", "SSH-2.0-x\r\n"], ["half a head", "HTTP/1.1 200"], ["half a body", head("Content-Length: 10", "{")],
    ["half a chunk", head("Transfer-Encoding: chunked", "a\r\n{")], ["a reset", (peer) => peer.resetAndDestroy?.() ?? peer.destroy()],
  ];
  for (const [name, answer] of answers)
    test(`${name} is a lost connection`, async () => {
      await against(answer, async (client) => {
        await assert.rejects(client.call("POST", "/v1/runs", { code: "1" }), glovebox.ConnectionLostError);
      });
    });

  for (const [name, body] of [["no JSON", "hello"], ["half of JSON", '{"id": '], ["a page", "<html>"]])
    test(`${name} is not an answer`, async () => {
      await against(head(`Content-Length: ${body.length}`, body), async (client) => {
        await assert.rejects(client.call("POST", "/v1/runs", { code: "1" }), glovebox.ProtocolError);
      });
    });

  test("a page with an error status", async () => {
    await against("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>", async (client) => {
      await assert.rejects(client.call("POST", "/v1/runs", { code: "1" }), { name: "ProtocolError", status: 502 });
    });
  });

  test("silence ends with the timeout of the caller", async () => {
    await against(() => undefined, async (client) => {
      await assert.rejects(client.call("GET", "/v1/policies", undefined, { timeout: 0.2 }), glovebox.TimeoutError);
    });
  });

  test("what may be asked twice is asked again", async () => {
    let asked = 0;
    const server = createServer((request, response) => {
      if (++asked < 3) request.socket.destroy();
      else response.end('{"n": 3}');
    });
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    const client = new Client({ url: `http://127.0.0.1:${server.address().port}` });
    assert.deepEqual(await client.call("GET", "/x"), { n: 3 });
    asked = 0;
    await assert.rejects(client.call("POST", "/x", {}), glovebox.ConnectionLostError);
    assert.equal(asked, 1);
    asked = 0;
    assert.deepEqual(await client.call("POST", "/x", {}, { headers: { "idempotency-key": "k" } }), { n: 3 });
    await client.close();
    server.close();
  });

  test("a key goes to the server and nowhere else", async () => {
    const seen = [];
    const server = createServer((request, response) => {
      seen.push([request.url, request.headers.authorization]);
      response.end("{}");
    });
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    const client = new Client({ url: `http://127.0.0.1:${server.address().port}/below/`, apiKey: "gbk_k" });
    await client.call("GET", "/x", undefined, { query: { a: "b c&d" } });
    assert.deepEqual(seen, [["/below/x?a=b%20c%26d", "Bearer gbk_k"]]);
    await client.close();
    server.close();
  });

  test("a header with a line break is refused", async () => {
    await assert.rejects(new Client({ url: "http://127.0.0.1:9", apiKey: "a\r\nX: y" }).call("GET", "/x"), (error) => !inspect(error).includes("X: y"));
  });

  test("a stream that is cut at each of its bytes is whole", async () => {
    const end = { id: "run_1", status: "ok", stdout: "0é1é2é", results: [] };
    const rows = [["started", { id: "run_1" }], ...[0, 1, 2].map((i) => ["stdout", { data: `${i}é` }]), ["end", end]];
    const streamBehind = (seen) => {
      const text = rows.map(([kind, data], i) => `event: ${kind}\nid: ${i + 1}\ndata: ${JSON.stringify(data)}\n\n`).slice(seen).join("");
      return Buffer.from(head("Content-Type: text/event-stream\r\nTransfer-Encoding: chunked", `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n0\r\n\r\n`));
    };
    const whole = streamBehind(0);
    const requests = new Map();
    const server = createTcpServer((peer) => {
      peer.on("error", () => undefined);
      peer.once("data", (data) => {
        const request = data.toString("latin1");
        const size = Number(/^\w+ \/(\d+)\//.exec(request)?.[1]);
        if (!(size < whole.length)) return void peer.destroy(); // a client of another test that had this port before it
        const before = requests.get(size) ?? [];
        requests.set(size, [...before, request]);
        const seen = Number(/last-event-id: (\d+)/i.exec(request)?.[1] ?? 0);
        peer.end(before.length === 0 ? whole.subarray(0, size) : streamBehind(seen));
      });
    });
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    await Promise.all(Array.from({ length: whole.length }, async (_, size) => {
      const client = new Client({ url: `http://127.0.0.1:${server.address().port}/${size}` });
      let said = "";
      const execution = await glovebox.run("x", { client, onStdout: ({ line }) => { said += line; } });
      assert.deepEqual([said, execution.status], ["0é1é2é", "ok"], `cut at ${size}`);
      const keys = requests.get(size).filter((each) => each.startsWith("POST")).map((each) => /idempotency-key: (\S+)/i.exec(each)[1]);
      assert.equal(new Set(keys).size, 1);
      await client.close();
    }));
    server.close();
  });

  test("an event without end is bounded", async () => {
    const line = Buffer.from(`10000\r\n${"x".repeat(0x10000)}\r\n`);
    await against((peer) => {
      peer.write(head("Content-Type: text/event-stream\r\nTransfer-Encoding: chunked", "6\r\ndata: \r\n"));
      const more = () => {
        while (!peer.destroyed && peer.write(line));
      };
      peer.on("drain", more);
      more();
    }, async (client) => {
      await assert.rejects(glovebox.run("x", { client, onStdout: () => undefined }), glovebox.ProtocolError);
    });
  });

  const results = [
    ["a number of 400 digits", `{"data": {"text/plain": "${10n ** 400n}", "application/json": ${10n ** 400n}}}`, String(10n ** 400n)],
    ["an integer above 2 ** 53", '{"data": {"text/plain": "9007199254740993", "application/json": 9007199254740993}}', "9007199254740993"],
    ["1e999 and -0.0", '{"data": {"text/plain": "x", "application/json": [1e999, -0.0]}}', "x"],
    ["a lone surrogate", '{"data": {"text/plain": "\\ud800", "text/html": "\\udc00"}}', "\ud800"],
    ["lists in 100,000 lists", `{"data": {"text/plain": "x", "application/json": ${"[".repeat(1e5)}${"]".repeat(1e5)}}}`, "x"],
    ["a key of objects", '{"data": {"text/plain": "x", "__proto__": {"polluted": 1}, "constructor": 1}}', "x"],
  ];
  for (const [name, row, text] of results)
    test(`a result with ${name} keeps its text`, async () => {
      const body = `{"id": "run_1", "status": "ok", "results": [${row.replace("{", '{"main": true, ')}]}`;
      await against(head(`Content-Length: ${Buffer.byteLength(body)}`, body), async (client) => {
        const execution = await glovebox.run("x", { client });
        assert.equal(execution.text, text);
        assert.equal({}.polluted, undefined);
        assert.ok(inspect(execution).length > 0 && execution.results[0].formats().includes("text"));
      });
    });

  test("no object and no error shows a key", async () => {
    const apiKey = "gbk_secret_of_the_test";
    const server = createServer((request, response) => {
      if (request.url.endsWith("/processes")) request.socket.destroy();
      else if (request.url === "/v1/sessions") response.end('{"id": "s1"}');
      else response.writeHead(401).end('{"error": {"code": "unauthorized", "message": "no"}}');
    });
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    const options = { url: `http://127.0.0.1:${server.address().port}`, apiKey };
    const sandbox = await glovebox.Sandbox.create(options);
    const calls = [sandbox.runCode("x"), sandbox.commands.run("x"), sandbox.files.read("a"), sandbox.files.write("a", "b"), glovebox.run("x", options),
      glovebox.Sandbox.connect("s2", options), glovebox.run("x", { ...options, onStdout: () => undefined })];
    for (const thing of [sandbox, ...await Promise.all(calls.map((call) => call.catch((error) => error)))]) {
      assert.ok(thing === sandbox || thing instanceof glovebox.GloveboxError, inspect(thing));
      const shown = inspect(thing, { depth: 10, showHidden: true }) + String(thing.stack) + JSON.stringify(Object.getOwnPropertyNames(thing).map((name) => String(thing[name])));
      assert.ok(!shown.includes(apiKey));
    }
    server.closeAllConnections?.();
    server.close();
  });

  test("connections are kept", async () => {
    const ports = new Set();
    const server = createServer((request, response) => {
      ports.add(request.socket.remotePort);
      response.end("{}");
    });
    await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
    const client = new Client({ url: `http://127.0.0.1:${server.address().port}` });
    for (let i = 0; i < 5; i++) await client.call("GET", "/x");
    assert.equal(ports.size, 1);
    await client.close();
    server.close();
  });
});
