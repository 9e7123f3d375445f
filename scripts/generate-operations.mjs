// Writes the dashboards and the rule files from their TypeScript sources in dashboards/source and deploy/rules.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
// Inside the project, so that the bundle finds its packages.
const directory = mkdtempSync(join(root, 'node_modules/.generate-'));
try {
  const entryPoints = [join(root, 'deploy/rules/rule-files.ts'), join(root, 'dashboards/source/dashboard-files.ts')];
  await build({
    entryPoints,
    outdir: directory,
    outbase: root,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    outExtension: { '.js': '.mjs' },
  });
  const { ruleFiles } = await import(pathToFileURL(join(directory, 'deploy/rules/rule-files.mjs')));
  const { dashboardFiles } = await import(pathToFileURL(join(directory, 'dashboards/source/dashboard-files.mjs')));
  for (const [path, text] of Object.entries({ ...ruleFiles(), ...dashboardFiles() })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
} finally {
  rmSync(directory, { recursive: true });
}
