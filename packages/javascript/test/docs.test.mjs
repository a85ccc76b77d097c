// Every example of docs/javascript.md and of the package's page runs, and prints what its comments say.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { TOP, withServer } from "./server.mjs";

withServer();

const run = promisify(execFile);
const here = fileURLToPath(new URL("..", import.meta.url));
const pages = [join(TOP, "docs/javascript.md"), join(here, "README.md")];

for (const page of pages)
  describe(page.slice(TOP.length + 1), () => {
    const blocks = [...readFileSync(page, "utf8").matchAll(/^```(?:js|ts)\n(.*?)^```$/gms)].map(([, code]) => code);
    assert.ok(blocks.length > 0);
    for (const [i, code] of blocks.entries())
      test(`example ${i + 1}: ${code.split("\n").find((line) => !line.startsWith("import") && line)}`, async () => {
        const { stdout } = await run(process.execPath, ["--input-type=module", "-e", code], { cwd: here, env: process.env });
        const wanted = [...code.matchAll(/console\.log\(.*\/\/ (.+)$/gm)].map(([, text]) => text);
        assert.deepEqual(stdout.split("\n").filter(Boolean).slice(0, wanted.length || undefined), wanted);
      });
  });
