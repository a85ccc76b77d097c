import { fileURLToPath } from "node:url";

import tseslint from "typescript-eslint";

export default tseslint.config(
  tseslint.configs.strictTypeChecked,
  { languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: fileURLToPath(new URL(".", import.meta.url)) } } },
  { rules: { "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }] } },
);
