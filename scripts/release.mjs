#!/usr/bin/env node
// Writes a release into one folder. The same commit and the same packages give the same bytes, on each machine:
//   npm run release -- [--out FOLDER] [--key FILE] [--debian FOLDER] [--builder URI]
// --out      default dist-release; it must be empty or not there
// --key      signs SHA256SUMS; without it nothing is signed
// --debian   Debian packages for the image, as the folder debian of a release has them; without it apt fetches the newest
// --builder  what the provenance names as the place where the release is made
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { writeBundle } from './bundle.mjs';
import { gzipOf } from './image/gzip.mjs';
import { makeImage, placeProgram } from './image/image.mjs';
import { PLATFORMS } from './image/platforms.mjs';
import { tarOf } from './image/tar.mjs';
import { readCheckout, readLock } from './release/checkout.mjs';
import { debianPackage, npmPackage } from './release/packages.mjs';
import { provenanceOf } from './release/provenance.mjs';
import { componentOf, sbomOf } from './release/sbom.mjs';
import { signFile } from './release/signature.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const { name, version, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const ARCHITECTURES = Object.keys(PLATFORMS);
const BUNDLE = `${name}-${version}-systemd.tar.gz`;
const CHART = `${name}-${version}.tgz`;

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: join(root, 'dist-release') },
    key: { type: 'string' },
    debian: { type: 'string' },
    builder: { type: 'string', default: 'urn:device-agent:builder:unnamed' },
  },
});
const out = resolve(values.out);
const work = mkdtempSync(join(tmpdir(), 'device-agent-release-'));
try {
  if (existsSync(out) && readdirSync(out).length > 0) throw new Error(`${out} is not empty`);
  await makeRelease().catch((error) => {
    rmSync(out, { recursive: true, force: true });
    throw error;
  });
} catch (error) {
  console.error(`release: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}

async function makeRelease() {
  const checkout = readCheckout(root);
  const lock = readLock(root);
  const debian = join(out, 'debian');
  mkdirSync(out, { recursive: true });
  if (values.debian !== undefined) cpSync(values.debian, debian, { recursive: true });

  const bundle = join(work, 'bundle');
  const { folders } = await writeBundle(bundle);
  const image = makeImage({ target: join(out, 'image'), architectures: ARCHITECTURES, bundle, debian, work });
  writeArchive(BUNDLE, name, (folder) => {
    placeProgram(ARCHITECTURES, work, bundle, folder);
    for (const file of ['deploy/systemd/device-agent.service', 'LICENSE']) cpSync(join(root, file), join(folder, basename(file)));
  });
  const chart = checkout.files.filter((file) => file.startsWith('deploy/chart/'));
  writeArchive(CHART, name, (folder) => {
    for (const file of chart) place(file, join(folder, file.slice('deploy/chart/'.length)));
  });
  for (const file of ['deploy/rules.yaml', 'deploy/rules-cost.yaml', 'deploy/rules-dcgm.yaml', 'deploy/rules-fleet.yaml'])
    place(file, join(out, 'rules', basename(file)));
  for (const file of checkout.files.filter((each) => /^dashboards\/[^/]+\.json$/.test(each))) place(file, join(out, file));

  const debianPackages = image.images.flatMap((each) =>
    each.debian.map((one) => debianPackage(one, sha256(readFileSync(one.file)), each.distribution)),
  );
  writeSboms(folders, lock, image, debianPackages, checkout.time);
  writeProvenance(checkout.commit, lock, image.digest, debianPackages);
  writeFileSync(
    join(out, 'SHA256SUMS'),
    filesOf(out)
      .map((file) => `${sha256(readFileSync(join(out, file)))}  ${file}\n`)
      .join(''),
  );
  if (values.key !== undefined) signFile(join(out, 'SHA256SUMS'), values.key);
  console.log(
    `${out}: ${name} ${version} of commit ${checkout.commit}, image ${image.digest}${values.key === undefined ? ', not signed' : ''}`,
  );
}

function writeSboms(folders, lock, image, debianPackages, time) {
  const npm = (folder) => componentOf('library', npmPackage(nameOf(folder), lock[folder]));
  const packages = folders.map(npm);
  const native = (architecture) => npm(`node_modules/${PLATFORMS[architecture].koffi.name}`);
  const write = (file, subject, components) =>
    writeJson(
      join(out, 'sbom', `${file}.cdx.json`),
      sbomOf(componentOf(subject.type, { name, version, license, ...subject }), components, time),
    );
  for (const { architecture, digest, distribution } of image.images) {
    const subject = { type: 'container', purl: ociPurl(digest, `arch=${architecture}&`), digest: ofDigest(digest) };
    // The licence that its package declares. Those of what is in it are in the image, as usr/share/doc/node/copyright.
    const node = { ...npmPackage(PLATFORMS[architecture].node.name, PLATFORMS[architecture].node), license: 'MIT' };
    write(`image-${architecture}`, subject, [
      componentOf('operating-system', { name: 'debian', version: distribution }),
      ...debianPackages.filter(({ purl }) => purl.includes(`?arch=${architecture}&`)).map((each) => componentOf('library', each)),
      // Scanners find the faults of Node by this name, those of its own copies of OpenSSL and others among them.
      componentOf('platform', { ...node, name: 'node', cpe: `cpe:2.3:a:nodejs:node.js:${node.version}:*:*:*:*:*:*:*` }),
      ...packages,
      native(architecture),
    ]);
  }
  const digestOf = (file) => ({ algorithm: 'sha256', hex: sha256(readFileSync(join(out, file))) });
  write('bundle', { type: 'application', digest: digestOf(BUNDLE) }, [...packages, ...ARCHITECTURES.map(native)]);
  const shown = { name, version, license, purl: ociPurl(image.digest), digest: ofDigest(image.digest) };
  write('chart', { type: 'application', digest: digestOf(CHART) }, [componentOf('container', shown)]);
}

/** Its subjects are what people install and read, and the image by the digest that a registry shows. */
function writeProvenance(commit, lock, imageDigest, debianPackages) {
  const subjects = filesOf(out)
    .filter((file) => !/^(?:image|debian)\//.test(file))
    .map((file) => ({ name: file, hex: sha256(readFileSync(join(out, file))) }));
  // The lock file has no digest of tools that no Linux machine installs.
  const locked = Object.entries(lock).filter(([, { integrity }]) => integrity !== undefined);
  const inputs = [
    ...new Map(locked.map(([folder, entry]) => npmPackage(nameOf(folder), entry)).map((each) => [each.purl, each])).values(),
    ...ARCHITECTURES.map((architecture) => PLATFORMS[architecture].node).map((node) => npmPackage(node.name, node)),
    ...debianPackages,
  ];
  const statement = provenanceOf({
    subjects: [{ name: `${name}:${version}`, hex: ofDigest(imageDigest).hex }, ...subjects],
    commit,
    inputs,
    parameters: { version, architectures: ARCHITECTURES },
    builder: values.builder,
  });
  writeJson(join(out, 'provenance.json'), statement);
}

/** Writes a compressed archive of one folder, which `fill` fills. */
function writeArchive(file, top, fill) {
  const directory = join(work, file);
  mkdirSync(join(directory, top), { recursive: true });
  fill(join(directory, top));
  writeFileSync(join(out, file), gzipOf(tarOf(directory)));
}

function place(file, target) {
  mkdirSync(dirname(target), { recursive: true });
  cpSync(join(root, file), target);
}

function writeJson(file, value) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}

/** The name of an npm package, by its folder below node_modules. */
function nameOf(folder) {
  return folder.split('node_modules/').at(-1);
}

/** Files below a folder, sorted. */
function filesOf(directory) {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((path) => statSync(join(directory, path)).isFile())
    .sort();
}

function sha256(content) {
  return createHash('sha256').update(content).digest('hex');
}

function ofDigest(digest) {
  return { algorithm: 'sha256', hex: digest.replace('sha256:', '') };
}

function ociPurl(digest, qualifiers = '') {
  return `pkg:oci/${name}@${encodeURIComponent(digest)}?${qualifiers}tag=${version}`;
}
