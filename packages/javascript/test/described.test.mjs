// The package against /openapi.json of the server: a row of CALLS makes each operation that the package has, to a server that
// records what is sent and answers with every field of the answer's schema. What is not called, not sent or not handed on stands
// in a table; a row of a table that is not needed fails, so that the tables say what the package lacks.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { before, test } from "node:test";

import { Client, Sandbox, download, run } from "../dist/esm/index.js";
import { listens, until, withServer } from "./server.mjs";

const server = withServer();
const BYTES = Buffer.from("bytes");
const SHA256 = createHash("sha256").update(BYTES).digest("hex");
const CUT = "its first stream is cut";

const only = "is read with the package for Python, with `glovebox` or by HTTP";
/** Operations that no call sends. */
const NOT_CALLED = {
  getRun: only, listRuns: only, readArtifacts: only, getReceipt: only, listReceipts: only, getReceiptOpening: only, getLogKey: only,
  getLogCheckpoint: only, getInclusionProof: only, getConsistencyProof: only, listApprovals: only, getApproval: only,
  decideApproval: only, updateApproval: only, listPolicies: only, listTemplates: only, listLimits: only, getHealth: only,
  getReadiness: only, getStatus: only, getMetrics: only, listNetworkRules: only, followConnections: only, getOpenApiDocument: only,
  readSignedFile: "is for programs without the package", writeSignedFile: "is for programs without the package",
  getProcess: only,
};
/** Parameters and fields of requests that no call sends; * for every operation. `more` of run() takes any field. */
const NOT_SENT = new Set([
  "* stream", "* from", "createRun Prefer", "runCell Prefer", "followProcess Last-Event-ID",
  "startProcess wait", // events come while the program runs
  "readArtifact Range", "readArtifact If-None-Match", 
  "* body path_base64", "* body from_base64", "* body to_base64", // a text of JavaScript cannot hold a name that is no UTF-8
  "readFile Range", // a stream can be left when enough has come
]);
/** Fields of answers that are not read, by schema. */
const NOT_HANDED_ON = new Set([
  "ContextRemoved removed", "FilePath path", "FileListing path", "TarUnpacked path", "SignedUrl method", "SignedUrl expires_at", // the caller said it
  "* path_base64", // as above
  "PortToken header", // getUrl() names it
]);
/** Fields that are looked for in an answer whose schema has none of the name: an Execution is of a run or of a cell. */
const MAY_LACK = ["RunResult cell"];

/** Calls by operation: of the package, then of a sandbox. */
const OF_PACKAGE = {
  createRun: [
    (client) => run("1", { client, language: "python", timeout: 1, envs: { A: "1" }, limits: { cpus: 1 }, policy: "p", template: "t", network: "none",
      files: { a: "x", b: Buffer.from([255]) }, stdin: "x", more: { args: ["a"], filename: "f.py", check_only: false, cold: true, expect: { secrets: "forbid" }, approval: "apr_1" } }),
    (client) => run("1", { client, stdin: Buffer.from([255]), more: { command: ["ls"], code: undefined, mode: undefined } }),
    (client) => run("1", { client, onStdout: () => undefined }),
  ],
  followRun: [(client) => run(CUT, { client, onStdout: () => undefined })],
  cancelRun: [(client) => run("1", { client, onStdout: () => { throw new Error("mine"); } }).catch((error) => assert.equal(error.message, "mine"))],
  readArtifact: [(client) => download({ path: "a", bytes: BYTES.length, sha256: SHA256, mime: "", url: "" }, { client })],
  createSession: [(client) => Sandbox.create({ client, template: "t", policy: "p", timeout: 9, idleTimeout: 9, metadata: { a: "b" }, envs: { A: "1" }, cwd: "/tmp",
    limits: { cpus: 1 }, network: "none" })],
  listSessions: [(client) => Sandbox.list({ client, metadata: { a: "b" }, state: "all" })],
  getSession: [(client) => Sandbox.connect("ses_1", { client })],
};
const first = async (items) => { for await (const item of items) return item; };
const OF_SANDBOX = {
  runCell: [(s) => s.runCode("1", { timeout: 1, limits: { cpus: 1 }, expect: { secrets: "forbid" }, approval: "apr_1" }), (s) => s.runCode("1", { onStdout: () => undefined })],
  createContext: [(s) => s.createCodeContext({ language: "python", cwd: "/tmp", envs: { A: "1" } })],
  listContexts: [(s) => s.listCodeContexts()],
  removeContext: [(s) => s.removeCodeContext("other")],
  restartContext: [(s) => s.restartCodeContext()],
  interruptCell: [(s) => s.interrupt()],
  getSession: [(s) => s.getInfo(), (s) => s.isRunning()],
  updateSession: [(s) => s.setTimeout(3), (s) => s.update({ timeout: 1, idleTimeout: 2, metadata: {} })],
  pauseSession: [(s) => s.pause(), (s) => s.pause({ keep: "files" })],
  resumeSession: [(s) => s.resume()],
  branchSession: [(s) => s.branch(1, { context: "python", checkpoint: "c", metadata: { a: "b" }, timeout: 1, idleTimeout: 2 })],
  createCheckpoint: [(s) => s.checkpoint("c", { context: "python" })],
  removeCheckpoint: [(s) => s.removeCheckpoint("c")],
  listCheckpoints: [(s) => s.checkpoints()],
  rollBackSession: [(s) => s.rollback("c")],
  endSession: [(s) => s.kill()],
  getPortToken: [(s) => s.getPortToken()],
  ...Object.fromEntries(["GET", "PUT", "POST", "DELETE", "PATCH"].map((method) => [`${method.toLowerCase()}Port`, [(s) => s.request(80, { method, path: "/x" })]])),
  statFile: [(s) => s.files.getInfo("a"), (s) => s.files.exists("a")],
  listFiles: [(s) => s.files.list("a", { depth: 2, limit: 5 })],
  makeFolder: [(s) => s.files.makeDir("new")],
  moveFile: [(s) => s.files.rename("a", "b")],
  signFileUrl: [(s) => s.files.sign("a", { method: "PUT", expires: 60, mode: 0o600 })],
  watchFiles: [async (s) => await first(await s.files.watchDir("a", { recursive: true }))],
  readTar: [async (s) => await first(await s.files.downloadDir("a"))],
  writeTar: [(s) => s.files.uploadDir(BYTES, "a")],
  readFile: [(s) => s.files.read("a/b")],
  writeFile: [(s) => s.files.write("a/b", "x", { mode: 0o600, overwrite: false })],
  removeFile: [(s) => s.files.remove("a")],
  startProcess: [(s) => s.commands.run("ls", { envs: { A: "1" }, cwd: "/tmp", tag: "t", stdin: "x", timeout: 1 }), (s) => s.commands.run(["ls"]),
    (s) => s.pty.create({ rows: 2, cols: 3 })],
  listProcesses: [(s) => s.commands.list(), (s) => s.commands.list({ all: true })],
  followProcess: [async (s) => await (await s.commands.start(CUT)).wait(), (s) => s.commands.connect("prc_1")],
  writeToProcess: [async (s) => await (await s.commands.start("cat", { stdin: true })).sendStdin("a", { close: true }), (s) => s.commands.sendStdin(3, Buffer.from([255]))],
  signalProcess: [(s) => s.commands.kill(3)],
  resizeTerminal: [async (s) => await (await s.pty.create()).resize({ rows: 2, cols: 3 })],
};

const get = (path) =>
  new Promise((told, failed) => {
    request({ socketPath: server.socket, path }, async (answer) => {
      let text = "";
      for await (const part of answer.setEncoding("utf8")) text += part;
      told(JSON.parse(text));
    }).once("error", failed).end();
  });

let document;
const operations = new Map(); // by operationId
const sent = new Map(); // by operationId: parameters and fields
const wrong = [];
const schemaOf = new Map(); // by the fields of an object, sorted: names of schemas
const read = new Map(); // by schema: fields that were read
const misread = new Set();
const tracks = new WeakMap(); // by a tracked object: names of its schemas, the object itself
let underWay = "";

const resolved = (value) => (value?.$ref ? resolved(value.$ref.split("/").slice(1).reduce((at, name) => at[name], document)) : value);

/** A value of the schema, with every field. */
function valueOf(schema) {
  const name = schema.$ref?.split("/").at(-1);
  const found = resolved(schema);
  if (found.anyOf) return valueOf(found.anyOf[0]);
  const kind = [found.type ?? "string"].flat()[0];
  if (found.enum) return found.enum[0];
  if (kind === "object") {
    if (name && found.properties) {
      const fields = Object.keys(found.properties).sort().join();
      schemaOf.set(fields, (schemaOf.get(fields) ?? new Set()).add(name));
    }
    return found.properties ? Object.fromEntries(Object.entries(found.properties).map(([field, each]) => [field, valueOf(each)])) : { "text/plain": "x" };
  }
  if (kind === "array") return [valueOf(found.items)];
  if (found.pattern === "^[0-7]{3,4}$") return "644";
  if (kind === "string") return found.format === "date-time" ? "2026-01-02T03:04:05.006Z" : "YQ==";
  return kind === "boolean" ? false : 0;
}

/** What is wrong with a value that was sent. */
function complaints(schema, value, place) {
  const found = resolved(schema);
  const any = found.anyOf ?? found.oneOf;
  if (any) return any.some((each) => complaints(each, value, place).length === 0) ? [] : [`${place} fits none of its forms`];
  const kinds = [found.type ?? []].flat();
  const kind = value === null ? "null" : Array.isArray(value) ? "array" : Number.isInteger(value) ? "integer" : typeof value;
  if (kinds.length > 0 && !kinds.includes(kind) && !(kind === "integer" && kinds.includes("number"))) return [`${place} is ${kind}, not ${kinds}`];
  if (found.enum && !found.enum.includes(value)) return [`${place} is ${value}, not one of ${found.enum}`];
  if (kind === "array") return value.flatMap((each) => complaints(found.items ?? {}, each, `${place}[]`));
  if (kind !== "object") return [];
  const lacking = (found.required ?? []).filter((name) => !(name in value)).map((name) => `${place} lacks ${name}`);
  return lacking.concat(Object.entries(value).flatMap(([name, each]) => {
    const described = found.properties?.[name] ?? (typeof found.additionalProperties === "object" ? found.additionalProperties : undefined);
    return described ? complaints(described, each, `${place}.${name}`) : found.properties && found.additionalProperties !== true ? [`${place} has no ${name}`] : [];
  }));
}

/** An object of an answer, with what the package reads of it. */
function tracked(value) {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(tracked);
  const inner = Object.fromEntries(Object.entries(value).map(([name, each]) => [name, tracked(each)]));
  const names = schemaOf.get(Object.keys(inner).sort().join());
  if (!names) return inner;
  const proxy = new Proxy(inner, {
    get(target, name) {
      if (typeof name !== "string" || name === "toJSON" || name === "then") return target[name];
      for (const schema of names) (name in target ? read.set(schema, (read.get(schema) ?? new Set()).add(name)) : misread.add(`${schema} ${name}`));
      return target[name];
    },
    ownKeys(target) { // a copy reads all of it
      for (const schema of names) read.set(schema, new Set(Object.keys(target)));
      return Reflect.ownKeys(target);
    },
  });
  tracks.set(proxy, [names, inner]);
  return proxy;
}

/** The objects of answers that what a call has returned holds whole. */
function handOn(value, seen = new Set()) {
  if (typeof value !== "object" || value === null || seen.has(value)) return;
  seen.add(value);
  const [names, inner] = tracks.get(value) ?? [[], value];
  for (const schema of names) read.set(schema, new Set(Object.keys(inner)));
  for (const each of Object.values(inner)) handOn(each, seen);
}

function find(method, path) {
  for (const [template, item] of Object.entries(document.paths)) {
    const pattern = template.replaceAll(/[.*+?^$()|[\]\\]/g, "\\$&").replaceAll(/\{([^}]+)\}/g, (_, name) => (name === "path" && template.includes("/ports/") ? ".*" : "[^/:]+"));
    const operation = item[method.toLowerCase()];
    if (operation && new RegExp(`^${pattern}$`).test(path)) return { ...operation, parameters: [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(resolved) };
  }
  return undefined;
}

function note(operation, url, headers, body) {
  const name = operation.operationId;
  const declared = new Map(operation.parameters.filter((each) => each.in !== "path").map((each) => [each.name.toLowerCase(), each]));
  const usual = new Set(["host", "user-agent", "content-type", "content-length", "accept", "connection", "transfer-encoding"]);
  const found = sent.get(name) ?? new Set();
  for (const [key, value] of [...url.searchParams, ...Object.entries(headers).filter(([key]) => !usual.has(key))]) {
    const parameter = declared.get(key.toLowerCase());
    if (!parameter) wrong.push(`${name}: ${key} is not declared`);
    else {
      found.add(parameter.name);
      if (parameter.schema?.enum && !parameter.schema.enum.map(String).includes(value)) wrong.push(`${name}: ${key}=${value}`);
    }
  }
  const schema = resolved(operation.requestBody)?.content?.["application/json"]?.schema;
  if (headers["content-type"] === "application/json") {
    const row = JSON.parse(body.toString());
    wrong.push(...(schema ? complaints(schema, row, name) : [`${name} takes no JSON`]));
    for (const key of Object.keys(row)) found.add(`body ${key}`);
  }
  sent.set(name, found);
}

function events(rows) {
  return rows.map(([kind, data], at) => `id: ${at}\nevent: ${kind}\ndata: ${JSON.stringify(data)}\n\n`).join("");
}

function answer(operation, headers, body, response) {
  const name = operation.operationId;
  const status = Object.keys(operation.responses).sort()[0];
  const content = resolved(operation.responses[status]).content ?? {};
  if (name === "statFile" && underWay === "makeFolder") return response.writeHead(404, { "content-type": "application/json" }).end('{"error":{"code":"not_found","message":""}}');
  if (content["text/event-stream"] && (!content["application/json"] || (headers.accept ?? "").includes("event-stream"))) {
    const process = name.includes("Process");
    const end = valueOf({ $ref: `#/components/schemas/${process ? "Process" : name === "runCell" ? "CellResult" : "RunResult"}` });
    let rows = [["started", process ? end : { id: "run_1" }], ["stdout", { data: "x" }], ["end", end]];
    if (name === "watchFiles") rows = [["write", { path: "a" }]];
    if (body.includes(CUT)) rows = rows.slice(0, 1);
    return response.writeHead(200, { "content-type": "text/event-stream" }).end(events(rows));
  }
  const schema = content["application/json"]?.schema;
  if (!schema) return response.writeHead(Number(status)).end(BYTES);
  const row = valueOf(schema);
  if ("next_cursor" in row && underWay !== "listSessions") row.next_cursor = null;
  else if ("next_cursor" in row) underWay += " again";
  return response.writeHead(Number(status), { "content-type": "application/json" }).end(JSON.stringify(row));
}

before(async () => {
  await until(() => listens(server.socket), "the server"); // hooks of the top level run at the same time, in Node.js 20
  document = await get("/openapi.json");
  for (const item of Object.values(document.paths))
    for (const [method, operation] of Object.entries(item)) if (operation.operationId) operations.set(operation.operationId, { method, ...operation });
  const socket = join(server.folder, "recorder");
  const recorder = createServer(async (asked, response) => {
    const pieces = [];
    for await (const piece of asked) pieces.push(piece);
    const url = new URL(asked.url, "http://localhost");
    const operation = find(asked.method, url.pathname);
    if (!operation) {
      wrong.push(`${underWay}: ${asked.method} ${url.pathname} is no route`);
      return response.writeHead(404).end();
    }
    note(operation, url, asked.headers, Buffer.concat(pieces));
    return answer(operation, asked.headers, Buffer.concat(pieces), response);
  });
  await new Promise((listening) => recorder.listen(socket, listening));
  const client = new Client({ socket });
  const { parse } = JSON;
  JSON.parse = (text, ...more) => tracked(parse(text, ...more));
  try {
    const sandbox = await Sandbox.create({ client });
    for (const [calls, target] of [[OF_PACKAGE, client], [OF_SANDBOX, sandbox]])
      for (const [name, rows] of Object.entries(calls))
        for (const [number, call] of rows.entries()) {
          underWay = name;
          handOn(await call(target).catch((error) => { wrong.push(`${name} ${number}: ${error.stack}`); }));
          if (!sent.has(name)) wrong.push(`${name} is not sent by its call ${number}`);
        }
  } finally {
    JSON.parse = parse;
    await client.close();
    recorder.closeAllConnections();
    recorder.close();
  }
});

/** What is missing for no reason, and rows of the table that nothing needs. */
function compared(missing, table) {
  const general = (each) => `* ${each.slice(each.indexOf(" ") + 1)}`;
  return {
    missing: missing.filter((each) => !table.has(each) && !table.has(general(each))).sort(),
    unneeded: [...table].filter((row) => !missing.some((each) => each === row || general(each) === row)),
  };
}
const nothing = { missing: [], unneeded: [] };

test("every operation is called, or stands in the table of those that are not", () => {
  const called = new Set([...Object.keys(OF_PACKAGE), ...Object.keys(OF_SANDBOX)]);
  assert.ok(operations.size > 60);
  assert.deepEqual(compared([...operations.keys()].filter((name) => !called.has(name)), new Set(Object.keys(NOT_CALLED))), nothing);
  assert.deepEqual([...sent.keys()].sort(), [...called].sort());
});

test("what is sent is as the document says", () => {
  assert.deepEqual(wrong, []);
});

test("every parameter and every field of a request can be sent, or stands in the table", () => {
  const missing = [];
  for (const [name, found] of sent) {
    const operation = operations.get(name);
    const wanted = (operation.parameters ?? []).map(resolved).filter((each) => each.in !== "path").map((each) => each.name);
    const schema = resolved(resolved(operation.requestBody)?.content?.["application/json"]?.schema);
    wanted.push(...Object.keys(schema?.properties ?? {}).map((each) => `body ${each}`));
    missing.push(...wanted.filter((each) => !found.has(each)).map((each) => `${name} ${each}`));
  }
  assert.deepEqual(compared(missing, NOT_SENT), nothing);
});

test("every field of an answer is handed on, or stands in the table", () => {
  const missing = [];
  for (const [fields, names] of schemaOf)
    for (const name of names) missing.push(...fields.split(",").filter((field) => !read.get(name)?.has(field)).map((field) => `${name} ${field}`));
  assert.deepEqual(compared(missing, NOT_HANDED_ON), nothing);
});

test("no field is read that an answer does not have", () => {
  assert.deepEqual([...misread], MAY_LACK);
});
