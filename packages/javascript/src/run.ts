/** Runs, each in a fresh sandbox. */
import { createHash } from "node:crypto";

import { pathOf, sharedClient } from "./client.js";
import type { Client } from "./client.js";
import { ProtocolError } from "./errors.js";
import { events, follow, hasListeners } from "./follow.js";
import type { Listeners, RunEvent } from "./follow.js";
import { Execution, textFields } from "./models.js";
import type { Artifact } from "./models.js";
import { checkOptions, milliseconds } from "./options.js";
import type { Names } from "./options.js";
import type { ServerOptions } from "./server.js";

type Row = Record<string, unknown>;

export interface RunOptions extends ServerOptions, Listeners {
  language?: string | undefined;
  /** Seconds that the code may run. */
  timeout?: number | undefined;
  envs?: Record<string, string> | undefined;
  /** Input files: path and content. */
  files?: Record<string, string | Uint8Array> | undefined;
  stdin?: string | Uint8Array | undefined;
  policy?: string | undefined;
  template?: string | undefined;
  limits?: Row | undefined;
  network?: unknown;
  /** Any other key of POST /v1/runs, such as args or expect. */
  more?: Row | undefined;
  /** Cancels the run. */
  signal?: AbortSignal | undefined;
  client?: Client | undefined;
}

const OPTIONS: Names<RunOptions> = {
  language: true, timeout: true, envs: true, files: true, stdin: true, policy: true, template: true, limits: true, network: true, more: true,
  signal: true, client: true, url: true, socket: true, apiKey: true, onStdout: true, onStderr: true, onResult: true, onError: true,
};

/** The body of POST /v1/runs. Python runs as a cell, so that the last value and figures come back. */
function requestOf(code: string, options: RunOptions): Row {
  const { language, timeout, files } = options;
  checkOptions(options, OPTIONS);
  return {
    code,
    ...(language === undefined ? {} : { language }),
    ...(language === undefined || language === "python" ? { mode: "cell" } : {}),
    ...(options.policy === undefined ? {} : { policy: options.policy }),
    ...(options.template === undefined ? {} : { template: options.template }),
    ...(options.network === undefined ? {} : { network: options.network }),
    ...(options.limits || timeout ? { limits: { ...options.limits, ...(timeout ? { wall_ms: milliseconds(timeout) } : {}) } } : {}),
    ...(options.envs ? { env: options.envs } : {}),
    ...(files ? { files: Object.entries(files).map(([path, data]) => ({ path, ...textFields("content", data) })) } : {}),
    ...(options.stdin === undefined ? {} : textFields("stdin", options.stdin)),
    ...options.more,
  };
}

/** Runs code in a fresh sandbox, which is removed afterwards. */
export async function run(code: string, options: RunOptions = {}): Promise<Execution> {
  const client = options.client ?? sharedClient(options);
  const json = requestOf(code, options);
  if (hasListeners(options)) return await follow(client, "/v1/runs", json, options, options.signal);
  // If the caller aborts, the connection is closed, and the server cancels the run.
  return new Execution(await client.call("POST", "/v1/runs", json, { signal: options.signal }));
}

/** The events of a run as they come; leaving the loop cancels it. */
export function stream(code: string, options: RunOptions = {}): AsyncGenerator<RunEvent, void> {
  return events(options.client ?? sharedClient(options), "/v1/runs", requestOf(code, options), options.signal);
}

/** Runs each element of `codes` in a fresh sandbox, eight at once (`atOnce`); results have the same order. */
export async function map(codes: Iterable<string>, options: RunOptions & { atOnce?: number } = {}): Promise<Execution[]> {
  const { atOnce = 8, ...rest } = options;
  const rows = [...codes];
  const results: Execution[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < rows.length; at = next++) results[at] = await run(rows[at] ?? "", rest);
  };
  await Promise.all(Array.from({ length: Math.min(Math.max(1, atOnce), rows.length) }, worker));
  return results;
}

/** The bytes of a file that a run has made, after a check of their hash. */
export async function download(artifact: Artifact, options: ServerOptions & { client?: Client } = {}): Promise<Uint8Array> {
  const client = options.client ?? sharedClient(options);
  const digest = artifact.sha256.replace(/^.*:/, "");
  const { body } = await client.request("GET", pathOf("v1", "artifacts", digest));
  if (createHash("sha256").update(body).digest("hex") !== digest) throw new ProtocolError("the bytes of the artifact do not have its hash");
  return body;
}
