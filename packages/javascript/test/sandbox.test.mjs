import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";
import { inspect, promisify } from "node:util";

import * as glovebox from "glovebox-sandbox";
import { Sandbox } from "glovebox-sandbox";

import { pause, until, withServer } from "./server.mjs";

const server = withServer();

/** A test with a sandbox that ends with it. */
function inside(name, body, options) {
  test(name, async () => {
    const sandbox = await Sandbox.create(options);
    try {
      await body(sandbox);
    } finally {
      await sandbox.close();
    }
  });
}

async function all(pieces) {
  const parts = [];
  for await (const piece of pieces) parts.push(piece);
  return Buffer.concat(parts);
}

describe("code", () => {
  inside("names stay for the next cell", async (sandbox) => {
    await sandbox.runCode("x = 20");
    const execution = await sandbox.runCode("x + 1");
    assert.deepEqual([execution.text, execution.executionCount], ["21", 2]);
  });

  inside("each language has its own names", async (sandbox) => {
    await sandbox.runCode("a=5", { language: "bash" });
    assert.equal((await sandbox.runCode("echo $a", { language: "bash" })).stdout, "5\n");
    assert.equal((await sandbox.runCode("a")).error?.name, "NameError");
  });

  inside("contexts are made, listed, restarted and removed", async (sandbox) => {
    const context = await sandbox.createCodeContext({ cwd: "/tmp", envs: { WORD: "w" } });
    assert.equal((await sandbox.runCode("import os; os.getcwd(), os.environ['WORD']", { context })).text, "('/tmp', 'w')");
    assert.ok((await sandbox.listCodeContexts()).some((each) => each.id === context.id));
    await sandbox.runCode("x = 1", { context });
    await sandbox.restartCodeContext(context);
    assert.equal((await sandbox.runCode("x", { context })).error?.name, "NameError");
    await sandbox.removeCodeContext(context);
    assert.ok((await sandbox.listCodeContexts()).every((each) => each.id !== context.id));
    await assert.rejects(sandbox.runCode("1", { context, language: "python" }), glovebox.InvalidArgumentError);
  });

  inside("an interrupt ends the cell and not its names", async (sandbox) => {
    await sandbox.runCode("x = 1");
    const cell = sandbox.runCode("import time\nprint('began', flush=True)\ntime.sleep(60)", { onStdout: () => void sandbox.interrupt() });
    assert.equal((await cell).error?.name, "KeyboardInterrupt");
    assert.equal((await sandbox.runCode("x")).text, "1");
  });

  inside("a time limit is named", async (sandbox) => {
    const execution = await sandbox.runCode("while True: pass", { timeout: 0.4 });
    assert.equal(execution.limit?.name, "wall");
  });

  inside("an abort interrupts the cell", async (sandbox) => {
    await sandbox.runCode("x = 7");
    const signal = AbortSignal.timeout(300);
    await assert.rejects(sandbox.runCode("import time; time.sleep(60)", { signal }), { name: "TimeoutError" });
    await until(async () => (await sandbox.runCode("x")).text === "7", "the next cell", 20);
  });

  inside("events of a cell", async (sandbox) => {
    const kinds = [];
    for await (const event of sandbox.stream("print('a')\n2")) kinds.push(event.type === "result" ? event.result.text : event.type);
    assert.deepEqual([...new Set(kinds)].filter((kind) => kind !== "other"), ["started", "stdout", "2", "end"]);
  });

  inside("output comes while the cell runs", async (sandbox) => {
    const code = "import os, time\nprint('ask', flush=True)\nwhile not os.path.exists('answer'): time.sleep(0.01)\nprint('end')";
    let text = "";
    for await (const event of sandbox.stream(code)) {
      if (event.type !== "stdout") continue;
      if (text === "") await sandbox.files.write("answer", "");
      text += event.text;
    }
    assert.equal(text, "ask\nend\n");
  });

  inside("leaving the loop interrupts the cell", async (sandbox) => {
    for await (const event of sandbox.stream("import time; time.sleep(60)")) if (event.type === "started") break;
    assert.equal((await sandbox.runCode("1 + 1")).text, "2");
  });

  inside("the program of users of E2B", async (sandbox) => {
    const execution = await sandbox.runCode(`
import pandas as pd, matplotlib.pyplot as plt
df = pd.DataFrame({"a": [1, 2, 3]})
df.plot()
plt.savefig("/tmp/plot.png")
print(df.describe())`);
    assert.equal(execution.error, undefined, execution.explain());
    const bytes = await sandbox.files.read("/tmp/plot.png", { format: "bytes" });
    assert.equal(Buffer.from(bytes).subarray(1, 4).toString(), "PNG");
  }, { policy: "data" });
});

describe("files", () => {
  const contents = [["text", "ä€😀\n"], ["nothing", ""], ["bytes", new Uint8Array([0, 255, 10])], ["a large file", new Uint8Array(3 << 20).fill(7)]];
  for (const [name, content] of contents)
    inside(`${name} comes back as it went`, async (sandbox) => {
      const info = await sandbox.files.write("dir/f", content);
      assert.equal(info.path, "/workspace/dir/f");
      assert.ok(Buffer.from(await sandbox.files.read("dir/f", { format: "bytes" })).equals(Buffer.from(content)));
      if (typeof content === "string") assert.equal(await sandbox.files.read("/workspace/dir/f"), content);
      assert.ok((await all(await sandbox.files.read("dir/f", { format: "stream" }))).equals(Buffer.from(content)));
    });

  for (const name of ["a b", "ü", "a#b?c=d", "%41", "a+b", "'\"", "new\nline", "..a", "a/../b", "-", "x".repeat(200)])
    inside(`a file named ${inspect(name).slice(0, 30)}`, async (sandbox) => {
      const written = await sandbox.files.write(name, "1").catch((error) => error);
      if (written instanceof Error) assert.ok(written instanceof glovebox.InvalidArgumentError && name.includes(".."), inspect(written));
      else assert.equal(await sandbox.files.read(name), "1");
    });

  inside("listed, described, moved, removed", async (sandbox) => {
    await sandbox.files.writeFiles([{ path: "d/a", data: "1" }, { path: "d/b", data: "22" }]);
    assert.deepEqual((await sandbox.files.list("d")).map(({ name, path, type, size }) => [name, path, type, size]),
      [["a", "/workspace/d/a", "file", 1], ["b", "/workspace/d/b", "file", 2]]);
    assert.equal((await sandbox.files.getInfo("d")).type, "dir");
    assert.ok((await sandbox.files.getInfo("d/a")).modifiedTime.getTime() > Date.now() - 600_000);
    assert.equal((await sandbox.files.rename("d/a", "d/c")).name, "c");
    assert.deepEqual([await sandbox.files.exists("d/a"), await sandbox.files.exists("d/c")], [false, true]);
    await sandbox.files.remove("d");
    assert.equal(await sandbox.files.exists("d"), false);
    assert.deepEqual([await sandbox.files.makeDir("e/f"), await sandbox.files.makeDir("e/f")], [true, false]);
    await assert.rejects(sandbox.files.read("gone"), glovebox.NotFoundError);
  });

  inside("a mode is kept", async (sandbox) => {
    await sandbox.files.write("run.sh", "echo hi", { mode: 0o755 });
    assert.equal((await sandbox.files.getInfo("run.sh")).mode & 0o777, 0o755);
    assert.equal((await sandbox.commands.run("./run.sh")).stdout, "hi\n");
  });

  inside("a stream is uploaded", async (sandbox) => {
    async function* pieces() {
      for (let i = 0; i < 20; i++) yield Buffer.alloc(100_000, i);
    }
    assert.equal((await sandbox.files.write("big", pieces())).size, 2_000_000);
    assert.equal((await sandbox.files.write("blob", new Blob(["ab", "c"]))).size, 3);
  });

  inside("a stream that fails leaves what was there", async (sandbox) => {
    await sandbox.files.write("kept", "old");
    async function* pieces() {
      yield Buffer.from("new");
      throw new RangeError("mine");
    }
    await assert.rejects(sandbox.files.write("kept", pieces()), RangeError);
    await pause(100);
    assert.equal(await sandbox.files.read("kept"), "old");
  });

  inside("a folder as tar, and back", async (sandbox) => {
    await sandbox.files.write("t/a", "1");
    const tar = await all(await sandbox.files.downloadDir("/workspace/t"));
    await sandbox.files.uploadDir(tar, "/workspace/u");
    assert.equal((await sandbox.files.list("u", { depth: 4 })).filter((each) => each.name === "a").length, 1);
  });

  inside("changes are seen", async (sandbox) => {
    const watch = await sandbox.files.watchDir("/workspace");
    await sandbox.files.write("seen", "1");
    for await (const { name, type } of watch) {
      assert.equal(typeof type, "string");
      if (name.endsWith("seen")) break;
    }
    watch.stop();
  });

  inside("a signed address is a path on a Unix socket", async (sandbox) => {
    await sandbox.files.write("s", "1");
    assert.match(await sandbox.files.sign("s"), /^\/v1\/signed\//);
    await assert.rejects(sandbox.getUrl(80), /--listen/);
  });
});

describe("commands", () => {
  inside("a line for bash", async (sandbox) => {
    assert.deepEqual(await sandbox.commands.run("echo out; echo err >&2; pwd"), { stdout: "out\n/workspace\n", stderr: "err\n", exitCode: 0 });
  });

  inside("a program with arguments, variables, folder and input", async (sandbox) => {
    const code = "import os, sys; print(sys.argv[1:], os.environ['A'], os.getcwd(), sys.stdin.read())";
    const done = await sandbox.commands.run(["python3", "-c", code, "a b", "$HOME"], { envs: { A: "1" }, cwd: "/tmp", stdin: "in" });
    assert.equal(done.stdout, "['a b', '$HOME'] 1 /tmp in\n");
  });

  for (const [line, code] of [["exit 3", 3], ["kill -9 $$", 137], ["no-such-program", 127]])
    inside(`${line} is thrown with its code`, async (sandbox) => {
      await assert.rejects(sandbox.commands.run(`echo before; ${line}`), (error) => {
        assert.ok(error instanceof glovebox.CommandExitError);
        assert.deepEqual([error.exitCode, error.stdout], [code, "before\n"]);
        return true;
      });
    });

  inside("the last line of stderr is in the message", async (sandbox) => {
    await assert.rejects(sandbox.commands.run("echo first >&2; ls nope"), /^CommandExitError: command ended with exit code 2: ls: .*nope.*No such file/);
  });

  test("a handle that nobody reads keeps no program running", async () => {
    const code = `import { Sandbox } from "glovebox-sandbox";
      const sandbox = await Sandbox.create({ timeout: 60 });
      await sandbox.pty.create();
      const slow = await sandbox.commands.start("sleep 0.3; echo waited");
      console.log((await slow.wait()).stdout.trim());
      await sandbox.commands.start("sleep 50");`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", code], { timeout: 10_000 });
    assert.equal(stdout, "waited\n");
  });

  inside("a timeout is thrown", async (sandbox) => {
    await assert.rejects(sandbox.commands.run("sleep 60", { timeout: 0.3 }), glovebox.TimeoutError);
  });

  inside("an abort kills it", async (sandbox) => {
    await assert.rejects(sandbox.commands.run("sleep 60", { signal: AbortSignal.timeout(200) }));
    await until(async () => (await sandbox.commands.list()).every((each) => each.state !== "running"), "its end", 20);
  });

  inside("output comes as it is printed", async (sandbox) => {
    const line = "echo a; while [ ! -e answer ]; do sleep 0.01; done; echo b >&2";
    const seen = [];
    await sandbox.commands.run(line, {
      onStdout: async (text) => {
        seen.push(text);
        await sandbox.files.write("answer", "");
      },
      onStderr: (text) => seen.push(text),
    });
    assert.deepEqual(seen, ["a\n", "b\n"]);
  });

  inside("in the background: input, listing, signals, its end", async (sandbox) => {
    const handle = await sandbox.commands.start("cat; echo end", { stdin: true, tag: "mine" });
    assert.ok((await sandbox.commands.list()).some(({ pid, tag }) => pid === handle.pid && tag === "mine"));
    await handle.sendStdin("one\n");
    await sandbox.commands.sendStdin(handle.pid, "two\n", { close: true });
    assert.deepEqual(await handle.wait(), { stdout: "one\ntwo\nend\n", stderr: "", exitCode: 0 });
    assert.match(handle.receipt, /^\w+$/);
    const other = await sandbox.commands.start("sleep 60");
    assert.equal(await other.kill("SIGTERM"), true);
    await assert.rejects(other.wait(), { exitCode: 143 });
  });

  inside("found again, with what it printed", async (sandbox) => {
    const first = await sandbox.commands.start("echo a; sleep 0.5; echo b", { tag: "again" });
    first.disconnect();
    assert.equal((await (await sandbox.commands.connect("again")).wait()).stdout, "a\nb\n");
    assert.equal(await sandbox.commands.kill("never-was"), false);
  });

  inside("a terminal", async (sandbox) => {
    const terminal = await sandbox.pty.create({ rows: 30, cols: 100, cmd: ["bash", "--norc", "-i"] });
    await terminal.sendStdin("stty size; exit\n");
    let text = "";
    for await (const { pty } of terminal) text += Buffer.from(pty ?? []).toString();
    assert.match(text, /30 100/);
    assert.equal(terminal.exitCode, 0);
  });
});

describe("its life", () => {
  test("await using ends it", async () => {
    let id;
    {
      const sandbox = await Sandbox.create();
      id = sandbox.sandboxId;
      await sandbox[Symbol.asyncDispose]();
    }
    const { state } = (await Sandbox.list()).find((each) => each.sandboxId === id) ?? { state: "ended" };
    assert.equal(state, "ended");
  });

  inside("is found by its id and its metadata", async (sandbox) => {
    assert.ok((await Sandbox.list({ metadata: { who: "a b&c" } })).some((each) => each.sandboxId === sandbox.sandboxId));
    assert.deepEqual(await Sandbox.list({ metadata: { who: "no one" } }), []);
    const again = await Sandbox.connect(sandbox.sandboxId);
    await sandbox.runCode("x = 3");
    assert.equal((await again.runCode("x")).text, "3");
    const info = await sandbox.getInfo();
    assert.deepEqual([info.sandboxId, info.metadata], [sandbox.sandboxId, { who: "a b&c" }]);
    assert.ok(info.startedAt instanceof Date && info.raw.id === sandbox.sandboxId);
  }, { metadata: { who: "a b&c" } });

  test("kill says whether it lived", async () => {
    const sandbox = await Sandbox.create();
    assert.equal(await sandbox.isRunning(), true);
    assert.equal(await sandbox.kill(), true);
    assert.equal(await sandbox.kill(), false);
    assert.equal(await sandbox.isRunning(), false);
    await assert.rejects(sandbox.runCode("1"), glovebox.GloveboxError);
    await assert.rejects(Sandbox.connect(sandbox.sandboxId), glovebox.NotFoundError);
    await sandbox.close();
  });

  inside("pauses and goes on", async (sandbox) => {
    await sandbox.runCode("x = 9");
    await sandbox.pause();
    assert.equal(await sandbox.isRunning(), false);
    const again = await Sandbox.connect(sandbox.sandboxId);
    assert.equal((await again.runCode("x")).text, "9");
  });

  inside("its time is set", async (sandbox) => {
    await sandbox.setTimeout(600);
    const { endAt } = await sandbox.getInfo();
    assert.ok(Math.abs(endAt.getTime() - Date.now() - 600_000) < 30_000);
  });

  inside("branches are independent", async (sandbox) => {
    await sandbox.runCode("x = [1]");
    await sandbox.files.write("f", "1");
    const branches = await sandbox.branch(2);
    try {
      for (const [i, branch] of branches.entries()) await branch.runCode(`x.append(${i + 2})`);
      assert.deepEqual(await Promise.all([sandbox, ...branches].map(async (each) => (await each.runCode("x")).text)), ["[1]", "[1, 2]", "[1, 3]"]);
      assert.equal(await branches[0].files.read("f"), "1");
    } finally {
      await Promise.all(branches.map((each) => each.close()));
    }
  });

  inside("goes back to a checkpoint", async (sandbox) => {
    await sandbox.runCode("x = 1");
    const checkpoint = await sandbox.checkpoint("first");
    await sandbox.runCode("x = 2");
    assert.deepEqual((await sandbox.checkpoints()).map((each) => each.name), ["first"]);
    await sandbox.rollback(checkpoint);
    assert.equal((await sandbox.runCode("x")).text, "1");
  });

  inside("a server inside is reached", async (sandbox) => {
    await sandbox.files.write("index.html", "<h1>inside</h1>");
    const handle = await sandbox.commands.start("exec python3 -m http.server 8000");
    let answer;
    await until(async () => (answer = await sandbox.request(8000, { path: "/index.html" }).catch(() => undefined)) !== undefined, "the server inside");
    assert.equal(answer.body.toString(), "<h1>inside</h1>");
    await assert.rejects(sandbox.request(8000, { path: "/none" }), { code: "port", status: 404 });
    assert.equal(typeof (await sandbox.getPortToken()), "string");
    await handle.kill();
  }, { policy: "server" });
});

describe("a server that is killed", () => {
  test("a run that was begun is answered as lost or told, and the next one works", async () => {
    const { run } = glovebox;
    const told = run("import time\nprint('began', flush=True)\ntime.sleep(5)", { onStdout: () => { process.kill(server.daemon(), "SIGKILL"); } });
    const end = await told.catch((error) => error);
    assert.ok(end instanceof glovebox.GloveboxError || end.status === "lost", inspect(end).slice(0, 500));
    await until(async () => (await run("1 + 1").catch(() => undefined))?.text === "2", "the next run");
  });

  test("a session is gone, and said to be", async () => {
    const sandbox = await Sandbox.create();
    await sandbox.runCode("x = 1");
    process.kill(server.daemon(), "SIGKILL");
    await until(async () => (await glovebox.run("1").catch(() => undefined))?.text === "1", "the server");
    await assert.rejects(sandbox.runCode("x"), glovebox.GloveboxError);
    await sandbox.close();
  });
});
