/** Programs and terminals in a sandbox. */
import { randomUUID } from "node:crypto";

import { RETRY_PAUSES, pathOf, pause } from "./client.js";
import type { Client, Response } from "./client.js";
import { CommandExitError, ConnectionLostError, NotFoundError, ProtocolError, TimeoutError } from "./errors.js";
import type { ServerEvent } from "./events.js";
import { bytesOf, textFields } from "./models.js";
import type { CommandResult, ProcessInfo } from "./models.js";

type Row = Record<string, unknown>;

/** What a program wrote; `pty`: of a terminal. */
export interface Output {
  stdout?: string;
  stderr?: string;
  pty?: Uint8Array;
}

export interface OutputListeners {
  onStdout?: ((text: string) => unknown) | undefined;
  onStderr?: ((text: string) => unknown) | undefined;
  onPty?: ((data: Uint8Array) => unknown) | undefined;
}

export interface CommandOptions extends OutputListeners {
  envs?: Record<string, string> | undefined;
  cwd?: string | undefined;
  /** True: stdin stays open for sendStdin(); text or bytes: all of stdin. */
  stdin?: boolean | string | Uint8Array | undefined;
  /** Seconds; default 60, 0 for none. */
  timeout?: number | undefined;
  tag?: string | undefined;
  signal?: AbortSignal | undefined;
}

export interface PtySize {
  rows: number;
  cols: number;
}

/** A program that was started. Iterate over it, or wait() for its end; disconnect() leaves it running. */
export class CommandHandle implements AsyncIterable<Output> {
  readonly #client: Client;
  readonly #place: string;
  #response: Response;
  #events: AsyncGenerator<ServerEvent>;
  #row: Row;
  #seen: string;
  #isOver = false; // the end event has been read; the first row may already say that the program has ended
  #stdout: string[] = [];
  #stderr: string[] = [];

  private constructor(client: Client, place: string, response: Response, row: Row, events: AsyncGenerator<ServerEvent>) {
    this.#client = client;
    this.#place = place;
    this.#response = response;
    this.#events = events;
    this.#row = row;
    this.#seen = String(row["offset"]);
  }

  /** @internal */
  static async begin(client: Client, place: string, response: Response): Promise<CommandHandle> {
    const events = response.events();
    const first = await events.next();
    if (first.done || first.value.kind !== "started") throw new ProtocolError("a program's events do not begin with its start");
    const row = first.value.data;
    response.hold(false);
    return new CommandHandle(client, place + pathOf(String(row["id"])), response, row, events);
  }

  get pid(): number {
    return Number(this.#row["pid"]);
  }

  get id(): string {
    return String(this.#row["id"]);
  }

  /** Id of its signed receipt, once it has ended. */
  get receipt(): string | undefined {
    return typeof this.#row["receipt"] === "string" ? this.#row["receipt"] : undefined;
  }

  /** Undefined while it runs; 128 plus the number of a signal. */
  get exitCode(): number | undefined {
    const { exit_code: code, signal } = this.#row;
    if (typeof code === "number") return code;
    return typeof signal === "number" && signal > 0 ? 128 + signal : undefined;
  }

  get stdout(): string {
    return this.#stdout.join("");
  }

  get stderr(): string {
    return this.#stderr.join("");
  }

  async #reconnect(): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      try {
        this.#response = await this.#client.open("GET", `${this.#place}/events`, { query: { offset: this.#seen } });
        this.#events = this.#response.events();
        return;
      } catch (error) {
        const wait = RETRY_PAUSES[attempt];
        if (!(error instanceof ConnectionLostError) || wait === undefined) throw error;
        await pause(wait);
      }
    }
  }

  async #next(): Promise<ServerEvent> {
    for (;;) {
      try {
        this.#response.hold(true);
        const next = await this.#events.next();
        this.#response.hold(false);
        if (!next.done) {
          this.#seen = next.value.id ?? this.#seen;
          return next.value;
        }
      } catch (error) {
        if (!(error instanceof ConnectionLostError)) throw error;
      }
      await this.#reconnect();
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Output> {
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    while (!this.#isOver) {
      const { kind, data } = await this.#next();
      if (kind === "end") {
        this.#row = data;
        this.#isOver = true;
        this.#response.close();
      } else if (kind === "stdout" || kind === "stderr") {
        const bytes = bytesOf(data);
        if (this.#row["terminal"]) {
          yield { pty: bytes };
          continue;
        }
        const text = decoders[kind].decode(bytes, { stream: true });
        (kind === "stdout" ? this.#stdout : this.#stderr).push(text);
        yield kind === "stdout" ? { stdout: text } : { stderr: text };
      }
    }
  }

  /** Waits for the end. Another exit code than 0 throws CommandExitError, a timeout TimeoutError. */
  async wait(listeners: OutputListeners = {}): Promise<CommandResult> {
    for await (const output of this) {
      if (output.stdout !== undefined) await listeners.onStdout?.(output.stdout);
      else if (output.stderr !== undefined) await listeners.onStderr?.(output.stderr);
      else if (output.pty !== undefined) await listeners.onPty?.(output.pty);
    }
    if (this.#row["timed_out"] === true)
      throw new TimeoutError("the command was killed when its timeout was over; give it more with timeout", { fault: "limit" });
    const code = this.exitCode ?? -1;
    const message = this.#row["message"];
    if (code !== 0) throw new CommandExitError(this.stdout, this.stderr, code, typeof message === "string" ? message : null);
    return { stdout: this.stdout, stderr: this.stderr, exitCode: 0 };
  }

  async sendStdin(data: string | Uint8Array, options: { close?: boolean } = {}): Promise<void> {
    await this.#client.call("POST", `${this.#place}/stdin`, { ...textFields("data", data), ...(options.close ? { close: true } : {}) });
  }

  /** Sends a signal to the program and what it started; false if it has ended. */
  async kill(signal = "SIGKILL"): Promise<boolean> {
    return await send(this.#client, this.#place, signal);
  }

  async resize(size: PtySize): Promise<void> {
    await this.#client.call("POST", `${this.#place}/resize`, { rows: size.rows, columns: size.cols });
  }

  /** Stops listening; the program goes on. */
  disconnect(): void {
    this.#response.close();
  }
}

async function send(client: Client, place: string, signal: string): Promise<boolean> {
  try {
    await client.call("POST", `${place}/signal`, { signal, group: true });
    return true;
  } catch (error) {
    if (error instanceof NotFoundError) return false;
    throw error;
  }
}

export class Commands {
  readonly #client: Client;
  readonly #place: string;

  constructor(client: Client, session: string) {
    this.#client = client;
    this.#place = pathOf("v1", "sessions", session, "processes");
  }

  /** Runs a line for bash, or a list of program and arguments, to its end. */
  async run(cmd: string | readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
    const { signal } = options;
    const handle = await this.start(cmd, { timeout: 60, ...options });
    const abort = (): void => {
      void handle.kill().catch(() => undefined);
    };
    signal?.addEventListener("abort", abort, { once: true });
    try {
      return await handle.wait(options);
    } catch (error) {
      handle.disconnect();
      if (handle.exitCode === undefined) await handle.kill().catch(() => false);
      throw signal?.aborted ? (signal.reason as Error) : error;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  /** Starts it, and returns at once; by default without a timeout. */
  async start(cmd: string | readonly string[], options: CommandOptions = {}): Promise<CommandHandle> {
    const { stdin = false } = options;
    const handle = await this.begin({
      ...(typeof cmd === "string" ? { shell: cmd } : { command: cmd }),
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...(options.tag === undefined ? {} : { tag: options.tag }),
      ...(options.envs ? { env: options.envs } : {}),
      ...(stdin === false ? {} : { stdin: true }),
      ...(options.timeout ? { timeout_ms: Math.trunc(options.timeout * 1000) } : {}),
    }, options.signal);
    if (typeof stdin !== "boolean") await handle.sendStdin(stdin, { close: true });
    return handle;
  }

  /** @internal Starts a program by a request of POST …/processes. */
  async begin(json: Row, signal?: AbortSignal): Promise<CommandHandle> {
    const headers = { accept: "text/event-stream", "idempotency-key": randomUUID() };
    const response = await this.#client.open("POST", this.#place, { json, headers });
    if (signal?.aborted) response.close();
    return await CommandHandle.begin(this.#client, this.#place, response);
  }

  /** Running programs; with `all` also those that ended recently. */
  async list(options: { all?: boolean } = {}): Promise<ProcessInfo[]> {
    const query = options.all ? { all: "1" } : undefined;
    const { processes } = await this.#client.call<{ processes: Row[] }>("GET", this.#place, undefined, { query });
    return processes.map((row) => ({
      pid: Number(row["pid"]),
      id: String(row["id"]),
      tag: typeof row["tag"] === "string" ? row["tag"] : undefined,
      cmd: Array.isArray(row["command"]) ? row["command"].join(" ") : String(row["command"]),
      state: String(row["state"]),
      raw: row,
    }));
  }

  /** A handle for a running program, by pid, id or tag; output that is still kept is delivered again. */
  async connect(pid: number | string): Promise<CommandHandle> {
    const response = await this.#client.open("GET", `${this.#place}${pathOf(String(pid))}/events`);
    return await CommandHandle.begin(this.#client, this.#place, response);
  }

  /** False if it has ended. */
  async kill(pid: number | string): Promise<boolean> {
    return await send(this.#client, this.#place + pathOf(String(pid)), "SIGKILL");
  }

  async sendStdin(pid: number | string, data: string | Uint8Array, options: { close?: boolean } = {}): Promise<void> {
    await this.#client.call("POST", `${this.#place}${pathOf(String(pid))}/stdin`, { ...textFields("data", data), ...(options.close ? { close: true } : {}) });
  }
}

/** Terminals. */
export class Pty {
  readonly #commands: Commands;

  constructor(commands: Commands) {
    this.#commands = commands;
  }

  /** Starts a shell, or another program, in a terminal; iterate over the handle for its output. */
  async create(options: Partial<PtySize> & { cmd?: readonly string[]; cwd?: string; envs?: Record<string, string>; timeout?: number } = {}): Promise<CommandHandle> {
    return await this.#commands.begin({
      command: options.cmd ?? ["bash", "-i"],
      terminal: { rows: options.rows ?? 24, columns: options.cols ?? 80 },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...(options.envs ? { env: options.envs } : {}),
      ...(options.timeout ? { timeout_ms: Math.trunc(options.timeout * 1000) } : {}),
    });
  }
}
