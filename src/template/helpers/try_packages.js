// try_packages.js - loads each package of npm that a recipe lists, in a process of its own, inside a new root that is
// otherwise complete: try_packages.js LIST. Packages without a module, such as those with types or commands, are skipped.

'use strict';
const fs = require('fs');
const { spawnSync } = require('child_process');

const load = `
const [name, file] = process.argv.slice(1);
const fail = (failure) => {
  const isOwn = /^(ERR_)?MODULE_NOT_FOUND$/.test(failure.code) && failure.message.includes("'" + name + "'");
  if (failure.code === 'ERR_PACKAGE_PATH_NOT_EXPORTED' || (isOwn && !require(file).main)) process.exit(0);
  console.error('\\n' + String(failure && failure.message || failure).split('\\n')[0].slice(0, 200));
  process.exit(1);
};
try {
  require(name);
  process.exit(0);
} catch (failure) {
  const isModule = ['ERR_REQUIRE_ESM', 'ERR_PACKAGE_PATH_NOT_EXPORTED'].includes(failure.code);
  import(name).then(() => process.exit(0), (other) => fail(isModule ? other : failure));
}`;

const names = JSON.parse(process.argv[1]).map((wanted) => /^@?[^@]+/.exec(wanted)[0]);
names.forEach((name, number) => {
  console.error(`trying packages of npm, ${number} of ${names.length}`);
  const file = `/usr/local/lib/node_modules/${name}/package.json`;
  const done = spawnSync(process.execPath, ['-e', load, name, file],
    { encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'], timeout: 60000, killSignal: 'SIGKILL', maxBuffer: 1 << 26 });
  if (done.status === 0) return;
  const said = (done.stderr || '').trim().split('\n').pop() || `it ends with ${done.signal || done.status}`;
  const why = done.error && done.error.code === 'ETIMEDOUT' ? 'it is not loaded within a minute' : said;
  const scripts = JSON.parse(fs.readFileSync(file, 'utf8')).scripts || {};
  const unrun = ['preinstall', 'install', 'postinstall'].filter((one) => scripts[one]);
  console.error(`package ${name} of npm cannot be loaded: ${why.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ')}; ` +
    (unrun.length ? `its ${unrun.join(', ')} script was not run; ` : '') + 'take it out of `npm`, or add what it needs');
  process.exit(1);
});
