// Writes the dashboards, the rule files and the schema of the chart's values from their TypeScript sources in dashboards/source and
// deploy/rules, and from the built program.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { familyLoaders } from '../dist/probes/families.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const sources = ['deploy/rules/rule-files', 'deploy/rules/values-schema', 'dashboards/source/dashboard-files'];
// Inside the project, so that the bundle finds its packages.
const directory = mkdtempSync(join(root, 'node_modules/.generate-'));
try {
  const [rules, values, dashboards] = await bundled();
  const boards = dashboards.dashboardFiles();
  const families = await Promise.all(Object.values(familyLoaders).map((load) => load()));
  // A switch of the chart turns a family off. One that is off already has none.
  const names = families.filter(({ isOffByDefault }) => isOffByDefault !== true).map(({ name }) => name);
  const config = JSON.parse(execFileSync(process.execPath, [join(root, 'dist/cli/main.js'), 'config', 'schema'], { encoding: 'utf8' }));
  const files = {
    ...rules.ruleFiles(),
    ...boards,
    // A chart has only files below its own directory.
    ...Object.fromEntries(Object.entries(boards).map(([path, text]) => [`deploy/chart/files/${path}`, JSON.stringify(JSON.parse(text))])),
    'deploy/chart/values.schema.json': `${JSON.stringify(values.valuesSchema(config, names), null, 2)}\n`,
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
} finally {
  rmSync(directory, { recursive: true });
}

async function bundled() {
  const entryPoints = sources.map((source) => join(root, `${source}.ts`));
  const output = { outdir: directory, outbase: root, outExtension: { '.js': '.mjs' } };
  await build({ entryPoints, ...output, bundle: true, packages: 'external', platform: 'node', format: 'esm' });
  return await Promise.all(sources.map((source) => import(pathToFileURL(join(directory, `${source}.mjs`)))));
}
