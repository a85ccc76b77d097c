import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { ConnectionLostError, InvalidArgumentError, Sandbox, Tools } from "glovebox-sandbox";

import { withServer } from "./server.mjs";

withServer();

const NAMES = ["execute_python", "run_shell", "read_file", "write_file", "list_files"];

/** The schema of a definition, wherever the format has it. */
const parts = {
  openai: (row) => [row.function.name, row.function.description, row.function.parameters],
  anthropic: (row) => [row.name, row.description, row.input_schema],
  gemini: (row) => [row.name, row.description, row.parameters],
};

describe("definitions", () => {
  for (const format of Object.keys(parts))
    for (const name of NAMES)
      test(`${name} for ${format}`, () => {
        const rows = new Tools({ constraints: "There is no network." }).definitions(format);
        const [found, description, schema] = rows.map(parts[format]).find(([each]) => each === name);
        assert.equal(found, name);
        assert.equal(description.includes("no network"), name === "execute_python");
        assert.deepEqual(schema.required, Object.keys(schema.properties));
        assert.equal(schema.additionalProperties, format === "gemini" ? undefined : false);
        assert.deepEqual(JSON.parse(JSON.stringify(rows)), rows);
      });

  test("those that are named, and no others", () => {
    assert.deepEqual(new Tools({ names: ["read_file"] }).definitions("anthropic").map((row) => row.name), ["read_file"]);
    assert.throws(() => new Tools({ names: ["rm"] }), InvalidArgumentError);
    assert.throws(() => new Tools({ names: ["__proto__"] }), InvalidArgumentError);
  });
});

describe("answers", () => {
  test("a task in steps, in one sandbox", async () => {
    const tools = new Tools();
    try {
      assert.equal(await tools.handler("write_file", { path: "a.csv", content: "a\n1\n2\n" }), "/workspace/a.csv: 6 bytes");
      assert.equal(await tools.handler("execute_python", '{"code": "rows = open(\'a.csv\').read().split(); len(rows)"}'), "3");
      assert.equal(await tools.handler("execute_python", { code: "print('x'); rows[0]" }), "x\n'a'");
      assert.equal(await tools.handler("run_shell", { command: "wc -l < a.csv" }), "3");
      assert.equal(await tools.handler("read_file", { path: "a.csv" }), "a\n1\n2\n");
      assert.match(await tools.handler("list_files", { path: "/workspace" }), /a\.csv 6/);
      assert.equal(await tools.handler("execute_python", { code: "x = 1" }), "(no output)");
      assert.match(await tools.handler("execute_python", { code: "1 / 0" }), /ZeroDivisionError/);
      assert.equal(tools.last.status, "error");
      assert.equal(await tools.handler("run_shell", { command: "false" }), "the program ended with exit code 1");
      assert.equal(await tools.handler("run_shell", { command: "echo no >&2; (exit 4)" }), "stderr:\nno\nthe program ended with exit code 4");
      assert.match(await tools.handler("run_shell", { command: "exit 3" }), / \(exit code 3\)$/);
      for (const path of [".", "/workspace/"]) assert.equal(await tools.handler("list_files", { path }), "/workspace/a.csv 6");
      assert.match(await tools.handler("read_file", { path: "none" }), /^error: /);
      const long = await tools.handler("execute_python", { code: "print('x' * 100000)" });
      assert.ok(long.length < 21_000 && long.includes("characters are left out"));
    } finally {
      await tools.close();
    }
  });

  const wrong = [
    ["no_such", {}], ["__proto__", {}], ["constructor", {}], ["execute_python", {}], ["execute_python", { code: 1 }], ["execute_python", { code: "1", more: "2" }],
    ["execute_python", "{"], ["execute_python", "null"], ["execute_python", null], ["execute_python", []], ["execute_python", "5"], ["write_file", { path: "x" }],
    ["execute_python", '{"__proto__": {"code": "1"}}'],
  ];
  for (const [name, input] of wrong)
    test(`${name} with ${JSON.stringify(input)} is an error for the model`, async () => {
      const tools = new Tools({ socket: "/nonexistent/socket" });
      assert.match(await tools.handler(name, input), /^error: /);
    });

  test("no server is an error for the program", async () => {
    await assert.rejects(new Tools({ socket: "/nonexistent/socket" }).handler("execute_python", { code: "1" }), ConnectionLostError);
  });

  test("in each format", async () => {
    const sandbox = await Sandbox.create();
    const tools = new Tools({ sandbox });
    const input = { code: "6 * 7" };
    assert.deepEqual(await tools.answer("openai", { id: "c1", type: "function", function: { name: "execute_python", arguments: JSON.stringify(input) } }),
      { role: "tool", tool_call_id: "c1", content: "42" });
    assert.deepEqual(await tools.answer("anthropic", { id: "c2", type: "tool_use", name: "execute_python", input }),
      { type: "tool_result", tool_use_id: "c2", content: "42", is_error: false });
    assert.deepEqual(await tools.answer("gemini", { name: "execute_python", args: input }),
      { functionResponse: { name: "execute_python", response: { output: "42" } } });
    await tools.close();
    assert.equal(await sandbox.isRunning(), true);
    await sandbox.close();
  });

  test("for the AI SDK, whose functions are given", async () => {
    const tools = new Tools();
    const made = tools.forAiSdk({ tool: (definition) => definition, jsonSchema: (schema) => ({ schema }) });
    assert.deepEqual(Object.keys(made), NAMES);
    assert.deepEqual(made.run_shell.inputSchema.schema.required, ["command"]);
    assert.equal(await made.execute_python.execute({ code: "2 ** 10" }), "1024");
    await tools[Symbol.asyncDispose]();
  });
});
