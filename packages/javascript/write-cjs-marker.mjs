// The files under dist/cjs are CommonJS, although the package itself says "module".
import { writeFileSync } from "node:fs";

writeFileSync(new URL("dist/cjs/package.json", import.meta.url), '{ "type": "commonjs" }\n');
