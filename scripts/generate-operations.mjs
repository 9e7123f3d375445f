// Writes the dashboards, the rule files, the schema of the chart's values, its README and deploy/kustomize from their TypeScript sources in dashboards/source,
// deploy/rules and deploy/values, and from the built program.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { familyLoaders } from '../dist/probes/families.js';
import { loadSources } from './load-sources.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const sources = [
  'deploy/rules/rule-files',
  'deploy/values/chart-readme',
  'deploy/values/kustomize',
  'deploy/values/values-schema',
  'dashboards/source/dashboard-files',
];
const [rules, readme, kustomize, values, dashboards] = await loadSources(sources);
const boards = dashboards.dashboardFiles();
const families = await Promise.all(Object.values(familyLoaders).map((load) => load()));
// A switch of the chart turns a family off. One that is off already has none.
const names = families.filter(({ isOffByDefault }) => isOffByDefault !== true).map(({ name }) => name);
const config = JSON.parse(execFileSync(process.execPath, [join(root, 'dist/cli/main.js'), 'config', 'schema'], { encoding: 'utf8' }));
const read = (path) => readFileSync(join(root, path), 'utf8');
const yaml = read('deploy/chart/values.yaml');
const schema = values.valuesSchema(config, names, yaml);
const files = {
  ...rules.ruleFiles(),
  ...boards,
  // A chart has only files below its own directory.
  ...Object.fromEntries(Object.entries(boards).map(([path, text]) => [`deploy/chart/files/${path}`, JSON.stringify(JSON.parse(text))])),
  'deploy/chart/values.schema.json': `${JSON.stringify(schema, null, 2)}\n`,
  'deploy/chart/README.md': readme.chartReadme(schema, yaml),
};
write(files);
// The manifests come from the chart as it is written now.
const helm = process.env.HELM ?? 'helm';
if (spawnSync(helm, ['version']).status === 0) write(kustomize.kustomizeFiles((...words) => template(helm, words), read));
else console.error('deploy/kustomize stays as it is: there is no helm in PATH or HELM');

function write(files) {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

function template(helm, words) {
  const all = ['template', 'device-agent', 'deploy/chart', '--namespace=device-agent', '--kube-version=1.36.3', ...words];
  return execFileSync(helm, all, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
}
