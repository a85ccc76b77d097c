/** Begins a run or cell and yields its events as they come. */
import { randomUUID } from "node:crypto";

import { RETRY_PAUSES, pathOf, pause } from "./client.js";
import type { Client, Response } from "./client.js";
import { ConnectionLostError } from "./errors.js";
import { Execution, Result, bytesOf } from "./models.js";
import type { ExecutionError, OutputMessage } from "./models.js";

export type RunEvent =
  | { type: "started"; id: string }
  | { type: "stdout"; text: string; bytes: Uint8Array }
  | { type: "stderr"; text: string; bytes: Uint8Array }
  | { type: "result"; result: Result }
  | { type: "other"; kind: string; data: Record<string, unknown> }
  | { type: "end"; execution: Execution };

type Listener<T> = (what: T) => unknown;

export interface Listeners {
  onStdout?: Listener<OutputMessage> | undefined;
  onStderr?: Listener<OutputMessage> | undefined;
  onResult?: Listener<Result> | undefined;
  onError?: Listener<ExecutionError> | undefined;
}

export function hasListeners(listeners: Listeners): boolean {
  return Boolean(listeners.onStdout ?? listeners.onStderr ?? listeners.onResult ?? listeners.onError);
}

/** A stream that broke off is resumed after the last event. If the caller leaves by `break`, an error or its signal, the run
 * is cancelled. */
export async function* events(client: Client, path: string, json: unknown, signal?: AbortSignal): AsyncGenerator<RunEvent, void> {
  const headers = { accept: "text/event-stream", "idempotency-key": randomUUID() };
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  let run: string | undefined;
  let last: string | undefined;
  let hasEnded = false;
  let failed = 0;
  try {
    for (;;) {
      try {
        const response: Response =
          run === undefined
            ? await client.open("POST", path, { json, headers, signal })
            : await client.open("GET", pathOf("v1", "runs", run, "events"), { headers: last === undefined ? {} : { "last-event-id": last }, signal });
        if ((response.headers["content-type"] ?? "").includes("json")) {
          // the run has ended, and its events are no longer kept
          hasEnded = true;
          yield { type: "end", execution: new Execution(JSON.parse((await response.read()).toString()) as Record<string, unknown>) };
          return;
        }
        for await (const { kind, id, data } of response.events()) {
          failed = 0;
          last = id ?? last;
          if (kind === "started") yield { type: "started", id: (run = String(data["id"])) };
          else if (kind === "stdout" || kind === "stderr") {
            const bytes = bytesOf(data);
            yield { type: kind, bytes, text: decoders[kind].decode(bytes, { stream: true }) };
          } else if (kind === "result") yield { type: "result", result: new Result(data) };
          else if (kind === "end") {
            hasEnded = true;
            yield { type: "end", execution: new Execution(data) };
            return;
          } else yield { type: "other", kind, data };
        }
        throw new ConnectionLostError("the events ended before the run did");
      } catch (error) {
        const wait = RETRY_PAUSES[failed];
        if (!(error instanceof ConnectionLostError) || error.status !== undefined || wait === undefined) throw error;
        await pause(wait, signal);
        failed++;
      }
    }
  } finally {
    if (run !== undefined && !hasEnded) await client.call("DELETE", pathOf("v1", "runs", run), undefined, { timeout: 10 }).catch(() => undefined);
  }
}

/** Calls the listeners, and waits for those that answer with a promise. */
export async function follow(client: Client, path: string, json: unknown, listeners: Listeners, signal?: AbortSignal): Promise<Execution> {
  for await (const event of events(client, path, json, signal)) {
    if (event.type === "stdout") await listeners.onStdout?.({ line: event.text, error: false });
    else if (event.type === "stderr") await listeners.onStderr?.({ line: event.text, error: true });
    else if (event.type === "result") await listeners.onResult?.(event.result);
    else if (event.type === "end") {
      if (event.execution.error) await listeners.onError?.(event.execution.error);
      return event.execution;
    }
  }
  throw new ConnectionLostError("the events ended before the run did");
}
