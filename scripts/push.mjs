#!/usr/bin/env node
// Puts the image for all architectures and the chart into a registry, without a daemon:
//   npm run push -- REGISTRY [--layout=FOLDER]
// REGISTRY   host, port and path; HTTPS except on this machine. REGISTRY_USERNAME and REGISTRY_PASSWORD are used when it asks for them.
// --layout   an image that `npm run image` made; without it, it is made now
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { load } from 'js-yaml';
import { chartTree, Registry } from './push/registry.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const work = mkdtempSync(join(tmpdir(), 'device-agent-push-'));
try {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { layout: { type: 'string' } } });
  const [place] = positionals;
  if (place === undefined || positionals.length > 1) throw new Error('give one registry: npm run push -- registry.example.com/tools');
  const { REGISTRY_USERNAME: username, REGISTRY_PASSWORD: password } = process.env;
  const registry = new Registry(place, { username, password });
  const layout = values.layout ?? join(work, 'image');
  if (values.layout === undefined) execFileSync(process.execPath, [join(root, 'scripts/make-image.mjs'), layout], { stdio: 'inherit' });
  const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8'));
  const image = manifests.find(({ annotations }) => annotations?.['org.opencontainers.image.ref.name'] === version);
  if (image === undefined) throw new Error(`${layout} has no image ${version}`);
  const read = (digest) => readFileSync(join(layout, 'blobs', digest.replace(':', '/')));
  const digest = await registry.pushTree(name, image, read, version);
  console.log(`image ${place}/${name}:${version} ${digest}`);

  execFileSync('helm', ['package', join(root, 'deploy/chart'), '--destination', work], { stdio: ['ignore', 'ignore', 'inherit'] });
  const chart = load(readFileSync(join(root, 'deploy/chart/Chart.yaml'), 'utf8'));
  const tree = chartTree(readFileSync(join(work, `${chart.name}-${chart.version}.tgz`)), chart);
  await registry.pushTree(`charts/${chart.name}`, tree.manifest, tree.read, chart.version);
  console.log(`chart oci://${place}/charts/${chart.name} ${chart.version} ${tree.manifest.digest}`);
} catch (error) {
  console.error(`push: ${error.message}${error.cause?.message === undefined ? '' : `: ${error.cause.message}`}`);
  process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}
