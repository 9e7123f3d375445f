#!/usr/bin/env node
// Writes the container image as an OCI layout, without a daemon and without root:
//   node scripts/make-image.mjs [--architectures=amd64,arm64] [--archive=FILE.tar] [directory, default dist-image]
// It has Node, the C library that Node is linked to, and the agent; no shell, no package manager. The same sources and the same
// versions of packages give the same layers, whoever makes them.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { unpackDebian, unpackNpm } from './image/download.mjs';
import { Layout } from './image/layout.mjs';
import { DEBIAN_FILES, DEBIAN_PACKAGES, NODE_VERSION, PLATFORMS } from './image/platforms.mjs';
import { imageStart } from './image/start.mjs';
import { tarOf } from './image/tar.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { architectures: { type: 'string', default: Object.keys(PLATFORMS).join(',') }, archive: { type: 'string' } },
});
const target = resolve(positionals[0] ?? join(root, 'dist-image'));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const work = mkdtempSync(join(tmpdir(), 'device-agent-image-'));
try {
  makeImage(values.architectures.split(','));
} catch (error) {
  console.error(`make-image: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}

function makeImage(architectures) {
  const unknown = architectures.find((name) => PLATFORMS[name] === undefined);
  if (unknown !== undefined) throw new Error(`no architecture ${unknown}: there are ${Object.keys(PLATFORMS).join(' and ')}`);
  const bundle = join(work, 'bundle');
  execFileSync(process.execPath, [join(root, 'scripts/bundle.mjs'), bundle], { stdio: ['ignore', 'ignore', 'inherit'] });
  rmSync(target, { recursive: true, force: true });
  const layout = new Layout(target);
  for (const architecture of architectures) {
    const folder = join(work, architecture);
    const layers = [
      { title: 'the C library, from Debian', directory: systemLayer(architecture, folder) },
      { title: `Node ${NODE_VERSION}`, directory: nodeLayer(architecture, folder) },
      { title: `${manifest.name} ${manifest.version}`, directory: agentLayer(architecture, folder, bundle) },
    ];
    layout.addImage(architecture, layers, containerConfig());
    console.log(`${architecture}: ${layers.map(({ directory, title }) => `${title} ${mebibytes(directory)}`).join(', ')}`);
  }
  console.log(`${target}: ${manifest.name}:${manifest.version} ${layout.close(manifest.name, manifest.version)}`);
  if (values.archive !== undefined) writeFileSync(values.archive, tarOf(target));
}

/** Libraries, the name of the distribution, and the versions of its packages in the form that scanners read. */
function systemLayer(architecture, folder) {
  const [unpacked, layer] = [join(folder, 'debian'), join(folder, 'system')];
  for (const control of unpackDebian(DEBIAN_PACKAGES, architecture, unpacked)) {
    const name = /^Package: (.+)$/m.exec(control)[1];
    write(layer, `var/lib/dpkg/status.d/${name}`, control);
  }
  const files = readdirSync(join(unpacked, 'root'), { recursive: true, encoding: 'utf8' });
  for (const path of files.filter((each) => DEBIAN_FILES.some((pattern) => pattern.test(each)))) {
    const from = join(unpacked, 'root', path);
    if (lstatSync(from).isDirectory()) continue;
    mkdirSync(dirname(join(layer, path)), { recursive: true });
    cpSync(from, join(layer, path), { verbatimSymlinks: true });
  }
  write(layer, 'etc/passwd', 'root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n');
  write(layer, 'etc/group', 'root:x:0:\nnogroup:x:65534:\n');
  // Where runtimes mount: a root that is read-only can have no new ones.
  for (const path of ['dev', 'proc', 'run', 'sys', 'tmp', 'usr/bin', 'host/proc', 'host/sys', 'var/lib/device-agent', 'var/lib/kubelet'])
    mkdirSync(join(layer, path), { recursive: true });
  return layer;
}

function nodeLayer(architecture, folder) {
  const layer = join(folder, 'node');
  const unpacked = unpackNpm(PLATFORMS[architecture].node, join(folder, 'node-package'));
  const [program] = imageStart().entrypoint;
  mkdirSync(dirname(join(layer, program)), { recursive: true });
  cpSync(join(unpacked, 'bin/node'), join(layer, program));
  chmodSync(join(layer, program), 0o755);
  write(layer, 'usr/share/doc/node/copyright', readFileSync(join(unpacked, 'LICENSE')));
  return layer;
}

/** The bundle with the native part of koffi for the image's platform instead of this machine's. */
function agentLayer(architecture, folder, bundle) {
  const layer = join(folder, 'agent');
  const program = imageStart().entrypoint.at(-1);
  const own = join(layer, dirname(program));
  cpSync(bundle, own, { recursive: true, filter: (path) => !path.includes('/node_modules/@koromix/') });
  const { koffi } = PLATFORMS[architecture];
  const unpacked = unpackNpm(koffi, join(folder, 'koffi-package'));
  // Its other part is for a C library that the image does not have.
  cpSync(unpacked, join(own, 'node_modules', koffi.name), { recursive: true, filter: (path) => !/\/musl_\w+$/.test(path) });
  write(layer, 'usr/local/bin/device-agent', readFileSync(join(root, 'deploy/device-agent')));
  chmodSync(join(layer, 'usr/local/bin/device-agent'), 0o755);
  return layer;
}

function containerConfig() {
  const start = imageStart();
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin', ...start.env };
  const revision = commit();
  return {
    User: start.user,
    ExposedPorts: { [`${start.port}/tcp`]: {} },
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    Entrypoint: start.entrypoint,
    Cmd: start.arguments,
    WorkingDir: '/',
    Labels: {
      'org.opencontainers.image.title': manifest.name,
      'org.opencontainers.image.description': manifest.description,
      'org.opencontainers.image.version': manifest.version,
      'org.opencontainers.image.licenses': manifest.license,
      ...(revision === '' ? {} : { 'org.opencontainers.image.revision': revision }),
    },
  };
}

/** Empty outside of a checkout. */
function commit() {
  try {
    const words = ['describe', '--always', '--dirty', '--abbrev=40', '--exclude=*'];
    return execFileSync('git', words, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return '';
  }
}

function write(layer, path, content) {
  mkdirSync(dirname(join(layer, path)), { recursive: true });
  writeFileSync(join(layer, path), content);
}

function mebibytes(directory) {
  const paths = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  return `${(paths.reduce((sum, path) => sum + lstatSync(join(directory, path)).size, 0) / 2 ** 20).toFixed(1)} MiB`;
}
