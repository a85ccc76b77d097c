// Drives every tool with an official client in JavaScript: node drive.mjs MODULES sdk|client URL | … PROGRAM ARGUMENT…,
// as cases.json says. MODULES is the folder with node_modules. Prints "N passed, N failed".
import { createRequire } from "node:module";
import { randomBytes } from "node:crypto";
import { pathToFileURL } from "node:url";
import fs from "node:fs";

const [modules, generation, ...words] = process.argv.slice(2);
const require = createRequire(modules + "/package.json");
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const cases = JSON.parse(fs.readFileSync(new URL("cases.json", import.meta.url)));
const isUrl = words[0].startsWith("http");
const capabilities = { elicitation: { form: {} } };
let answer = {};

async function connect() {
  if (generation === "sdk") {
    const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { ElicitRequestSchema } = await load("@modelcontextprotocol/sdk/types.js");
    const client = new Client({ name: "test", version: "1" }, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, () => answer);
    await client.connect(isUrl ? new StreamableHTTPClientTransport(new URL(words[0]))
                               : new StdioClientTransport({ command: words[0], args: words.slice(1), env: process.env }));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
  const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");
  const client = new Client({ name: "test", version: "1" }, { capabilities, versionNegotiation: { mode: "auto" } });
  client.setRequestHandler("elicitation/create", () => answer);
  await client.connect(isUrl ? new StreamableHTTPClientTransport(new URL(words[0]))
                             : new StdioClientTransport({ command: words[0], args: words.slice(1), env: process.env }));
  return client;
}

function require_(condition, what) {
  if (!condition) throw new Error(JSON.stringify(what).slice(0, 600));
}

async function check(client, test, known) {
  answer = test.answer ?? { action: "cancel" };
  const args = JSON.parse(Object.entries(known).reduce((text, [name, value]) => text.replaceAll(`{${name}}`, value),
                                                       JSON.stringify(test.arguments)));
  const result = await client.callTool({ name: test.tool, arguments: args });
  const structured = result.structuredContent ?? {};
  require_(Boolean(result.isError) === (test.is_error ?? false), result);
  require_(result.content[0].text.includes(test.text ?? ""), result.content[0]);
  for (const [name, value] of Object.entries(test.structured ?? {})) require_(structured[name] === value, structured);
  if (test.kinds) require_(JSON.stringify(result.content.map((part) => part.type)) === JSON.stringify(test.kinds), result.content);
  if (test.read) {
    const read = await client.readResource({ uri: result.content.at(-1).uri });
    require_(read.contents[0].blob === test.read, read);
  }
  if (test.keep) known[test.keep] = structured.id;
  if (test.tool === "run_code" && structured.status === "ok") known.run ??= structured.id;
}

const client = await connect();
const known = { nonce: randomBytes(4).toString("hex") };
let passed = 0, failed = 0;
const names = (await client.listTools()).tools.map((tool) => tool.name);
for (const test of cases) require_(names.includes(test.tool), names);
for (const test of cases) {
  try {
    await check(client, test, known);
    passed++;
  } catch (failure) {
    failed++;
    console.error(`${test.name}: ${failure}`);
  }
}
await client.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
