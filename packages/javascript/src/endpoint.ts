/** The address of a server, and the key for it. */
import { Agent as HttpAgent, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http";

import { InvalidArgumentError } from "./errors.js";

export interface EndpointOptions {
  socket?: string;
  url?: string;
  apiKey?: string | undefined;
  /** A private server, which the programs of this user start again. */
  isPrivate?: boolean;
}

const KEEP = { keepAlive: true, keepAliveMsecs: 15_000, timeout: 20_000, scheduling: "lifo" } as const;

/** A Unix socket, or host and port with or without TLS. It never shows its key. */
export class Endpoint {
  readonly socket: string | undefined;
  readonly base: URL;
  readonly isPrivate: boolean;
  readonly #key: string | undefined;
  readonly #agent: HttpAgent | HttpsAgent;

  constructor(options: EndpointOptions) {
    this.socket = options.socket;
    this.isPrivate = options.isPrivate ?? false;
    this.#key = options.apiKey;
    try {
      this.base = new URL(options.socket === undefined ? (options.url ?? "") : "http://localhost");
    } catch {
      throw new InvalidArgumentError("the server's URL cannot be read; it is like https://host:8443");
    }
    if (!["http:", "https:"].includes(this.base.protocol) || this.base.username || this.base.password)
      throw new InvalidArgumentError("the server's URL begins with http:// or https:// and holds no password");
    this.#agent = this.base.protocol === "https:" ? new HttpsAgent(KEEP) : new HttpAgent(KEEP);
  }

  /** The URL of a path of this server, where it has one. */
  url(path: string): string {
    if (this.socket !== undefined)
      throw new InvalidArgumentError("a server on a Unix socket has no URL; serve with --listen, and use its address");
    return `${this.base.origin}${this.base.pathname.replace(/\/$/, "")}${path}`;
  }

  /** Begins a request. The key is added here and is stored nowhere else. */
  request(method: string, path: string, headers: Record<string, string>, answered: (answer: IncomingMessage) => void): ClientRequest {
    const options: RequestOptions = {
      method,
      path: `${this.base.pathname.replace(/\/$/, "")}${path}`,
      agent: this.#agent,
      headers: { ...headers, ...(this.#key ? { authorization: `Bearer ${this.#key}` } : {}) },
      ...(this.socket === undefined
        ? { hostname: this.base.hostname.replace(/^\[|\]$/g, ""), port: this.base.port }
        : { socketPath: this.socket }),
    };
    return this.base.protocol === "https:" ? httpsRequest(options, answered) : httpRequest(options, answered);
  }

  close(): void {
    this.#agent.destroy();
  }

  /** The path of its socket, or its URL. */
  get place(): string {
    return this.socket ?? this.url("");
  }

  toString(): string {
    return `<Endpoint ${this.place}>`;
  }
}
