// javascript.js - checks JavaScript by its syntax tree, with acorn, the parser that comes with node. It writes
// findings in the form of report.py. None of the text is run.
"use strict";
const fs = require("fs");

const MODULES = {
    network: "http https http2 net dgram tls dns dns/promises undici axios node-fetch got ws request superagent",
    subprocess: "child_process cluster worker_threads execa cross-spawn shelljs",
    native: "ffi-napi ref-napi koffi wasi bindings node-gyp-build",
    dynamic: "vm module repl vm2",
    internals: "v8 inspector async_hooks trace_events diagnostics_channel",
};
const NAMES = {
    network: "fetch WebSocket XMLHttpRequest EventSource",
    native: "process.dlopen WebAssembly",
    dynamic: "eval Function GeneratorFunction AsyncFunction globalThis.eval require.cache",
    internals: "process.binding process._linkedBinding process.mainModule Reflect.construct",
    environment: "process.env",
    subprocess: "process.kill",
};
const index = (table) => new Map(Object.entries(table).flatMap(([rule, names]) => names.split(" ").map((n) => [n, rule])));
const RULE_OF_MODULE = index(MODULES), RULE_OF_NAME = index(NAMES);
const SIZED = new Set(["Buffer.alloc", "Buffer.allocUnsafe", "Array", "ArrayBuffer", "SharedArrayBuffer", "Uint8Array",
    "Int8Array", "Uint16Array", "Int32Array", "Uint32Array", "Float32Array", "Float64Array", "Array.from"]);
const LOADERS = new Set(["require", "module.require", "process.getBuiltinModule"]);
const FUNCTIONS = /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression|ClassDeclaration|ClassExpression)$/;
const LOOPS = /^(While|DoWhile|For|ForIn|ForOf)Statement$/;
const LEAVES = /^(ReturnStatement|ThrowStatement|YieldExpression|AwaitExpression)$/;
const HUGE = 2 ** 27, FINDINGS_MOST = 1000, SUBJECT_MOST = 79;
const findings = new Map();

function add(rule, node, subject, isImport = false) {
    const line = node ? node.loc.start.line : 0, column = node ? node.loc.start.column + 1 : 0;
    const text = Array.from(String(subject), (sign) => (sign >= " " && sign <= "~" ? sign : "?")).join("").slice(0, SUBJECT_MOST);
    const key = `${line} ${rule} ${text}`;
    if (!findings.has(key)) findings.set(key, { line, column, rule, text, use: isImport ? "import" : "use" });
}

function finish() {
    const all = [...findings.values()].sort((a, b) => a.line - b.line || a.column - b.column);
    const lines = all.slice(0, FINDINGS_MOST).map((f) => `${f.rule} ${f.line} ${f.column} ${f.use} ${f.text}\n`);
    fs.writeSync(1, lines.join("") + `end ${all.length}\n`);
    process.exit(0);
}

/* Debian installs acorn beside node; other builds have it inside, available with a flag. */
function loadParser() {
    try {
        return require("/usr/share/nodejs/acorn/dist/acorn.js");
    } catch {
        if (process.execArgv.includes("--expose-internals")) return require("internal/deps/acorn/acorn/dist/acorn");
    }
    const flags = ["--expose-internals", __filename, ...process.argv.slice(2)];
    process.exit(require("child_process").spawnSync(process.execPath, flags, { stdio: "inherit" }).status ?? 1);
}

function parse(acorn, text) {
    const options = { ecmaVersion: "latest", locations: true, allowHashBang: true, allowReturnOutsideFunction: true,
        allowAwaitOutsideFunction: true };
    try {
        return acorn.parse(text, { ...options, sourceType: "script" });
    } catch (error) {
        if (error instanceof RangeError) throw error;
        return acorn.parse(text, { ...options, sourceType: "module" });
    }
}

const childrenOf = (node) => Object.values(node).flat().filter((child) => child && typeof child.type === "string");

/* The text of a literal, or of several that are joined; null for anything else. */
function textOf(node) {
    if (node.type === "Literal") return typeof node.value === "string" ? node.value : null;
    if (node.type === "TemplateLiteral" && node.expressions.length === 0) return node.quasis[0].value.cooked;
    if (node.type !== "BinaryExpression" || node.operator !== "+") return null;
    const left = textOf(node.left), right = textOf(node.right);
    return left === null || right === null ? null : left + right;
}

function numberOf(node) {
    if (node.type === "Literal") return typeof node.value === "number" ? node.value : null;
    if (node.type !== "BinaryExpression") return null;
    const left = numberOf(node.left), right = numberOf(node.right);
    if (left === null || right === null) return null;
    return { "*": left * right, "**": left ** right, "+": left + right, "<<": left * 2 ** right }[node.operator] ?? null;
}

/* "process.env", in any notation: process["env"], globalThis.process.env. */
function nameOf(node) {
    if (node.type === "Identifier") return node.name;
    if (node.type === "ChainExpression") return nameOf(node.expression);
    if (node.type !== "MemberExpression") return null;
    const object = nameOf(node.object), property = node.computed ? textOf(node.property) : node.property.name;
    return object === null || property === null ? null : `${object}.${property}`.replace(/^(globalThis|global)\./, "");
}

function addModule(node, name) {
    const bare = name.replace(/^node:/, "");
    add(RULE_OF_MODULE.get(bare) ?? (bare.endsWith(".node") ? "native" : "module"), node, bare, true);
}

function isLeft(body) {
    const waiting = [[body, true]];
    while (waiting.length > 0) {
        const [node, isOurs] = waiting.pop();
        if (LEAVES.test(node.type) || (node.type === "BreakStatement" && (isOurs || node.label))) return true;
        if (node.type === "CallExpression" && /^process\.(exit|abort|reallyExit)$/.test(nameOf(node.callee))) return true;
        if (FUNCTIONS.test(node.type)) continue;
        const inner = LOOPS.test(node.type) || node.type === "SwitchStatement";
        for (const child of childrenOf(node)) waiting.push([child, isOurs && !inner]);
    }
    return false;
}

const isTrue = (node) => !node || (node.type === "Literal" && Boolean(node.value)) ||
    (node.type === "UnaryExpression" && node.operator === "!" && node.argument.type === "Literal" && !node.argument.value);

function lookAtCall(node) {
    const name = nameOf(node.callee), first = node.arguments[0];
    if (LOADERS.has(name) && first) {
        if (textOf(first) === null) add("dynamic", node, name);
        else addModule(node, textOf(first));
    } else if (/^(setTimeout|setInterval)$/.test(name) && first && textOf(first) !== null) {
        add("dynamic", node, name);
    } else if (SIZED.has(name) && first) {
        const size = first.type === "ObjectExpression"
            ? first.properties.find((p) => p.key?.name === "length")?.value : first;
        if (size && numberOf(size) >= HUGE) add("allocation", node, name);
    } else if (node.callee.type === "MemberExpression" && node.callee.property.name === "repeat" && first &&
        numberOf(first) >= HUGE) {
        add("allocation", node, "repeat");
    }
}

function lookAt(node) {
    if (/^(Import|ExportNamed|ExportAll)Declaration$/.test(node.type) && node.source) addModule(node, node.source.value);
    if (node.type === "ImportExpression") {
        if (textOf(node.source) === null) add("dynamic", node, "import");
        else addModule(node, textOf(node.source));
    }
    if (node.type === "CallExpression" || node.type === "NewExpression") lookAtCall(node);
    if (node.type === "Identifier" || node.type === "MemberExpression") {
        const name = nameOf(node);
        if (name && RULE_OF_NAME.has(name)) add(RULE_OF_NAME.get(name), node, name);
        const under = node.object?.property?.name;
        if (under === "constructor" && node.property.name === under) add("dynamic", node, "constructor.constructor");
        if (name && /\.__proto__$/.test(name)) add("internals", node, "__proto__");
    }
    if (/^(While|DoWhile|For)Statement$/.test(node.type) && isTrue(node.test) && !isLeft(node.body))
        add("endless", node, node.type === "ForStatement" ? "for" : "while");
    const text = node.type === "Literal" || node.type === "TemplateLiteral" ? textOf(node) : null;
    if (text && /^(https?|wss?|ftp):\/\//i.test(text)) add("network", node, `${text.split("://")[0]}://`);
    if (text && /^\/proc\/\w+\/environ$/.test(text)) add("environment", node, "/proc/self/environ");
}

const acorn = loadParser();
try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(fs.readFileSync(process.argv[2]));
    const waiting = [parse(acorn, text)];
    while (waiting.length > 0) {
        const node = waiting.pop();
        lookAt(node);
        for (const child of childrenOf(node)) waiting.push(child);
    }
} catch (error) {
    if (error instanceof RangeError) add("unchecked", null, "it is nested too deeply");
    else add("syntax", error.loc ? { loc: { start: error.loc } } : null, String(error.message).replace(/ \(\d+:\d+\)$/, ""));
}
finish();
