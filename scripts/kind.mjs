#!/usr/bin/env node
// Loads the image into a kind cluster and installs the chart there, without a registry:
//   npm run kind [-- --name=CLUSTER]
// --name   the cluster, as kind calls it; default kind
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' };
const root = fileURLToPath(new URL('..', import.meta.url));
const { name } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const work = mkdtempSync(join(tmpdir(), 'device-agent-kind-'));
const run = (program, ...words) => execFileSync(program, words, { stdio: 'inherit' });
try {
  const { values } = parseArgs({ options: { name: { type: 'string', default: 'kind' } } });
  const archive = join(work, 'image.tar');
  // The nodes of kind have the architecture of this machine.
  const architecture = `--architectures=${ARCHITECTURES[process.arch] ?? process.arch}`;
  run(process.execPath, join(root, 'scripts/make-image.mjs'), architecture, `--archive=${archive}`, join(work, 'image'));
  run('kind', 'load', 'image-archive', archive, '--name', values.name);
  const cluster = ['--kube-context', `kind-${values.name}`, '--namespace', name, '--create-namespace'];
  run('helm', 'upgrade', '--install', name, join(root, 'deploy/chart'), ...cluster, '--set', 'image.pullPolicy=Never', '--wait');
} catch (error) {
  console.error(`kind: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}
