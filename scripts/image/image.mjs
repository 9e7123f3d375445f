// The container image: Node, the C library that Node is linked to, and the agent; no shell, no package manager.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unpackDebian, unpackNpm } from './download.mjs';
import { Layout } from './layout.mjs';
import { DEBIAN_FILES, DEBIAN_PACKAGES, NODE_VERSION, PLATFORMS } from './platforms.mjs';
import { imageStart } from './start.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/**
 * Writes the image into an OCI layout, which must not be there yet. `bundle` is the bundled agent, `debian` the folder of Debian packages,
 * `work` one for unpacked files. Returns the digest of the image and, for each architecture, its digest, layers, Debian packages and the
 * version of Debian.
 */
export function makeImage({ target, architectures, bundle, debian, work }) {
  const layout = new Layout(target);
  const images = architectures.map((architecture) => {
    const folder = join(work, architecture);
    const system = systemLayer(architecture, folder, join(debian, architecture));
    const layers = [
      { title: 'the C library, from Debian', directory: system.layer },
      { title: `Node ${NODE_VERSION}`, directory: nodeLayer(architecture, folder) },
      { title: `${manifest.name} ${manifest.version}`, directory: agentLayer(architecture, folder, bundle) },
    ];
    const digest = layout.addImage(architecture, layers, containerConfig());
    return { architecture, digest, layers, debian: system.packages, distribution: system.distribution };
  });
  return { digest: layout.close(manifest.name, manifest.version), images };
}

/** Libraries, the name of the distribution, and the versions of its packages in the form that scanners read. */
function systemLayer(architecture, folder, packed) {
  const [unpacked, layer] = [join(folder, 'debian'), join(folder, 'system')];
  const packages = unpackDebian(DEBIAN_PACKAGES, architecture, unpacked, packed);
  for (const { name, control } of packages) write(layer, `var/lib/dpkg/status.d/${name}`, control);
  const files = readdirSync(join(unpacked, 'root'), { recursive: true, encoding: 'utf8' });
  for (const path of files.filter((each) => DEBIAN_FILES.some((pattern) => pattern.test(each)))) {
    const [from, to] = [join(unpacked, 'root', path), join(layer, path)];
    const status = lstatSync(from);
    if (status.isDirectory()) continue;
    mkdirSync(dirname(to), { recursive: true });
    // Not by cpSync: in Node 24 it copies no link to a folder.
    if (status.isSymbolicLink()) symlinkSync(readlinkSync(from), to);
    else cpSync(from, to);
  }
  write(layer, 'etc/passwd', 'root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n');
  write(layer, 'etc/group', 'root:x:0:\nnogroup:x:65534:\n');
  // Where runtimes mount: a root that is read-only can have no new ones.
  for (const path of ['dev', 'proc', 'run', 'sys', 'tmp', 'usr/bin', 'host/proc', 'host/sys', 'var/lib/device-agent', 'var/lib/kubelet'])
    mkdirSync(join(layer, path), { recursive: true });
  const [, distribution] = /^VERSION_ID="(.+)"$/m.exec(readFileSync(join(layer, 'usr/lib/os-release'), 'utf8'));
  return { layer, packages, distribution };
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

function agentLayer(architecture, folder, bundle) {
  const layer = join(folder, 'agent');
  const program = imageStart().entrypoint.at(-1);
  placeProgram([architecture], folder, bundle, join(layer, dirname(program)));
  write(layer, 'usr/local/bin/device-agent', readFileSync(join(root, 'deploy/device-agent')));
  chmodSync(join(layer, 'usr/local/bin/device-agent'), 0o755);
  return layer;
}

/** Copies the bundle into `target`, with the native parts of koffi for these architectures instead of this machine's. */
export function placeProgram(architectures, folder, bundle, target) {
  cpSync(bundle, target, { recursive: true, filter: (path) => !path.includes('/node_modules/@koromix/') });
  for (const architecture of architectures) {
    const { koffi } = PLATFORMS[architecture];
    const unpacked = unpackNpm(koffi, join(folder, `koffi-package-${architecture}`));
    // Its other part is for a C library that neither the image nor a host with systemd has.
    cpSync(unpacked, join(target, 'node_modules', koffi.name), { recursive: true, filter: (path) => !/\/musl_\w+$/.test(path) });
  }
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
