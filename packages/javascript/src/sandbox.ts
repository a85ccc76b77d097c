/** A sandbox that keeps its variables and files between runs: a session of the server. */
import { randomUUID } from "node:crypto";

import { RETRY_PAUSES, pathOf, pause, sharedClient } from "./client.js";
import type { Answer, Client } from "./client.js";
import { Commands, Pty } from "./commands.js";
import { GloveboxError, InvalidArgumentError, NotFoundError, ProtocolError } from "./errors.js";
import { Files } from "./files.js";
import { events, follow, hasListeners } from "./follow.js";
import type { Listeners, RunEvent } from "./follow.js";
import { Execution, infoOf } from "./models.js";
import type { Checkpoint, CodeContext, SandboxInfo } from "./models.js";
import { checkOptions, milliseconds } from "./options.js";
import type { Names } from "./options.js";
import type { ServerOptions } from "./server.js";

type Row = Record<string, unknown>;

export interface SandboxOptions extends ServerOptions {
  /** What is installed in it. */
  template?: string | undefined;
  /** What it may do; default: the server's. */
  policy?: string | undefined;
  /** Seconds until it ends in any case. */
  timeout?: number | undefined;
  /** Seconds without use after which it ends. */
  idleTimeout?: number | undefined;
  metadata?: Record<string, string> | undefined;
  envs?: Record<string, string> | undefined;
  cwd?: string | undefined;
  /** As { memory_bytes: 1 << 30 }; names in docs/reference/limits.md. */
  limits?: Row | undefined;
  /** Less of the network than the policy allows. */
  network?: unknown;
  client?: Client | undefined;
}

export interface RunCodeOptions extends Listeners {
  language?: string | undefined;
  context?: CodeContext | string | undefined;
  /** Seconds that the code may run; `execution.limit` says if it took longer. */
  timeout?: number | undefined;
  limits?: Row | undefined;
  /** Rules for its output (docs/output-validation.md). */
  expect?: unknown;
  /** The id of an approval. */
  approval?: string | undefined;
  /** Interrupts the cell. */
  signal?: AbortSignal | undefined;
}

const OPTIONS: Names<SandboxOptions> = {
  template: true, policy: true, timeout: true, idleTimeout: true, metadata: true, envs: true, cwd: true, limits: true, network: true,
  client: true, url: true, socket: true, apiKey: true,
};

const RUN_OPTIONS: Names<RunCodeOptions> = {
  language: true, context: true, timeout: true, limits: true, expect: true, approval: true, signal: true, onStdout: true, onStderr: true,
  onResult: true, onError: true,
};

function given(fields: Row): Row {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function clientOf(options: ServerOptions & { client?: Client | undefined }): Client {
  return options.client ?? sharedClient(options);
}

export class Sandbox implements AsyncDisposable {
  readonly sandboxId: string;
  readonly files: Files;
  readonly commands: Commands;
  readonly pty: Pty;
  readonly #client: Client;
  readonly #place: string;

  private constructor(client: Client, row: Row) {
    this.#client = client;
    this.sandboxId = String(row["id"]);
    this.#place = pathOf("v1", "sessions", this.sandboxId);
    this.files = new Files(client, this.sandboxId);
    this.commands = new Commands(client, this.sandboxId);
    this.pty = new Pty(this.commands);
  }

  static async create(options: SandboxOptions = {}): Promise<Sandbox> {
    checkOptions(options, OPTIONS);
    const client = clientOf(options);
    const json = given({
      policy: options.policy,
      template: options.template,
      ttl_seconds: options.timeout,
      idle_seconds: options.idleTimeout,
      metadata: options.metadata,
      env: options.envs,
      limits: options.limits,
      network: options.network,
      cwd: options.cwd,
    });
    return new Sandbox(client, await client.call("POST", "/v1/sessions", json, { headers: { "idempotency-key": randomUUID() } }));
  }

  /** An existing sandbox, by its id. A paused one is resumed. */
  static async connect(sandboxId: string, options: ServerOptions & { client?: Client } = {}): Promise<Sandbox> {
    const client = clientOf(options);
    const row = await client.call("GET", pathOf("v1", "sessions", sandboxId));
    const sandbox = new Sandbox(client, row);
    if (row["state"] === "paused") await sandbox.resume();
    else if (row["state"] === "ended") {
      const ended = row["ended"] as { message?: string } | null | undefined;
      throw new NotFoundError(`the sandbox has ended: ${ended?.message ?? ""}`, { code: "not_found" });
    }
    return sandbox;
  }

  /** Running and paused sandboxes, the newest first; with `state` those of that state, or `all`. */
  static async list(options: ServerOptions & { client?: Client; metadata?: Record<string, string>; state?: string } = {}): Promise<SandboxInfo[]> {
    const client = clientOf(options);
    const query: Record<string, string> = { limit: "100", ...(options.state === undefined ? {} : { state: options.state }) };
    if (options.metadata) query["metadata"] = new URLSearchParams(options.metadata).toString().replaceAll("+", "%20");
    const found: SandboxInfo[] = [];
    for (;;) {
      const answer = await client.call<{ sessions: Row[]; next_cursor?: string | null }>("GET", "/v1/sessions", undefined, { query });
      found.push(...answer.sessions.map(infoOf));
      if (!answer.next_cursor) return found;
      query["cursor"] = answer.next_cursor;
    }
  }

  // --- code ---

  #cell(code: string, options: RunCodeOptions): [string, Row] {
    const { language, context, timeout } = options;
    checkOptions(options, RUN_OPTIONS);
    if (language !== undefined && context !== undefined) throw new InvalidArgumentError("language and context exclude each other");
    const name = typeof context === "object" ? context.id : (context ?? language ?? "python");
    const limits = options.limits || timeout ? { ...options.limits, ...(timeout ? { wall_ms: milliseconds(timeout) } : {}) } : undefined;
    return [`${this.#place}${pathOf("contexts", name, "run")}`, given({ code, limits, expect: options.expect, approval: options.approval })];
  }

  /** Runs a cell: variables are kept for the next one; the value of the last expression and open figures come back. Errors of the
   * code are in `execution.error`; an error is thrown only if there is no result. */
  async runCode(code: string, options: RunCodeOptions = {}): Promise<Execution> {
    const [path, json] = this.#cell(code, options);
    if (hasListeners(options)) return await follow(this.#client, path, json, options, options.signal);
    // If the caller aborts, the connection is closed, and the server interrupts the cell.
    return new Execution(await this.#client.call("POST", path, json, { signal: options.signal }));
  }

  /** The events of a cell as they come; leaving the loop interrupts it. */
  stream(code: string, options: RunCodeOptions = {}): AsyncGenerator<RunEvent, void> {
    const [path, json] = this.#cell(code, options);
    return events(this.#client, path, json, options.signal);
  }

  /** One more interpreter, with variables of its own. */
  async createCodeContext(options: { language?: string; cwd?: string; envs?: Record<string, string> } = {}): Promise<CodeContext> {
    const json = given({ language: options.language ?? "python", cwd: options.cwd, env: options.envs });
    return contextOf(await this.#client.call("POST", `${this.#place}/contexts`, json));
  }

  async listCodeContexts(): Promise<CodeContext[]> {
    return (await this.#client.call<{ contexts: Row[] }>("GET", `${this.#place}/contexts`)).contexts.map(contextOf);
  }

  async removeCodeContext(context: CodeContext | string): Promise<void> {
    await this.#context("DELETE", context, "");
    const name = typeof context === "string" ? context : context.id;
    for (const wait of RETRY_PAUSES) {
      // its interpreter ends
      if ((await this.listCodeContexts()).every((each) => each.id !== name)) return;
      await pause(wait);
    }
  }

  /** A fresh interpreter: its variables are gone. */
  async restartCodeContext(context: CodeContext | string = "python"): Promise<void> {
    await this.#context("POST", context, "/restart");
  }

  /** Raises KeyboardInterrupt in the running cell; false if none runs. */
  async interrupt(context: CodeContext | string = "python"): Promise<boolean> {
    const { body } = await this.#context("POST", context, "/interrupt");
    return (JSON.parse(body.toString()) as { interrupted: boolean }).interrupted;
  }

  async #context(method: string, context: CodeContext | string, what: string): Promise<Answer> {
    return await this.#client.request(method, `${this.#place}${pathOf("contexts", typeof context === "string" ? context : context.id)}${what}`);
  }

  // --- pause, deadlines, end ---

  async getInfo(): Promise<SandboxInfo> {
    return infoOf(await this.#client.call("GET", this.#place));
  }

  async isRunning(): Promise<boolean> {
    try {
      return !["ended", "paused"].includes((await this.getInfo()).state);
    } catch (error) {
      if (error instanceof NotFoundError) return false;
      throw error;
    }
  }

  /** Sets the time until it ends, in seconds from now. */
  async setTimeout(seconds: number): Promise<void> {
    await this.#client.call("PATCH", this.#place, { ttl_seconds: seconds });
  }

  /** Changes its deadlines, in seconds from now, and its metadata, in one request. */
  async update(options: { timeout?: number; idleTimeout?: number; metadata?: Record<string, string> }): Promise<SandboxInfo> {
    const json = given({ ttl_seconds: options.timeout, idle_seconds: options.idleTimeout, metadata: options.metadata });
    return infoOf(await this.#client.call("PATCH", this.#place, json));
  }

  /** Stops all programs in it, which keep their memory, until resume() or connect(). With keep "files" the programs end, and only
   * the files are kept. */
  async pause(options: { keep?: "memory" | "files" } = {}): Promise<void> {
    await this.#client.request("POST", `${this.#place}/pause`, { query: options.keep === undefined ? undefined : { keep: options.keep } });
  }

  async resume(): Promise<void> {
    await this.#client.request("POST", `${this.#place}/resume`);
  }

  /** n sandboxes with the files and the variables of this one, independent of it and of each other. */
  async branch(n = 1, options: { context?: string; checkpoint?: Checkpoint | string; metadata?: Record<string, string>; timeout?: number; idleTimeout?: number } = {}): Promise<Sandbox[]> {
    const { checkpoint } = options;
    const json = given({
      context: options.context,
      checkpoint: typeof checkpoint === "object" ? checkpoint.id : checkpoint,
      metadata: options.metadata,
      ttl_seconds: options.timeout,
      idle_seconds: options.idleTimeout,
    });
    const made: Sandbox[] = [];
    try {
      for (let i = 0; i < n; i++) {
        const row = await this.#client.call("POST", `${this.#place}/branch`, json, { headers: { "idempotency-key": randomUUID() } });
        made.push(new Sandbox(this.#client, row));
      }
    } catch (error) {
      await Promise.allSettled(made.map((each) => each.close()));
      throw error;
    }
    return made;
  }

  /** Saves variables and files, for rollback() and branch(). */
  async checkpoint(name = `checkpoint-${randomUUID().slice(0, 8)}`, options: { context?: string } = {}): Promise<Checkpoint> {
    return checkpointOf(await this.#client.call("POST", `${this.#place}/checkpoints`, given({ name, context: options.context })));
  }

  async removeCheckpoint(checkpoint: Checkpoint | string): Promise<void> {
    await this.#client.request("DELETE", `${this.#place}${pathOf("checkpoints", typeof checkpoint === "string" ? checkpoint : checkpoint.id)}`);
  }

  async checkpoints(): Promise<Checkpoint[]> {
    return (await this.#client.call<{ checkpoints: Row[] }>("GET", `${this.#place}/checkpoints`)).checkpoints.map(checkpointOf);
  }

  async rollback(checkpoint: Checkpoint | string): Promise<void> {
    const id = typeof checkpoint === "string" ? checkpoint : checkpoint.id;
    await this.#client.call("POST", `${this.#place}${pathOf("checkpoints", id, "rollback")}`, {});
  }

  /** Ends the sandbox; no error if it has ended already. */
  async close(): Promise<void> {
    await this.kill();
  }

  /** Ends it; false if it had ended before. */
  async kill(): Promise<boolean> {
    try {
      const row = await this.#client.call("GET", this.#place);
      if (row["state"] === "ended") return false;
      await this.#client.call("DELETE", this.#place);
      return true;
    } catch (error) {
      if (error instanceof NotFoundError) return false;
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** The URL of a server that listens inside on this port; send getPortToken() as X-Glovebox-Port-Token. */
  async getUrl(port: number, path = "/"): Promise<string> {
    return (await this.#client.endpoint()).url(`${this.#place}/ports/${port}${path}`);
  }

  async getPortToken(): Promise<string> {
    return (await this.#client.call<{ token: string }>("GET", `${this.#place}/ports:token`)).token;
  }

  /** A request to a server that listens inside: its status, headers and body. */
  async request(port: number, options: { method?: string; path?: string; body?: string | Uint8Array; headers?: Record<string, string>; timeout?: number; signal?: AbortSignal } = {}): Promise<Answer> {
    const { method = "GET", path = "/", ...rest } = options;
    try {
      return await this.#client.request(method, `${this.#place}/ports/${port}${path}`, rest);
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.status === undefined) throw error;
      throw new GloveboxError(`the server inside answered with HTTP status ${error.status}`, { code: "port", status: error.status, fault: "code" });
    }
  }
}

function contextOf(row: Row): CodeContext {
  return { id: String(row["id"]), language: String(row["language"]), cwd: String(row["cwd"]) };
}

function checkpointOf(row: Row): Checkpoint {
  return { id: String(row["id"]), name: String(row["name"]), bytes: Number(row["bytes"]), raw: row };
}
