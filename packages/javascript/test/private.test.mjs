// The private server: started when there is none, shared by programs that start at once, in JavaScript and Python.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { BUILD, TOP, until } from "./server.mjs";

const runtime = mkdtempSync(join(tmpdir(), "glovebox-js-private-"));
const run = promisify(execFile);
const env = { ...process.env, XDG_RUNTIME_DIR: runtime, GLOVEBOX_STATE: process.env.GLOVEBOX_STATE ?? join(BUILD, "state"), GLOVEBOX_PROGRAM: join(BUILD, "glovebox") };
for (const name of ["GLOVEBOX_SOCKET", "GLOVEBOX_URL", "GLOVEBOX_API_KEY", "GLOVEBOX_RUNTIME"]) delete env[name];
chmodSync(runtime, 0o711);

const PROGRAM = 'import { run } from "glovebox-sandbox"; const { text } = await run("6 * 7"); console.log(text);';
const here = fileURLToPath(new URL("..", import.meta.url));
const start = (more = {}) => run(process.execPath, ["--input-type=module", "-e", PROGRAM], { cwd: here, env: { ...env, ...more } });

/** Process ids of the servers of this folder. */
const servers = () =>
  readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith(`${join(BUILD, "glovebox")}\0serve\0--socket\0${runtime}/`);
    } catch {
      return false;
    }
  });

after(async () => {
  for (const pid of servers()) process.kill(Number(pid), "SIGTERM");
  await until(() => servers().length === 0, "the end of the server");
  rmSync(runtime, { recursive: true, force: true });
});

test("programs that start at once share one server, with those in Python", async () => {
  const python = run("/usr/bin/python3", ["-c", "import glovebox; print(glovebox.run('6 * 7').text)"], { env: { ...env, PYTHONPATH: join(TOP, "packages/python/src") } });
  const ends = await Promise.all([...Array.from({ length: 4 }, () => start()), python]);
  assert.deepEqual(ends.map(({ stdout }) => stdout.trim()), ["42", "42", "42", "42", "42"]);
  assert.equal(servers().length, 1);
});

test("a service without XDG_RUNTIME_DIR is found in the state folder", async () => {
  const state = join(runtime, "state");
  mkdirSync(join(state, "run"), { recursive: true });
  const asked = [];
  const service = createServer((socket) => { asked.push(1); socket.on("error", () => {}); socket.end("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"); });
  await new Promise((resolve) => service.listen(join(state, "run/glovebox.sock"), resolve));
  await assert.rejects(start({ XDG_RUNTIME_DIR: "", GLOVEBOX_STATE: state }));
  service.close();
  assert.ok(asked.length > 1, "it was asked for more than whether it listens");
});

test("a folder that others can enter is refused", async () => {
  const open = join(runtime, "open");
  mkdirSync(join(open, "glovebox-private"), { recursive: true });
  chmodSync(join(open, "glovebox-private"), 0o755);
  await assert.rejects(start({ XDG_RUNTIME_DIR: open }), ({ stderr }) => /mode 700/.test(stderr));
});

test("a program that is not there is said", async () => {
  const empty = join(runtime, "empty");
  mkdirSync(empty, { mode: 0o700 });
  await assert.rejects(start({ XDG_RUNTIME_DIR: empty, GLOVEBOX_PROGRAM: "", PATH: "/nonexistent" }), ({ stderr }) => /not installed here/.test(stderr));
  await assert.rejects(start({ XDG_RUNTIME_DIR: empty, GLOVEBOX_PROGRAM: "/bin/false" }), ({ stderr }) => /does not start/.test(stderr));
});
