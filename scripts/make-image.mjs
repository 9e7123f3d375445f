#!/usr/bin/env node
// Writes the container image as an OCI layout, without a daemon and without root:
//   node scripts/make-image.mjs [--architectures=amd64,arm64] [--archive=FILE.tar] [directory, default dist-image]
// The same sources and the same versions of packages give the same layers, whoever makes them.
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { writeBundle } from './bundle.mjs';
import { makeImage } from './image/image.mjs';
import { PLATFORMS } from './image/platforms.mjs';
import { tarOf } from './image/tar.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { architectures: { type: 'string', default: Object.keys(PLATFORMS).join(',') }, archive: { type: 'string' } },
});
const target = resolve(positionals[0] ?? join(root, 'dist-image'));
const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const work = mkdtempSync(join(tmpdir(), 'device-agent-image-'));
try {
  const architectures = values.architectures.split(',');
  const unknown = architectures.find((each) => PLATFORMS[each] === undefined);
  if (unknown !== undefined) throw new Error(`no architecture ${unknown}: there are ${Object.keys(PLATFORMS).join(' and ')}`);
  const bundle = join(work, 'bundle');
  await writeBundle(bundle);
  rmSync(target, { recursive: true, force: true });
  const { digest, images } = makeImage({ target, architectures, bundle, debian: join(work, 'packed'), work });
  for (const { architecture, layers } of images)
    console.log(`${architecture}: ${layers.map(({ directory, title }) => `${title} ${mebibytes(directory)}`).join(', ')}`);
  console.log(`${target}: ${name}:${version} ${digest}`);
  if (values.archive !== undefined) writeFileSync(values.archive, tarOf(target));
} catch (error) {
  console.error(`make-image: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}

function mebibytes(directory) {
  const paths = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  return `${(paths.reduce((sum, path) => sum + lstatSync(join(directory, path)).size, 0) / 2 ** 20).toFixed(1)} MiB`;
}
