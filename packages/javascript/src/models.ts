/** The values that calls return: executions and their results, files, commands, sandboxes. Code inside a sandbox wrote them. */

type Row = Record<string, unknown>;

const TABLE = "application/vnd.glovebox.table+json";

/** Field of a Result: its MIME type. */
const FORMS = {
  text: "text/plain",
  html: "text/html",
  markdown: "text/markdown",
  svg: "image/svg+xml",
  png: "image/png",
  jpeg: "image/jpeg",
  pdf: "application/pdf",
  latex: "text/latex",
  json: "application/json",
  javascript: "application/javascript",
  data: TABLE,
} as const;

export interface Chart {
  type?: string;
  title?: string;
  elements?: unknown[];
  [name: string]: unknown;
}

function rowOf(value: unknown): Row {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Row) : {};
}

function rowsOf(value: unknown): Row[] {
  return Array.isArray(value) ? value.map(rowOf) : [];
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** One value or display of a cell, in all its formats. Pictures are base64. */
export class Result {
  readonly text: string | undefined;
  readonly html: string | undefined;
  readonly markdown: string | undefined;
  readonly svg: string | undefined;
  readonly png: string | undefined;
  readonly jpeg: string | undefined;
  readonly pdf: string | undefined;
  readonly latex: string | undefined;
  readonly json: unknown;
  readonly javascript: string | undefined;
  /** The rows of a table. */
  readonly data: Row | undefined;
  /** The numbers of a figure (docs/cells.md). */
  readonly chart: Chart | undefined;
  readonly metadata: Row;
  /** Formats with other MIME types. */
  readonly extra: Row;
  /** Whether it is the value of the last expression. */
  readonly isMainResult: boolean;

  constructor(value: unknown) {
    const row = rowOf(value);
    const data = rowOf(row["data"]);
    this.text = textOf(data[FORMS.text]);
    this.html = textOf(data[FORMS.html]);
    this.markdown = textOf(data[FORMS.markdown]);
    this.svg = textOf(data[FORMS.svg]);
    this.png = textOf(data[FORMS.png]);
    this.jpeg = textOf(data[FORMS.jpeg]);
    this.pdf = textOf(data[FORMS.pdf]);
    this.latex = textOf(data[FORMS.latex]);
    this.json = data[FORMS.json];
    this.javascript = textOf(data[FORMS.javascript]);
    this.data = data[TABLE] === undefined ? undefined : rowOf(data[TABLE]);
    this.chart = typeof row["chart"] === "object" && row["chart"] !== null ? (row["chart"] as Chart) : undefined;
    this.metadata = rowOf(row["metadata"]);
    const known = new Set<string>(Object.values(FORMS));
    this.extra = Object.fromEntries(Object.entries(data).filter(([name]) => !known.has(name)));
    this.isMainResult = row["main"] === true;
  }

  /** Names of its formats. */
  formats(): string[] {
    const names = (Object.keys(FORMS) as (keyof typeof FORMS)[]).filter((name) => this[name] !== undefined);
    return [...names, ...(this.chart ? ["chart"] : []), ...Object.keys(this.extra).sort()];
  }
}

/** The output, in pieces as it came. */
export interface OutputMessage {
  line: string;
  error: boolean;
}

/** The exception that ended the code; or, if a limit, a policy or glovebox did, its name and message. */
export interface ExecutionError {
  name: string;
  value: string;
  traceback: string;
}

export interface Limit {
  name: string;
  granted: number;
  used: number;
  unit: string;
  message: string;
}

export interface Denial {
  layer: string;
  target: string;
  count: number;
  message: string;
}

/** A file that a run has made. `sha256` is the hash of its bytes, `url` the path at the server. */
export interface Artifact {
  path: string;
  bytes: number;
  sha256: string;
  mime: string;
  url: string;
}

const NAMES: Readonly<Record<string, string>> = {
  limit: "LimitExceeded",
  denied: "PolicyDenied",
  pending_approval: "ApprovalPending",
  cancelled: "Cancelled",
  lost: "Lost",
};
const ENDS: Readonly<Record<string, string>> = { ok: "it ended well", cancelled: "it was cancelled" };

/** The result of a run or cell. `raw` has all fields as the server sent them (docs/api.md). */
export class Execution {
  readonly raw: Readonly<Row>;
  readonly id: string;
  /** ok, error, limit, denied, pending_approval, cancelled or lost. */
  readonly status: string;
  /** Undefined if a signal ended it, or it never began. */
  readonly exitCode: number | undefined;
  readonly results: Result[];
  readonly logs: { stdout: string[]; stderr: string[] };
  readonly limit: Limit | undefined;
  readonly denials: Denial[];
  readonly artifacts: Artifact[];
  readonly usage: Row;
  readonly receipt: string | undefined;
  readonly approval: string | undefined;
  readonly executionCount: number | undefined;
  readonly error: ExecutionError | undefined;

  constructor(raw: Row) {
    this.raw = raw;
    this.id = textOf(raw["id"]) ?? "";
    this.status = textOf(raw["status"]) ?? "lost";
    this.exitCode = numberOf(raw["exit_code"]);
    this.results = rowsOf(raw["results"]).map((row) => new Result(row));
    const lines = (name: string): string[] => [textOf(raw[name]) ?? ""].filter(Boolean);
    this.logs = { stdout: lines("stdout"), stderr: lines("stderr") };
    this.limit = raw["limit"] ? (rowOf(raw["limit"]) as unknown as Limit) : undefined;
    this.denials = rowsOf(raw["denials"]) as unknown as Denial[];
    this.artifacts = rowsOf(raw["artifacts"]) as unknown as Artifact[];
    this.usage = rowOf(raw["usage"]);
    this.receipt = textOf(raw["receipt"]);
    this.approval = textOf(raw["approval"]);
    this.executionCount = numberOf(rowOf(raw["cell"])["number"]);
    this.error = this.#error();
  }

  #error(): ExecutionError | undefined {
    const row = this.raw["error"] ? rowOf(this.raw["error"]) : undefined;
    const traceback = textOf(row?.["traceback"]) ?? "";
    if (this.limit) return { name: "LimitExceeded", value: this.limit.message, traceback };
    if (row) return { name: textOf(row["name"]) ?? "", value: textOf(row["value"]) ?? "", traceback };
    if (this.status === "ok") return undefined;
    if (this.status !== "error") return { name: NAMES[this.status] ?? this.status, value: this.explain(), traceback: "" };
    return { name: "ProgramFailed", value: `the program ended with ${this.#ending()}`, traceback: this.stderr };
  }

  #ending(): string {
    return this.exitCode === undefined ? `signal ${String(this.raw["signal"])}` : `exit code ${this.exitCode}`;
  }

  get stdout(): string {
    return this.logs.stdout.join("");
  }

  get stderr(): string {
    return this.logs.stderr.join("");
  }

  /** The value of the last expression as text. */
  get text(): string | undefined {
    return this.results.find((result) => result.isMainResult)?.text;
  }

  /** How it ended, and what to do, in a few lines for people and models. */
  explain(): string {
    const lines: string[] = [];
    const row = this.raw["error"] ? rowOf(this.raw["error"]) : undefined;
    if (this.limit) lines.push(this.limit.message);
    else if (row) {
      const ending = row["name"] === "ContextEnded" && this.exitCode !== undefined ? ` (${this.#ending()})` : "";
      lines.push(`${textOf(row["name"]) ?? ""}: ${textOf(row["value"]) ?? ""}${ending}`);
    } else if (this.status === "error") lines.push(`the program ended with ${this.#ending()}`);
    lines.push(...this.denials.slice(0, 5).map((denial) => denial.message));
    if (this.denials.length > 5) lines.push(`${this.denials.length - 5} more were refused`);
    if (this.status === "pending_approval") lines.push(`it waits for a person: glovebox approvals show ${this.approval ?? ""}`);
    return lines.join("\n") || (ENDS[this.status] ?? this.status);
  }
}

type FileType = "file" | "dir" | "link" | "other";

/** A file or folder of a sandbox. `mode` is its permissions as a number. A link has a `target`, and the type of its target. */
export interface EntryInfo {
  name: string;
  path: string;
  type: FileType;
  size: number;
  mode: number;
  modifiedTime: Date;
  target?: string;
  targetType?: FileType;
}

const TYPES: Readonly<Record<string, FileType>> = { file: "file", folder: "dir", link: "link" };

/** Makes one from a row of the server; its path is relative to `folder`. */
export function entryOf(value: unknown, folder?: string): EntryInfo {
  const row = rowOf(value);
  const relative = textOf(row["path"]) ?? "";
  const [target, targetType] = [textOf(row["target"]), textOf(row["target_type"])];
  const path = absolute(folder === undefined ? relative : `${folder}/${relative}`);
  return {
    name: textOf(row["name"]) ?? path.slice(path.lastIndexOf("/") + 1),
    path,
    type: TYPES[textOf(row["type"]) ?? "file"] ?? "other",
    size: numberOf(row["bytes"]) ?? 0,
    mode: parseInt(textOf(row["mode"]) ?? "0", 8),
    modifiedTime: new Date(textOf(row["modified_at"]) ?? 0),
    ...(target === undefined ? {} : { target }),
    ...(targetType === undefined ? {} : { targetType: TYPES[targetType] ?? "other" }),
  };
}

/** The absolute path inside: a relative one is below /workspace; "./" and "//" are removed. */
export function absolute(path: string): string {
  const parts = (path.startsWith("/") ? path : `/workspace/${path}`).split("/");
  return `/${parts.filter((part) => part !== "" && part !== ".").join("/")}`;
}

/** A change below a watched folder: create, write, remove, rename, mode; lost: events were missed. */
export interface FilesystemEvent {
  name: string;
  type: string;
}

export interface CommandResult {
  stdout: string;
  stderr: string;
  exitCode: number;
}

export interface ProcessInfo {
  pid: number;
  id: string;
  tag: string | undefined;
  cmd: string;
  state: string;
  raw: Row;
}

export interface CodeContext {
  id: string;
  language: string;
  cwd: string;
}

export interface Checkpoint {
  id: string;
  name: string;
  bytes: number;
  raw: Row;
}

/** A sandbox as the server knows it. */
export interface SandboxInfo {
  sandboxId: string;
  state: string;
  template: string;
  policy: string;
  metadata: Record<string, string>;
  startedAt: Date | undefined;
  endAt: Date | undefined;
  raw: Row;
}

export function infoOf(row: Row): SandboxInfo {
  const time = (name: string): Date | undefined => {
    const text = textOf(row[name]);
    return text === undefined ? undefined : new Date(text);
  };
  return {
    sandboxId: textOf(row["id"]) ?? "",
    state: textOf(row["state"]) ?? "",
    template: textOf(rowOf(row["template"])["name"]) ?? "",
    policy: textOf(rowOf(row["policy"])["name"]) ?? "",
    metadata: rowOf(row["metadata"]) as Record<string, string>,
    startedAt: time("created_at"),
    endAt: time("expires_at"),
    raw: row,
  };
}

/** The bytes of an output event. */
export function bytesOf(row: Row): Buffer {
  const encoded = textOf(row["data_base64"]);
  return encoded === undefined ? Buffer.from(textOf(row["data"]) ?? "") : Buffer.from(encoded, "base64");
}

/** The member `name` or, for data that is not UTF-8, `name_base64` of a request. */
export function textFields(name: string, data: string | Uint8Array): Record<string, string> {
  if (typeof data === "string") return { [name]: data };
  const bytes = Buffer.from(data);
  const text = bytes.toString("utf8");
  return Buffer.from(text).equals(bytes) ? { [name]: text } : { [`${name}_base64`]: bytes.toString("base64") };
}
