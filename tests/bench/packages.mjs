// What the JavaScript package adds to a warm call over node:http: node tests/bench/packages.mjs SOCKET [ROUNDS]. In turns, in one process.
import { Agent, request } from "node:http";

import { Client, run } from "../../packages/javascript/dist/esm/index.js";

const [socketPath, rounds = "300"] = process.argv.slice(2);
const WARMED = 30;
const agent = new Agent({ keepAlive: true });
const client = new Client({ socket: socketPath });
const body = JSON.stringify({ code: "print(1)", policy: "minimal", mode: "cell" });
const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };

const bare = () => new Promise((done, failed) => {
  const call = request({ socketPath, agent, method: "POST", path: "/v1/runs", headers }, async (answer) => {
    let text = "";
    for await (const piece of answer.setEncoding("utf8")) text += piece;
    done(JSON.parse(text));
  });
  call.on("error", failed);
  call.end(body);
});

async function milliseconds(call) {
  const began = performance.now();
  const { stdout } = await call();
  if (stdout !== "1\n") throw new Error(`it printed ${stdout}`);
  return performance.now() - began;
}

const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1];
const [theirs, ours] = [[], []];
for (let i = 0; i < Number(rounds) + WARMED; i++) {
  const pair = [await milliseconds(bare), await milliseconds(() => run("print(1)", { client, policy: "minimal" }))];
  if (i >= WARMED) [theirs, ours].forEach((numbers, which) => numbers.push(pair[which]));
}
const added = median(ours.map((each, i) => each - theirs[i]));
console.log(JSON.stringify({ bare: median(theirs), package: median(ours), added }));
await client.close();
agent.destroy();
