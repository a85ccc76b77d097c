// What the tests share: a server of their own. GLOVEBOX_BUILD names the build folder (build/ of the checkout), GLOVEBOX_STATE the
// folder with templates.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { chmodSync } from "node:fs";
import { connect } from "node:net";

export const TOP = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");
export const BUILD = resolve(process.env.GLOVEBOX_BUILD ?? join(TOP, "build"));
const STATE = resolve(process.env.GLOVEBOX_STATE ?? join(BUILD, "state"));

export const pause = (ms) => new Promise((next) => setTimeout(next, ms));

export const listens = (path) =>
  new Promise((told) => {
    const peer = connect(path);
    peer.once("connect", () => { peer.destroy(); told(true); });
    peer.once("error", () => told(false));
  });

export async function until(condition, what = "it", seconds = 60) {
  for (const end = Date.now() + seconds * 1000; !(await condition()); await pause(20))
    if (Date.now() > end) throw new Error(`${what} does not come to be in ${seconds} s`);
}

export class Server {
  constructor(...settings) {
    this.settings = settings;
    this.folder = mkdtempSync(join(tmpdir(), "glovebox-js-"));
    chmodSync(this.folder, 0o711);
    this.socket = join(this.folder, "socket");
    for (const name of ["state", "run"]) mkdirSync(join(this.folder, name));
    symlinkSync(join(STATE, "templates"), join(this.folder, "state/templates"));
    this.env = { ...process.env, GLOVEBOX_STATE: join(this.folder, "state"), GLOVEBOX_RUNTIME: join(this.folder, "run") };
  }

  async start() {
    const log = openSync(join(this.folder, "log"), "a");
    this.process = spawn(join(BUILD, "glovebox"), ["serve", "--socket", this.socket, "--log-level", "warning", ...this.settings],
      { env: this.env, stdio: ["ignore", log, log] });
    this.ended = new Promise((told) => this.process.once("exit", told));
    let failure;
    this.process.once("error", (error) => { failure = error; });
    await until(async () => {
      if (failure ?? this.process.exitCode !== null) throw failure ?? new Error(`the server does not start: ${this.log()}`);
      return await listens(this.socket);
    }, "the server");
    return this;
  }

  /** The process id of gloveboxd. */
  daemon() {
    const children = readFileSync(`/proc/${this.process.pid}/task/${this.process.pid}/children`, "utf8").split(" ").filter(Boolean);
    return Number(children.find((pid) => existsSync(`/proc/${pid}/comm`) && readFileSync(`/proc/${pid}/comm`, "utf8").startsWith("gloveboxd")));
  }

  log() {
    return readFileSync(join(this.folder, "log"), "utf8");
  }

  async stop() {
    this.process.kill("SIGTERM");
    await this.ended;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A server for all tests of a file; `GLOVEBOX_SOCKET` names it. */
export function withServer(...settings) {
  const server = new Server(...settings);
  before(async () => {
    await server.start();
    process.env.GLOVEBOX_SOCKET = server.socket;
    delete process.env.GLOVEBOX_URL;
    delete process.env.GLOVEBOX_API_KEY;
  });
  after(async () => {
    await server.stop();
  });
  return server;
}

