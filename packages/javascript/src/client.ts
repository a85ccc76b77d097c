/** Requests to a server over kept connections. */
import type { IncomingMessage } from "node:http";

import type { Endpoint } from "./endpoint.js";
import { ConnectionLostError, GloveboxError, ProtocolError, TimeoutError, errorOf } from "./errors.js";
import { EventReader } from "./events.js";
import type { ServerEvent } from "./events.js";
import { findServer } from "./server.js";
import type { ServerOptions } from "./server.js";

const BODY_MAX = 256 * 1024 * 1024; // bytes of an answer that is read as a whole: no result is larger
/** Milliseconds between attempts: a server that was killed is restarted within this time. */
export const RETRY_PAUSES = [50, 200, 500, 1000, 2000];

export type Body = string | Uint8Array | AsyncIterable<Uint8Array> | undefined;

export interface CallOptions {
  query?: Record<string, string> | undefined;
  json?: unknown;
  body?: Body;
  headers?: Record<string, string> | undefined;
  /** Seconds to wait for the answer. */
  timeout?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** A path of percent-encoded names, so that none can change the path. */
export function pathOf(...parts: string[]): string {
  return "/" + parts.map((part) => (/^\.+$/.test(part) ? part.replaceAll(".", "%2E") : encodeURIComponent(part))).join("/");
}

export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(reasonOf(signal));
      return;
    }
    const abort = (): void => {
      clearTimeout(timer);
      if (signal) reject(reasonOf(signal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

export function reasonOf(signal: AbortSignal): Error {
  const reason: unknown = signal.reason;
  return reason instanceof Error ? reason : new Error("the operation was aborted", { cause: reason });
}

/** A client of one server. */
export class Client {
  #endpoint: Promise<Endpoint> | undefined;
  readonly #options: ServerOptions;

  constructor(options: ServerOptions = {}) {
    this.#options = { ...options };
  }

  endpoint(): Promise<Endpoint> {
    if (!this.#endpoint) {
      this.#endpoint = findServer(this.#options);
      this.#endpoint.catch(() => {
        this.#endpoint = undefined;
      });
    }
    return this.#endpoint;
  }

  /** Ends the kept connections. */
  async close(): Promise<void> {
    const endpoint = await this.#endpoint?.catch(() => undefined);
    endpoint?.close();
    this.#endpoint = undefined;
  }

  /** Sends a request and waits for the head of its answer; an answer that is an error is thrown. */
  async open(method: string, path: string, options: CallOptions = {}): Promise<Response> {
    const endpoint = await this.endpoint();
    let response: Response;
    try {
      response = await this.#send(endpoint, method, path, options);
    } catch (error) {
      if (error instanceof ConnectionLostError && endpoint.isPrivate) this.#endpoint = undefined;
      throw error;
    }
    if (response.status < 400) return response;
    throw errorOf(response.status, jsonOrNothing(await response.read()));
  }

  #send(endpoint: Endpoint, method: string, path: string, options: CallOptions): Promise<Response> {
    const { signal } = options;
    const body = options.json === undefined ? options.body : JSON.stringify(options.json);
    const data = typeof body === "string" ? Buffer.from(body) : body;
    const headers: Record<string, string> = { "user-agent": "glovebox-javascript" };
    if (options.json !== undefined) headers["content-type"] = "application/json";
    if (data instanceof Uint8Array) headers["content-length"] = String(data.byteLength);
    else if (data === undefined && method !== "GET" && method !== "HEAD") headers["content-length"] = "0";
    Object.assign(headers, options.headers);
    const target = options.query ? `${path}?${new URLSearchParams(options.query).toString().replaceAll("+", "%20")}` : path;
    return new Promise<Response>((resolve, reject) => {
      if (signal?.aborted) {
        reject(reasonOf(signal));
        return;
      }
      const request = endpoint.request(method, target, headers, (answer) => {
        resolve(new Response(answer, () => request.destroy(), finish, () => failure));
      });
      let failure: Error | undefined;
      const end = (error: Error): void => {
        failure = error;
        request.destroy();
        reject(error);
      };
      const abort = (): void => {
        if (signal) end(reasonOf(signal));
      };
      const timer = options.timeout === undefined ? undefined : setTimeout(() => { end(new TimeoutError("no answer came in time")); }, options.timeout * 1000);
      const finish = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
      };
      signal?.addEventListener("abort", abort, { once: true });
      request.once("error", (error: NodeJS.ErrnoException) => {
        finish();
        reject(failure ?? (isUnreached(error) ? unreached(endpoint, error) : lost(error)));
      });
      if (data === undefined || data instanceof Uint8Array) request.end(data);
      else void sendPieces(data, request).catch((error: unknown) => { end(error instanceof Error ? error : new Error(String(error))); });
    });
  }

  /** The whole answer. An idempotent request is sent again if the connection is lost. */
  async request(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const mayRepeat = !isStream(options.body) && (["GET", "HEAD", "DELETE"].includes(method) || "idempotency-key" in (options.headers ?? {}));
    for (let attempt = 0; ; attempt++) {
      try {
        const response = await this.open(method, path, options);
        return { status: response.status, headers: response.headers, body: await response.read() };
      } catch (error) {
        const wait = mayRepeat ? RETRY_PAUSES[attempt] : undefined;
        if (!(error instanceof ConnectionLostError) || error.status !== undefined || wait === undefined) throw error;
        await pause(wait, options.signal);
      }
    }
  }

  /** The answer's JSON. */
  async call<T = Record<string, unknown>>(method: string, path: string, json?: unknown, options: CallOptions = {}): Promise<T> {
    const answer = await this.request(method, path, { ...options, json });
    if (answer.body.byteLength === 0) return undefined as T;
    const parsed = jsonOrNothing(answer.body);
    if (parsed === undefined) throw new ProtocolError("the answer is not JSON", { status: answer.status });
    return parsed as T;
  }
}

function isStream(body: Body): boolean {
  return body !== undefined && typeof body !== "string" && !(body instanceof Uint8Array);
}

async function sendPieces(pieces: AsyncIterable<Uint8Array>, request: NodeJS.WritableStream): Promise<void> {
  for await (const piece of pieces) {
    if (!request.writable) return;
    if (piece.byteLength > 0 && !request.write(piece)) await drained(request);
  }
  request.end();
}

function drained(request: NodeJS.WritableStream): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      request.off("drain", done).off("close", done);
      resolve();
    };
    request.on("drain", done).on("close", done);
  });
}

const NO_TLS = /wrong.version.number|packet.length.too.long|record.layer.failure/i;

/** No connection was made, so that no request was sent. */
function isUnreached(error: NodeJS.ErrnoException): boolean {
  return error.syscall === "connect" || error.syscall === "getaddrinfo" || NO_TLS.test(error.message);
}

function unreached(endpoint: Endpoint, error: NodeJS.ErrnoException): GloveboxError {
  if (NO_TLS.test(error.message))
    return new ConnectionLostError(`the server at ${endpoint.place} does not speak TLS: write http:// for glovebox serve's own address, or name the proxy's`);
  return new ConnectionLostError(`no server answers at ${endpoint.place} (${error.code ?? error.message}); start it there: glovebox serve, or name another`);
}

function lost(error: NodeJS.ErrnoException): GloveboxError {
  return new ConnectionLostError(`the connection to the server is lost: ${error.code ?? error.message}`);
}

function jsonOrNothing(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8"));
  } catch {
    return undefined;
  }
}

export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}

/** An answer whose body is read piece by piece. Read it to its end, or close() it. */
export class Response {
  readonly #answer: IncomingMessage;
  readonly #destroy: () => void;
  readonly #finish: () => void;
  readonly #failure: () => Error | undefined;

  constructor(answer: IncomingMessage, destroy: () => void, finish: () => void, failure: () => Error | undefined) {
    this.#answer = answer;
    this.#destroy = destroy;
    this.#finish = finish;
    this.#failure = failure;
  }

  get status(): number {
    return this.#answer.statusCode ?? 0;
  }

  get headers(): Record<string, string> {
    return Object.fromEntries(Object.entries(this.#answer.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : (value ?? "")]));
  }

  /** The body as it comes. */
  async *pieces(): AsyncGenerator<Buffer> {
    try {
      for await (const piece of this.#answer) yield piece as Buffer;
      if (!this.#answer.complete) throw new ConnectionLostError("the connection ended before the answer was complete");
    } catch (error) {
      if (error instanceof GloveboxError) throw error;
      throw this.#failure() ?? lost(error as NodeJS.ErrnoException);
    } finally {
      this.#finish();
      if (!this.#answer.complete) this.#destroy();
    }
  }

  async read(): Promise<Buffer> {
    const parts: Buffer[] = [];
    let size = 0;
    for await (const piece of this.pieces()) {
      parts.push(piece);
      size += piece.byteLength;
      if (size > BODY_MAX) throw new ProtocolError(`the answer is longer than ${BODY_MAX} bytes`);
    }
    return Buffer.concat(parts, size);
  }

  /** Server-sent events as they come. */
  async *events(): AsyncGenerator<ServerEvent> {
    const reader = new EventReader();
    for await (const piece of this.pieces()) yield* reader.feed(piece);
  }

  /** Whether the open stream keeps the program running. */
  hold(isAwaited: boolean): void {
    if (this.#answer.complete || this.#answer.destroyed) return; // its socket is closed, or used by another request
    if (isAwaited) this.#answer.socket.ref();
    else this.#answer.socket.unref();
  }

  /** Ends the connection; a run that was begun without an idempotency key is cancelled by that. */
  close(): void {
    this.#finish();
    this.#destroy();
  }
}

const clients = new Map<string, Client>();

/** The client of this program for a server, shared by all callers. */
export function sharedClient(options: ServerOptions = {}): Client {
  const names = ["GLOVEBOX_URL", "GLOVEBOX_SOCKET", "GLOVEBOX_API_KEY"].map((name) => process.env[name] ?? null);
  const key = JSON.stringify([options.url ?? null, options.socket ?? null, options.apiKey ?? null, ...names]);
  let client = clients.get(key);
  if (!client) clients.set(key, (client = new Client(options)));
  return client;
}
