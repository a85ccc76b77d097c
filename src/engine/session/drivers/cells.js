// Runs cells in node: reads the path of each from descriptor 3, and answers there when it has ended. The
// evaluation is that of node's own REPL: names are kept, the last value is the result, await works at top
// level, an interrupt ends the cell.
"use strict";
(() => {
  const fs = require("fs"), repl = require("repl"), stream = require("stream"), util = require("util");
  const PIECE = 30000;
  // Of the JSON of a cell: gloveboxd drops all of a result that is nested deeper or has more values.
  const LEVELS = 25, VALUES = 80000;
  let left = 0; // values

  function say(line) {
    for (let bytes = Buffer.from(line + "\n"); bytes.length > 0;)
      bytes = bytes.subarray(fs.writeSync(3, bytes));
  }

  function tell(what, value) {
    const bytes = Buffer.from(JSON.stringify(value));
    for (let at = 0; at < bytes.length; at += PIECE) {
      const last = at + PIECE >= bytes.length;
      const line = Buffer.concat([Buffer.from((last ? what.toUpperCase() : what) + " "),
        bytes.subarray(at, at + PIECE), Buffer.from("\n")]);
      for (let sent = 0; sent < line.length;)
        sent += fs.writeSync(3, line, sent);
    }
  }

  function fits(value, levels) {
    return --left >= 0 && (value === null || typeof value !== "object" ||
      (levels > 0 && Object.values(value).every((part) => fits(part, levels - 1))));
  }

  function shown(value) {
    const data = { "text/plain": typeof value === "string" ? value : util.inspect(value, { depth: 6 }) };
    if (value !== null && typeof value === "object" && [Object.prototype, Array.prototype].includes(
      Object.getPrototypeOf(value))) {
      try {
        const plain = JSON.parse(JSON.stringify(value)), before = left;
        if (fits(plain, LEVELS))
          data["application/json"] = plain;
        else
          left = before;
      } catch (error) {} // circular: only the text is shown
    }
    return { data };
  }

  function failure(error) {
    const cause = error instanceof repl.Recoverable ? error.err : error;
    const isError = util.types.isNativeError(cause) || cause instanceof Error;
    const stack = isError && typeof cause.stack === "string" ? cause.stack : util.inspect(cause);
    const isInterrupt = isError && cause.code === "ERR_SCRIPT_EXECUTION_INTERRUPTED";
    return {
      name: isInterrupt ? "KeyboardInterrupt" : isError ? String(cause.name) : typeof cause,
      value: isError ? String(cause.message) : util.inspect(cause),
      traceback: stack.split("\n").filter((line) => !/\((node:|\[eval\])|at node:|at \[eval\]/.test(line))
        .join("\n"),
      frames: [],
    };
  }

  const input = new stream.Readable({ read() {} });
  const output = new stream.Writable({
    write(text, encoding, done) {
      process.stderr.write(text); // an uncaught error, after its cell
      done();
    },
  });
  const server = repl.start({ prompt: "", input, output, terminal: false, useGlobal: true,
    breakEvalOnSigint: true, ignoreUndefined: true });
  globalThis.display = (value) => tell("d", shown(value));
  // Between cells an interrupt is ignored, and during an await it ends the cell. While the cell's own code runs
  // there must be no listener: removing the last one would remove that of the evaluation.
  const interrupt = () => running && server.emit("SIGINT");
  process.on("SIGINT", interrupt);
  let count = 0, running = null;

  function end(cell, error, value) {
    if (cell !== running)
      return;
    running = null;
    try {
      if (error)
        tell("e", failure(error));
      else if (value !== undefined)
        tell("v", shown(value));
    } catch (other) {
      tell("e", failure(other));
      error = other;
    }
    say(`X ${error ? 1 : 0}`);
    listen();
  }

  // The REPL gives errors of a cell to its domain; an error after the cell's end belongs to no cell.
  if (server._domain) {
    server._domain.removeAllListeners("error");
    server._domain.on("error", (error) => {
      if (running)
        end(running, error ?? new Error(String(error)));
      else
        process.stderr.write(`Uncaught ${failure(error).traceback}\n`);
    });
  }

  function run(path) {
    const cell = { name: `<cell ${++count}>` };
    running = cell;
    left = VALUES;
    process.off("SIGINT", interrupt);
    server.eval(fs.readFileSync(path, "utf8"), server.context, cell.name,
      (error, value) => end(cell, error, value));
    process.on("SIGINT", interrupt);
  }

  const room = Buffer.alloc(4096);
  let heard = "";
  function listen() {
    fs.read(3, room, 0, room.length, null, (error, size) => {
      if (error || size === 0)
        process.exit(0);
      heard += room.toString("utf8", 0, size);
      const end = heard.indexOf("\n");
      if (end < 0)
        return listen();
      const path = heard.slice(0, end);
      heard = heard.slice(end + 1);
      run(path);
    });
  }
  listen();
})();
