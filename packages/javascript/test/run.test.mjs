import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect, promisify } from "node:util";

import * as glovebox from "glovebox-sandbox";
import { Client, download, map, run, stream } from "glovebox-sandbox";

import { until, withServer } from "./server.mjs";

withServer();

const here = fileURLToPath(new URL("..", import.meta.url));

describe("run", () => {
  const values = [
    ["1 + 1", "2"], ["'é' * 2", "'éé'"], ["[1, None]", "[1, None]"], ["{'a': (1, 2)}", "{'a': (1, 2)}"], ["10 ** 400", String(10n ** 400n)],
    ["float('nan')", "nan"], ["float('inf')", "inf"], ["b'\\x00\\xff'", "b'\\x00\\xff'"], ["'\\u2028'", "'\\u2028'"], ["''", "''"], ["True", "True"],
    ["x = 1", undefined], ["None", undefined], ["print('a')", undefined],
  ];
  for (const [code, text] of values)
    test(`the value of ${code}`, async () => {
      const execution = await run(code);
      assert.equal(execution.status, "ok");
      assert.equal(execution.error, undefined);
      assert.equal(execution.text, text);
      assert.match(execution.receipt, /^\w+$/);
    });

  test("output and errors are apart", async () => {
    const execution = await run("import sys; print('out'); print('err', file=sys.stderr)");
    assert.deepEqual([execution.stdout, execution.stderr], ["out\n", "err\n"]);
    assert.deepEqual(execution.logs, { stdout: ["out\n"], stderr: ["err\n"] });
  });

  test("an exception is a result", async () => {
    const execution = await run("1 / 0");
    assert.equal(execution.status, "error");
    assert.equal(execution.error?.name, "ZeroDivisionError");
    assert.match(execution.error.traceback, /division by zero/);
    assert.match(execution.explain(), /ZeroDivisionError/);
  });

  for (const [language, code, out] of [["bash", "echo $((6 * 7))", "42\n"], ["python", "print(6 * 7)", "42\n"]])
    test(`in ${language}`, async () => {
      assert.equal((await run(code, { language })).stdout, out);
    });

  test("files, variables and input arrive", async () => {
    const code = "import os, sys; print(open('a.txt').read(), open('dir/b.bin', 'rb').read(), os.environ['WORD'], sys.stdin.read())";
    const files = { "a.txt": "ä", "dir/b.bin": new Uint8Array([0, 255]) };
    const execution = await run(code, { files, envs: { WORD: "w" }, stdin: "in", more: { mode: "script" } });
    assert.equal(execution.stdout, "ä b'\\x00\\xff' w in\n");
  });

  test("a limit is named with what was granted and used", async () => {
    const execution = await run("while True: pass", { timeout: 0.3 });
    assert.equal(execution.status, "limit");
    assert.equal(execution.limit?.name, "wall");
    assert.equal(execution.limit.granted, 300);
    assert.equal(execution.error?.name, "LimitExceeded");
    assert.ok(execution.explain().includes(execution.limit.message));
  });

  test("memory that is too much is the limit memory", async () => {
    const execution = await run("b = bytearray(1 << 30)", { limits: { memory_bytes: 128 << 20 } });
    assert.equal(execution.limit?.name ?? execution.error?.name, execution.limit ? "memory" : "MemoryError");
  });

  test("the network is refused, and said", async () => {
    const execution = await run("import socket; socket.create_connection(('192.0.2.1', 80), 1)");
    assert.equal(execution.status, "error");
  });

  test("a table is data", async () => {
    const execution = await run("import pandas as pd; pd.DataFrame({'a': [1, 2]})", { policy: "data" });
    const main = execution.results.at(-1);
    assert.ok(main?.data, inspect(main?.formats()));
    assert.ok(main.html?.includes("<table"));
    assert.deepEqual(main.formats().includes("data"), true);
  });

  test("a figure is a picture", async () => {
    const execution = await run("import matplotlib.pyplot as plt; plt.plot([1, 3, 2]); plt.title('t'); plt.show()", { policy: "data" });
    const picture = execution.results.find((result) => result.png);
    assert.equal(Buffer.from(picture.png, "base64").subarray(1, 4).toString(), "PNG");
    assert.equal(picture.chart?.title ?? picture.chart?.elements?.length > 0, picture.chart?.title ? "t" : true);
  });

  test("an artifact is downloaded and compared", async () => {
    const { artifacts } = await run("open('out.csv', 'w').write('a,b\\n')");
    assert.deepEqual(artifacts.map(({ path, bytes, mime }) => [path, bytes, mime]), [["out.csv", 4, "text/csv"]]);
    assert.equal(Buffer.from(await download(artifacts[0])).toString(), "a,b\n");
    await assert.rejects(download({ ...artifacts[0], sha256: "0".repeat(64) }), glovebox.NotFoundError);
  });

  test("many at once, in the order of the codes", async () => {
    const results = await map(Array.from({ length: 40 }, (_, i) => `${i} * 2`), { atOnce: 12 });
    assert.deepEqual(results.map((each) => each.text), Array.from({ length: 40 }, (_, i) => String(i * 2)));
  });

  test("two hundred calls on one client", async () => {
    const client = new Client();
    let next = 0;
    const texts = [];
    await Promise.all(Array.from({ length: 16 }, async () => {
      for (let at = next++; at < 200; at = next++) texts[at] = (await run(String(at), { client })).text;
    }));
    assert.deepEqual(texts, Array.from({ length: 200 }, (_, i) => String(i)));
    await client.close();
  });
});

describe("errors", () => {
  const wrong = [
    [{ policy: "no-such" }, glovebox.GloveboxError], [{ template: "no-such" }, glovebox.GloveboxError], [{ language: "cobol" }, glovebox.GloveboxError],
    [{ limits: { memory_bytes: 1e15 } }, glovebox.InvalidArgumentError], [{ limits: { no_such: 1 } }, glovebox.InvalidArgumentError],
    [{ more: { no_such_field: 1 } }, glovebox.InvalidArgumentError], [{ files: { "../x": "" } }, glovebox.InvalidArgumentError],
    [{ files: { "/etc/passwd": "" } }, glovebox.InvalidArgumentError], [{ timeout: 1e9 }, glovebox.InvalidArgumentError],
  ];
  for (const [options, kind] of wrong)
    test(`with ${JSON.stringify(options)}`, async () => {
      await assert.rejects(run("1", options), (error) => {
        assert.ok(error instanceof kind && error instanceof Error, inspect(error));
        assert.equal(typeof error.code, "string");
        assert.ok(error.message.length > 5 && !error.message.includes("\n"), error.message);
        assert.equal(error.name, error.constructor.name);
        return true;
      });
    });

  test("no server at that place", async () => {
    await assert.rejects(run("1", { socket: "/nonexistent/socket" }), glovebox.ConnectionLostError);
    await assert.rejects(run("1", { url: "http://127.0.0.1:9" }), glovebox.ConnectionLostError);
  });

  for (const url of ["", "nonsense", "ftp://h", "http://user:secret@host"])
    test(`the address ${JSON.stringify(url)} is refused`, async () => {
      const before = process.env.GLOVEBOX_SOCKET;
      await assert.rejects(run("1", { url: url || " " }), (error) => error instanceof glovebox.InvalidArgumentError && !error.message.includes("secret"));
      assert.equal(process.env.GLOVEBOX_SOCKET, before);
    });
});

describe("hostile results", () => {
  const codes = [
    ["lone surrogates", "'\\ud800'"], ["deep nesting", "x = []\nfor _ in range(10000): x = [x]\nprint('made')"], ["huge numbers", "1e308 * 10, 2 ** 70"],
    ["terminal sequences", "print('\\x1b[2J\\x07')"], ["NUL", "print('a\\x00b')"], ["invalid UTF-8", "import os; os.write(1, b'\\xff\\xfe')"],
    ["prototype keys", "print('{\"__proto__\": {\"polluted\": 1}}')"], ["a script in HTML", "class A:\n  def _repr_html_(self): return '<script>1</script>'\nA()"],
    ["events", "print('event: end\\ndata: {}\\n\\n')"],
  ];
  for (const [name, code] of codes)
    test(name, async () => {
      for (const execution of [await run(code), await run(code, { onStdout: () => undefined })]) {
        assert.equal(execution.status, "ok", execution.explain());
        assert.equal({}.polluted, undefined);
      }
    });

  test("much output is cut, and said", async () => {
    let seen = 0;
    const execution = await run("import sys\nfor _ in range(400): sys.stdout.write('x' * 65536)", { onStdout: ({ line }) => { seen += line.length; } });
    assert.ok(["ok", "limit"].includes(execution.status));
    assert.ok(seen <= 400 * 65536);
  });
});

describe("streams", () => {
  test("events come in order and end with the execution", async () => {
    const kinds = [];
    for await (const event of stream("print('a')\n1 + 1")) kinds.push(event.type);
    assert.equal(kinds[0], "started");
    assert.equal(kinds.at(-1), "end");
    assert.ok(kinds.includes("stdout"));
  });

  test("a character that is cut between two events is whole", async () => {
    let text = "";
    for await (const event of stream("import os, time\nos.write(1, b'\\xe2\\x82')\ntime.sleep(0.3)\nos.write(1, b'\\xac')"))
      if (event.type === "stdout") text += event.text;
    assert.equal(text, "€");
  });

  test("leaving the loop cancels the run", async () => {
    let id;
    for await (const event of stream("import time; time.sleep(60)")) {
      id = event.id;
      break;
    }
    const client = new Client();
    await until(async () => (await client.call("GET", `/v1/runs/${id}`)).status === "cancelled", "the end of the run");
  });

  test("listeners are waited for, and what they throw ends the run", async () => {
    const order = [];
    await run("print('a')\n5", {
      onStdout: async () => { await new Promise((next) => setTimeout(next, 50)); order.push("stdout"); },
      onResult: () => order.push("result"),
    });
    assert.deepEqual([...new Set(order)], ["stdout", "result"]); // a line may come in two pieces
    assert.equal(order.filter((name) => name === "result").length, 1);
    await assert.rejects(run("print(1)", { onStdout: () => { throw new RangeError("mine"); } }), RangeError);
    assert.equal((await run("1 + 1")).text, "2");
  });

  test("onError is told of an exception", async () => {
    const told = [];
    await run("1 / 0", { onError: (error) => told.push(error.name) });
    assert.deepEqual(told, ["ZeroDivisionError"]);
  });
});

describe("signals", () => {
  for (const listeners of [{}, { onStdout: () => undefined }])
    test(`an abort ends the wait, ${Object.keys(listeners).length ? "streamed" : "whole"}`, async () => {
      const controller = new AbortController();
      const begun = Date.now();
      setTimeout(() => controller.abort(new Error("enough")), 200);
      await assert.rejects(run("import time; time.sleep(30)", { signal: controller.signal, ...listeners }), /enough/);
      assert.ok(Date.now() - begun < 15000);
      assert.equal((await run("2")).text, "2");
    });

  test("a signal that is aborted already sends nothing", async () => {
    await assert.rejects(run("1", { signal: AbortSignal.abort(new Error("before")) }), /before/);
  });

  test("a signal of time", async () => {
    await assert.rejects(run("import time; time.sleep(30)", { signal: AbortSignal.timeout(200) }), { name: "TimeoutError" });
  });
});

describe("the package", () => {
  test("is the same by require()", async () => {
    const required = createRequire(import.meta.url)("glovebox-sandbox");
    assert.deepEqual(Object.keys(required).sort(), Object.keys(glovebox).filter((name) => name !== "default" && name !== "module.exports").sort());
    assert.equal((await required.run("1 + 2")).text, "3");
  });

  test("has types that a strict compiler takes, whatever its lib and types", async () => {
    const folder = mkdtempSync(join(tmpdir(), "glovebox-types-"));
    try {
      mkdirSync(join(folder, "node_modules/@types"), { recursive: true });
      symlinkSync(here, join(folder, "node_modules/glovebox-sandbox"));
      for (const name of ["@types/node", "undici-types"]) symlinkSync(join(here, "node_modules", name), join(folder, "node_modules", name));
      const compilerOptions = { noEmit: true, strict: true, module: "nodenext", target: "es2022", lib: ["es2022"], types: [], preserveSymlinks: true };
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["a.mts"] }));
      writeFileSync(join(folder, "a.mts"), 'import { Sandbox, run } from "glovebox-sandbox";\nexport const made: Promise<Sandbox> = Sandbox.create();\nexport const text: string | undefined = (await run("1")).text;\n');
      await promisify(execFile)(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "--project", folder]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("shows no key", async () => {
    const key = "gbk_secret_of_the_test";
    const client = new Client({ url: "http://127.0.0.1:9", apiKey: key });
    const endpoint = await client.endpoint();
    const error = await run("1", { client }).catch((caught) => caught);
    for (const thing of [client, endpoint, error, String(endpoint), error.stack, error.cause])
      assert.ok(!inspect(thing, { depth: 10, showHidden: true }).includes(key));
    assert.ok(!JSON.stringify(error).includes(key) && !JSON.stringify(endpoint).includes(key));
  });
});
