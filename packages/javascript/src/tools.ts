/** Tools for models: definitions in the formats of OpenAI, Anthropic, Gemini and the AI SDK, and a handler that runs the calls. */
import { GloveboxError, InvalidArgumentError } from "./errors.js";
import type { Execution } from "./models.js";
import { Sandbox } from "./sandbox.js";
import type { SandboxOptions } from "./sandbox.js";

const ANSWER_MAX = 20_000; // characters of an answer to the model

interface Schema {
  type: "object";
  properties: Record<string, { type: "string"; description: string }>;
  required: string[];
  additionalProperties: false;
}

const PATH = "A relative one lies below /workspace.";

/** Name: what it does, its parameters, all of them required. */
const TOOLS = {
  execute_python: [
    "Runs Python in a sandbox. Variables, imports and files stay for the next call; the value of the last expression, what is printed, and open figures come back.",
    { code: "The code of this step." },
  ],
  run_shell: ["Runs a line for bash in the same sandbox.", { command: "The line." }],
  read_file: ["Reads a text file of the same sandbox.", { path: PATH }],
  write_file: ["Writes a text file in the same sandbox.", { path: PATH, content: "All of its text." }],
  list_files: ["Lists a folder of the same sandbox.", { path: "The folder; /workspace is where code starts." }],
} as const satisfies Record<string, readonly [string, Record<string, string>]>;

export type ToolName = keyof typeof TOOLS;
const FORMATS = ["openai", "anthropic", "gemini"] as const;
export type ToolFormat = (typeof FORMATS)[number];

export interface ToolsOptions extends SandboxOptions {
  /** Names of the tools to offer; default: all. */
  names?: readonly ToolName[] | undefined;
  /** A sandbox that the caller keeps; else one is made at the first use. */
  sandbox?: Sandbox | undefined;
  /** Text appended to the description of execute_python, for example what is installed and whether there is a network. */
  constraints?: string | undefined;
}

/** `tool` and `jsonSchema` of the package `ai`. */
export interface AiSdk<Tool> {
  tool: (definition: never) => Tool;
  jsonSchema: (schema: never) => unknown;
}

/** An execution as text for a model: what it printed, its value, how it ended. */
export function shown(execution: Execution, limit = ANSWER_MAX): string {
  const parts = [execution.stdout];
  for (const result of execution.results) parts.push(result.text ?? `[${result.formats().join(", ")}]`);
  if (execution.stderr) parts.push(`stderr:\n${execution.stderr}`);
  // the traceback of a failed program is in stderr
  if (execution.error) parts.push(execution.error.name === "ProgramFailed" ? "" : execution.error.traceback, execution.explain());
  else if (execution.denials.length > 0) parts.push(execution.explain());
  for (const artifact of execution.artifacts) parts.push(`file: ${artifact.path} (${artifact.bytes} bytes)`);
  return clipped(parts.filter(Boolean).map((part) => part.replace(/\n+$/, "")).join("\n") || "(no output)", limit);
}

/** Head and tail of a text that is too long. */
function clipped(text: string, limit = ANSWER_MAX): string {
  if (text.length <= limit) return text;
  const half = Math.trunc(limit / 2);
  return `${text.slice(0, half)}\n[${text.length - limit} characters are left out]\n${text.slice(-half)}`;
}

function isToolName(name: string): name is ToolName {
  return Object.hasOwn(TOOLS, name);
}

/** All of them share one sandbox; close() ends it. */
export class Tools implements AsyncDisposable {
  readonly names: readonly ToolName[];
  readonly #options: ToolsOptions;
  #sandbox: Promise<Sandbox> | undefined;
  /** The last execution, with its pictures. */
  last: Execution | undefined;

  constructor(options: ToolsOptions = {}) {
    this.names = options.names ?? (Object.keys(TOOLS) as ToolName[]);
    const wrong = this.names.map(String).find((name) => !isToolName(name));
    if (wrong !== undefined) throw new InvalidArgumentError(`no tool is named ${JSON.stringify(wrong)}; there are ${Object.keys(TOOLS).join(", ")}`);
    this.#options = options;
    if (options.sandbox) this.#sandbox = Promise.resolve(options.sandbox);
  }

  sandbox(): Promise<Sandbox> {
    if (!this.#sandbox) {
      const own = ["names", "sandbox", "constraints"];
      this.#sandbox = Sandbox.create(Object.fromEntries(Object.entries(this.#options).filter(([name]) => !own.includes(name))));
      this.#sandbox.catch(() => {
        this.#sandbox = undefined;
      });
    }
    return this.#sandbox;
  }

  async close(): Promise<void> {
    const sandbox = this.#options.sandbox ? undefined : await this.#sandbox?.catch(() => undefined);
    if (sandbox) this.#sandbox = undefined;
    await sandbox?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #schema(name: ToolName): [string, Schema] {
    const [description, parameters] = TOOLS[name];
    const properties = Object.fromEntries(Object.entries(parameters).map(([key, text]) => [key, { type: "string" as const, description: text }]));
    const { constraints } = this.#options;
    const whole = name === "execute_python" && constraints ? `${description} ${constraints}` : description;
    return [whole, { type: "object", properties, required: Object.keys(parameters), additionalProperties: false }];
  }

  /** For `tools` of a request. */
  definitions(format: ToolFormat): Record<string, unknown>[] {
    if (!FORMATS.includes(format)) throw new InvalidArgumentError(`format is one of ${FORMATS.join(", ")}, not ${JSON.stringify(format)}`);
    return this.names.map((name) => {
      const [description, schema] = this.#schema(name);
      if (format === "openai") return { type: "function", function: { name, description, parameters: schema, strict: true } };
      if (format === "anthropic") return { name, description, input_schema: schema };
      return { name, description, parameters: { type: schema.type, properties: schema.properties, required: schema.required } };
    });
  }

  /** For `tools` of generateText() and streamText(): pass the package `ai` itself. */
  forAiSdk<Tool>(ai: AiSdk<Tool>): Record<string, Tool> {
    return Object.fromEntries(
      this.names.map((name) => {
        const [description, schema] = this.#schema(name);
        const execute = (input: unknown): Promise<string> => this.handler(name, input);
        return [name, ai.tool({ description, inputSchema: ai.jsonSchema(schema as never), execute } as never)];
      }),
    );
  }

  /** The answer for the model, also to its mistakes; rejects if there is no server. */
  async handler(name: string, input: unknown): Promise<string> {
    let values: unknown = input;
    if (typeof input === "string") {
      try {
        values = JSON.parse(input);
      } catch {
        return "error: the arguments are no JSON";
      }
    }
    if (!isToolName(name) || !this.names.includes(name)) return `error: no tool is named ${JSON.stringify(name)}; there are ${this.names.join(", ")}`;
    const parameters = Object.keys(TOOLS[name][1]);
    const fields = typeof values === "object" && values !== null ? (values as Record<string, unknown>) : {};
    if (Object.keys(fields).length !== parameters.length || !parameters.every((key) => Object.hasOwn(fields, key) && typeof fields[key] === "string"))
      return `error: ${name} takes ${parameters.join(" and ")}, ${parameters.length === 1 ? "a text" : "both texts"}, and nothing else`;
    try {
      return clipped(await this.#act(name, fields as Record<string, string>));
    } catch (error) {
      if (!(error instanceof GloveboxError) || error.retryable || (error.code !== "code" && error.code !== "bad_request" && [undefined, 401, 503].includes(error.status)))
        throw error;
      return `error: ${error.message}`;
    }
  }

  async #act(name: ToolName, { code = "", command = "", path = "", content = "" }: Record<string, string>): Promise<string> {
    const sandbox = await this.sandbox();
    switch (name) {
      case "execute_python":
        return shown((this.last = await sandbox.runCode(code)));
      case "run_shell":
        return shown((this.last = await sandbox.runCode(command, { language: "bash" })));
      case "read_file":
        return await sandbox.files.read(path);
      case "write_file": {
        const { path: written, size } = await sandbox.files.write(path, content);
        return `${written}: ${size} bytes`;
      }
      case "list_files": {
        const rows = await sandbox.files.list(path);
        return rows.map((row) => `${row.path}${row.type === "dir" ? "/" : ""} ${row.size}`).join("\n") || "(empty)";
      }
    }
  }

  /** OpenAI: a tool call → a message of role tool. Anthropic: a tool_use block → a tool_result block. Gemini: a functionCall → a
   * functionResponse part. */
  async answer(format: ToolFormat, call: Record<string, unknown>): Promise<Record<string, unknown>> {
    if (format === "openai") {
      const asked = call["function"] as { name: string; arguments: string };
      return { role: "tool", tool_call_id: call["id"], content: await this.handler(asked.name, asked.arguments) };
    }
    const name = String(call["name"]);
    if (format === "anthropic") {
      const content = await this.handler(name, call["input"]);
      return { type: "tool_result", tool_use_id: call["id"], content, is_error: content.startsWith("error: ") };
    }
    return { functionResponse: { name, response: { output: await this.handler(name, call["args"] ?? {}) } } };
  }
}
