// node.js - loaded by Node.js before each program of a template. Node.js counts processors in /proc/stat, which a sandbox
// does not have: programs that start a worker for each would start none. And `import` also searches NODE_PATH, like
// `require`: the template's packages of npm, after the program's own.

'use strict';
const fs = require('fs');
const loader = require('module');
const os = require('os');
const { isMainThread } = require('worker_threads');

if (os.cpus().length === 0) {
  const times = { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 };
  os.cpus = () => Array.from({ length: os.availableParallelism() }, () => ({ model: 'unknown', speed: 0, times: { ...times } }));
  loader.syncBuiltinESMExports();
}

const hook = (kind, wait) => `${kind} function resolve(specifier, context, next) {
  try {
    return ${wait} next(specifier, context);
  } catch (failure) {
    if (failure.code !== 'ERR_MODULE_NOT_FOUND' || /^[./#]|:/.test(specifier)) throw failure;
    try { return ${wait} next(specifier, { ...context, parentURL: 'file:///usr/local/lib/any.js' }); } catch { throw failure; }
  }
}`;
const mentionsImport = (text) => /\bimport\b/.test(text);

// Before Node.js 22.15 the hook needs a thread, which takes 40 ms: only programs that contain `import` wait for it.
let isHooked = false;
function addHook() {
  if (!isHooked) loader.register('data:text/javascript,export ' + encodeURIComponent(hook('async', 'await')));
  isHooked = true;
}

function programImports() {
  if (!isMainThread || process.execArgv.some((word) => word.startsWith('--input-type'))) return true;
  if (process._eval !== undefined && process._eval !== null) return mentionsImport(process._eval);
  try { return !/\.c?js$/.test(process.argv[1]) || mentionsImport(fs.readFileSync(process.argv[1], 'utf8')); } catch { return true; }
}

const hasPackages = fs.existsSync('/usr/local/lib/node_modules');
if (hasPackages && loader.registerHooks) {
  loader.registerHooks({ resolve: new Function(`return ${hook('', '')}`)() });
} else if (hasPackages && loader.register) {
  const compile = loader.prototype._compile;
  loader.prototype._compile = function _compile(content, ...rest) {
    if (!isHooked && mentionsImport(content)) addHook();
    return compile.call(this, content, ...rest);
  };
  if (programImports()) addHook();
}
