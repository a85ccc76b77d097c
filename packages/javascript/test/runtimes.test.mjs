// The same program in Node.js, Bun and Deno. GLOVEBOX_JS_RUNTIMES names the folder where tools/test-javascript has installed the last two.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";

import { withServer } from "./server.mjs";

const server = withServer();
const MODULE = join(dirname(fileURLToPath(import.meta.url)), "../dist/esm/index.js");
const FOLDER = process.env.GLOVEBOX_JS_RUNTIMES;
const RUNTIMES = {
  "Node.js": [process.execPath],
  Bun: [join(FOLDER ?? "", "node_modules/@oven/bun-linux-x64/bin/bun")],
  Deno: [join(FOLDER ?? "", "node_modules/@deno/linux-x64-glibc/deno"), "run", "--allow-all"],
};
const PROGRAM = `
import { Sandbox, Tools, run, stream } from "${pathToFileURL(MODULE)}";
const said = [], timeout = 10, options = { policy: "minimal", timeout };
const sandbox = await Sandbox.create({ policy: "minimal" });
said.push((await sandbox.runCode("x = 6 * 7; x", { timeout })).text);
await sandbox.files.write("a", new Uint8Array([104, 105]));
said.push(await sandbox.files.read("a"), (await sandbox.commands.run("cat a")).stdout);
let lines = "";
await sandbox.runCode("for i in range(3): print(i, flush=True)", { timeout, onStdout: ({ line }) => { lines += line; } });
said.push(lines);
const control = new AbortController();
try {
  for await (const event of stream("print(1, flush=True); import time; time.sleep(9)", { ...options, signal: control.signal }))
    if (event.type === "stdout") control.abort(new Error("enough"));
} catch (error) { said.push(error.message); }
for await (const event of stream("print(1, flush=True); import time; time.sleep(9)", options)) if (event.type === "stdout") break;
try { await sandbox.commands.run("exit 3"); } catch (error) { said.push(error.name, error.exitCode); }
said.push((await run("1 / 0", options)).error.name);
try { await Sandbox.connect("ses_none"); } catch (error) { said.push(error.name); }
const tools = new Tools({ sandbox });
said.push(await tools.handler("execute_python", '{"code": "x"}'));
await sandbox.close();
console.log(JSON.stringify(said));
`;
const EXPECTED = ["42", "hi", "hi", "0\n1\n2\n", "enough", "CommandExitError", 3, "ZeroDivisionError", "NotFoundError", "42"];

for (const [name, [program, ...words]] of Object.entries(RUNTIMES))
  test(`${name} runs a program with sandboxes, streams, signals and tools, and ends`, { skip: !existsSync(program) && "it is not installed" }, async () => {
    const file = join(server.folder, "program.mjs");
    writeFileSync(file, PROGRAM);
    const { stdout } = await promisify(execFile)(program, [...words, file], { timeout: 120_000, env: { ...process.env, NO_COLOR: "1" } });
    assert.deepEqual(JSON.parse(stdout), EXPECTED);
  });
