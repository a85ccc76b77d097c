/// <reference types="node" preserve="true" />
/// <reference lib="esnext.disposable" preserve="true" />
/** Runs code that language models write in sandboxes on your own Linux machine. */
export { Client } from "./client.js";
export type { Answer } from "./client.js";
export { CommandHandle, Commands, Pty } from "./commands.js";
export type { CommandOptions, Output, OutputListeners, PtySize } from "./commands.js";
export * from "./errors.js";
export { Files, Watch } from "./files.js";
export type { Content } from "./files.js";
export type { Listeners, RunEvent } from "./follow.js";
export { Execution, Result } from "./models.js";
export type {
  Artifact, Chart, Checkpoint, CodeContext, CommandResult, Denial, EntryInfo, ExecutionError, FilesystemEvent, Limit, OutputMessage,
  ProcessInfo, SandboxInfo,
} from "./models.js";
export { download, map, run, stream } from "./run.js";
export type { RunOptions } from "./run.js";
export { Sandbox } from "./sandbox.js";
export type { RunCodeOptions, SandboxOptions } from "./sandbox.js";
export type { ServerOptions } from "./server.js";
export { Tools, shown } from "./tools.js";
export type { AiSdk, ToolFormat, ToolName, ToolsOptions } from "./tools.js";
