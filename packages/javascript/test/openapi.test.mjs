// The server's own description, through the generator that TypeScript programs use, and its types through the compiler.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { request } from "node:http";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { withServer } from "./server.mjs";

const server = withServer();
const PROGRAMS = join(dirname(fileURLToPath(import.meta.url)), "../node_modules/.bin");

const get = (path) =>
  new Promise((told, failed) => {
    request({ socketPath: server.socket, path }, async (answer) => {
      let text = "";
      for await (const part of answer.setEncoding("utf8")) text += part;
      told(text);
    }).once("error", failed).end();
  });

test("openapi-typescript makes types of /openapi.json, which compile", async () => {
  const [document, types, program] = ["openapi.json", "openapi.d.ts", "program.ts"].map((name) => join(server.folder, name));
  writeFileSync(document, await get("/openapi.json"));
  execFileSync(join(PROGRAMS, "openapi-typescript"), [document, "-o", types]);
  writeFileSync(program, `import type { operations } from "./openapi";
    type Answer = operations["createRun"]["responses"][200]["content"]["application/json"];
    export const status = (answer: Answer): string => answer.status;
    export const files: operations["readFile"]["responses"][200]["content"]["application/octet-stream"] = "";`);
  const said = execFileSync(join(PROGRAMS, "tsc"), ["--strict", "--noEmit", program], { encoding: "utf8" });
  assert.equal(said, "");
});
