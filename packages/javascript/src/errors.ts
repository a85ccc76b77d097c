/** The errors. All are GloveboxError; `code` is the code of the server's error (docs/reference/errors.md). */

export interface ErrorFacts {
  code?: string | undefined;
  status?: number | undefined;
  fault?: string | undefined;
  retryable?: boolean | undefined;
  requestId?: string | undefined;
  cause?: unknown;
}

/** A request has no result. A program that fails inside a sandbox is a result, and throws nothing. */
export class GloveboxError extends Error {
  readonly code: string;
  readonly status: number | undefined;
  /** The cause: caller, code, limit, policy or glovebox. */
  readonly fault: string | undefined;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  readonly requestId: string | undefined;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = new.target.name;
    this.code = facts.code ?? "internal";
    this.status = facts.status;
    this.fault = facts.fault;
    this.retryable = facts.retryable ?? false;
    this.requestId = facts.requestId;
  }
}

/** The connection to the server ended before the answer was complete, or there is no server. */
export class ConnectionLostError extends GloveboxError {
  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, { code: "connection", fault: "glovebox", retryable: true, ...facts });
  }
}

/** The answer is not an answer of glovebox. */
export class ProtocolError extends GloveboxError {
  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, { code: "protocol", fault: "glovebox", ...facts });
  }
}

/** No answer came in the time that the caller gave. */
export class TimeoutError extends GloveboxError {
  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, { code: "timeout", ...facts });
  }
}

/** The request is not valid, or asks for more than a limit or policy allows. */
export class InvalidArgumentError extends GloveboxError {
  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, { code: "bad_request", fault: "caller", ...facts });
  }
}

/** No valid key was sent, or the key lacks the right. */
export class AuthenticationError extends GloveboxError {}
/** The name does not exist. */
export class NotFoundError extends GloveboxError {}
/** The sandbox is not in a state that allows this, such as ended or paused. */
export class ConflictError extends GloveboxError {}
/** The server is full, or a quota of the key is used up; the same request may succeed later. */
export class RateLimitError extends GloveboxError {}
/** The disk or the inodes of the sandbox are used up. */
export class NotEnoughSpaceError extends GloveboxError {}

/** A wall or a template is missing on the server; its operator must act. */
export class UnavailableError extends GloveboxError {
  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, { code: "unavailable", ...facts });
  }
}

/** A command ended with another exit code than 0. It has what the command printed. */
export class CommandExitError extends GloveboxError {
  constructor(
    readonly stdout: string,
    readonly stderr: string,
    readonly exitCode: number,
    detail?: string | null,
  ) {
    const says = detail || stderr.trimEnd().split("\n").at(-1)?.slice(0, 200);
    super(`command ended with exit code ${exitCode}${says ? `: ${says}` : ""}`, { code: "exit", fault: "code" });
  }
}

type Kind = new (message: string, facts: ErrorFacts) => GloveboxError;

const byCode: Readonly<Record<string, Kind>> = {
  bad_request: InvalidArgumentError,
  limit: InvalidArgumentError,
  policy: InvalidArgumentError,
  too_large: InvalidArgumentError,
  method: InvalidArgumentError,
  not_acceptable: InvalidArgumentError,
  media_type: InvalidArgumentError,
  range: InvalidArgumentError,
  header_too_large: InvalidArgumentError,
  no_program: InvalidArgumentError,
  not_executable: InvalidArgumentError,
  not_found: NotFoundError,
  conflict: ConflictError,
  busy: RateLimitError,
  quota: RateLimitError,
  timeout: TimeoutError,
  unavailable: UnavailableError,
  unauthorized: AuthenticationError,
  forbidden: AuthenticationError,
  full: NotEnoughSpaceError,
  unreached: ConnectionLostError,
};

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** The error for an answer with an error status. */
export function errorOf(status: number, body: unknown): GloveboxError {
  const row = isObject(body) ? body["error"] : undefined;
  if (!isObject(row))
    return new ProtocolError(`HTTP status ${status} without glovebox's error; is this glovebox's address?`, { status });
  const text = (name: string): string | undefined => {
    const value = row[name];
    return typeof value === "string" ? value : undefined;
  };
  const code = text("code") ?? "internal";
  const kind: Kind = Object.hasOwn(byCode, code) ? (byCode[code] ?? GloveboxError) : GloveboxError;
  return new kind(text("message") ?? "", {
    code,
    status,
    fault: text("fault"),
    retryable: row["retryable"] === true,
    requestId: text("request_id"),
  });
}
