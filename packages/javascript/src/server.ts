/** Finds a server, or starts a private one that the programs of this user share, those in Python as well. */
import { spawn } from "node:child_process";
import { accessSync, constants, lstatSync, mkdirSync } from "node:fs";
import { connect } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";

import { Endpoint } from "./endpoint.js";
import { GloveboxError, InvalidArgumentError, UnavailableError } from "./errors.js";
import { packedPrograms } from "./programs.js";

const START_SECONDS = 30;
const IDLE_SECONDS = 300; // without use, after which a private server ends

export interface ServerOptions {
  /** As https://host:8443. */
  url?: string | undefined;
  /** The path of a Unix socket. */
  socket?: string | undefined;
  apiKey?: string | undefined;
}

/** The server that the options name, else the environment, else one on the usual sockets, else a private one. */
export async function findServer(options: ServerOptions = {}): Promise<Endpoint> {
  if (options.url !== undefined && options.socket !== undefined) throw new InvalidArgumentError("url and socket exclude each other; name one server");
  const named = options.url !== undefined || options.socket !== undefined;
  const url = named ? options.url : process.env["GLOVEBOX_URL"];
  const socket = named ? options.socket : process.env["GLOVEBOX_SOCKET"];
  const apiKey = options.apiKey ?? process.env["GLOVEBOX_API_KEY"];
  if (socket) return new Endpoint({ socket, apiKey });
  if (url) return new Endpoint({ url, apiKey });
  for (const path of usualSockets()) if (await listens(path)) return new Endpoint({ socket: path, apiKey });
  return await privateServer();
}

function usualSockets(): string[] {
  const runtime = process.env["GLOVEBOX_RUNTIME"];
  if (runtime) return [`${runtime}/glovebox.sock`];
  const own = process.env["XDG_RUNTIME_DIR"];
  const state = process.env["GLOVEBOX_STATE"] || `${process.env["XDG_STATE_HOME"] || join(homedir(), ".local/state")}/glovebox`;
  return [...(own ? [`${own}/glovebox/glovebox.sock`] : []), `${state}/run/glovebox.sock`, "/run/glovebox/glovebox.sock"];
}

/** Whether a server listens there to which this user may connect. */
export function listens(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const peer = connect(path);
    const end = (answer: boolean): void => {
      peer.destroy();
      resolve(answer);
    };
    peer.setTimeout(5000, () => { end(false); });
    peer.once("connect", () => { end(true); });
    peer.once("error", () => { end(false); });
  });
}

/** A program in PATH. */
function findProgram(name: string): string | undefined {
  for (const folder of (process.env["PATH"] ?? "").split(":")) {
    const path = join(folder || ".", name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      continue;
    }
  }
  return undefined;
}

/** The folder of this user's private server, which no other user may read. */
function privateFolder(): string {
  const base = process.env["XDG_RUNTIME_DIR"];
  const user = process.getuid?.() ?? -1;
  const folder = base ? `${base}/glovebox-private` : `/tmp/glovebox-private-${user}`;
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw new UnavailableError(`${folder} cannot be made`, { cause: error });
  }
  const found = lstatSync(folder);
  if (!found.isDirectory() || found.uid !== user || (found.mode & 0o077) !== 0)
    throw new UnavailableError(`${folder} is not a folder of this user's alone (mode 700); remove it, or set XDG_RUNTIME_DIR`);
  return folder;
}

// Runs under the lock of the folder, as a program of its own: Node.js has no flock(2). If several programs start at once, one
// starts the server, and the others find it listening. Imports the package's template for this user, if there is none.
const STARTER = `
const { spawn, spawnSync } = require("node:child_process"), fs = require("node:fs"), net = require("node:net");
const [program, path, log, idle, seconds, archive] = JSON.parse(process.env.GLOVEBOX_STARTER);
delete process.env.GLOVEBOX_STARTER;
const listens = () => new Promise((resolve) => {
  const peer = net.connect(path);
  peer.once("connect", () => { peer.destroy(); resolve(true); });
  peer.once("error", () => resolve(false));
});
(async () => {
  if (await listens()) return;
  const file = fs.openSync(log, "w", 0o600);
  if (archive && spawnSync(program, ["template", "show", "minimal"], { stdio: "ignore" }).status !== 0 &&
      spawnSync(program, ["template", "import", archive], { stdio: ["ignore", "ignore", file] }).status !== 0)
    process.exit(1);
  const server = spawn(program, ["serve", "--socket", path, "--idle-exit", String(idle), "--log-level", "warning"],
    { stdio: ["ignore", file, file], detached: true, cwd: "/" });
  let ended = false;
  server.once("error", () => { ended = true; });
  server.once("exit", () => { ended = true; });
  for (const end = Date.now() + seconds * 1000; !(await listens()); await new Promise((next) => setTimeout(next, 10)))
    if (ended || Date.now() > end) { if (!ended) server.kill(); process.exit(1); }
  server.unref();
  process.exit(0);
})();
`;

async function privateServer(): Promise<Endpoint> {
  const folder = privateFolder();
  const socket = `${folder}/socket`;
  if (!(await listens(socket))) await start(folder, socket);
  return new Endpoint({ socket, isPrivate: true });
}

async function start(folder: string, socket: string): Promise<void> {
  const packed = process.env["GLOVEBOX_PROGRAM"] ? undefined : await packedPrograms();
  const program = process.env["GLOVEBOX_PROGRAM"] || packed?.program || findProgram("glovebox");
  if (!program)
    throw new UnavailableError(
      "no glovebox server is reachable and the program glovebox is not installed here; set GLOVEBOX_URL and GLOVEBOX_API_KEY to " +
        "a server's, or install glovebox on this machine (Linux, x86-64)",
    );
  const flock = findProgram("flock");
  if (!flock) throw new UnavailableError("the program flock (util-linux) is needed to start a private server");
  const order = JSON.stringify([program, socket, `${folder}/log`, IDLE_SECONDS, START_SECONDS, packed?.archive]);
  const evaluate = "Deno" in globalThis ? ["eval", "--ext=cjs", STARTER] : ["-e", STARTER];
  const code = await new Promise<number | null>((resolve) => {
    const child = spawn(flock, ["-o", "-x", `${folder}/lock`, process.execPath, ...evaluate], {
      stdio: "ignore",
      env: { ...process.env, GLOVEBOX_STARTER: order },
    });
    child.once("error", () => { resolve(null); });
    child.once("exit", resolve);
  });
  if (code !== 0) throw await startError(`${folder}/log`);
}

async function startError(log: string): Promise<GloveboxError> {
  const { readFile } = await import("node:fs/promises");
  const said = await readFile(log, "utf8").catch(() => "");
  return new UnavailableError(
    `a private glovebox server does not start: ${said.slice(-2000).trim() || "it said nothing"}; glovebox doctor says what is missing`,
  );
}
