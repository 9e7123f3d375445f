import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { ClaimReader } from '../../../src/kubelet/claims/claims.ts';
import { claimDeviceKey } from '../../../src/model/claim-hardware.ts';
import { builtDocumentThread } from '../../support/documents.ts';
import { seeded } from '../../support/seeded.ts';
import { claimOf, held } from '../claims/claim-tree.ts';
import { CdiFolders, type GeneratedFile, HOST_NODES } from './support/cdi-folders.ts';
import { buildCdiLibrary, CdiLibrary, type InjectedNode, type LibraryAnswer } from './support/cdi-library.ts';

const built = await buildCdiLibrary();
if ('missing' in built) process.stderr.write(`skipped: CDI specs against the library of runtimes, ${built.missing}\n`);

/** As many folders as `CDI_FOLDERS` says, from the seed `CDI_SEED` on. */
const FOLDERS = Number(process.env.CDI_FOLDERS ?? 150);
const SEED = Number(process.env.CDI_SEED ?? 1);

const root = mkdtempSync(join(tmpdir(), 'cdi-library-'));
const thread = builtDocumentThread();
let library: CdiLibrary;
let host: string | undefined;

/** Each number of a device has a PCI address of its own, and each node of the machine the one of its numbers. */
function makeMachine(): void {
  const link = (path: string, address: string): void => {
    mkdirSync(join(root, 'sys/devices/pci0000:00', address), { recursive: true });
    mkdirSync(join(root, 'sys', dirname(path)), { recursive: true });
    symlinkSync(join(root, 'sys/devices/pci0000:00', address), join(root, 'sys', path));
  };
  const numbers = [5, 7, 8, 255, 261, 511].flatMap((major) => [0, 1, 2, 5, 7, 8, 255, 511].map((minor) => [major, minor] as const));
  const all = [...numbers, ...[0, 1, 2, 128, 129].map((minor) => [226, minor] as const)];
  all.forEach(([major, minor], at) => {
    const address = (domain: number): string => `000${domain}:${at.toString(16).padStart(2, '0')}:00.0`;
    link(`dev/char/${major}:${minor}`, address(0));
    if (major === 8) link(`dev/block/${major}:${minor}`, address(1));
  });
  for (const { path, major, minor } of HOST_NODES) {
    const inClass = dirname(path) === 'dri' ? 'drm' : dirname(path);
    link(`class/${inClass}/${basename(path)}`, basename(readlinkSync(join(root, `sys/dev/char/${major}:${minor}`))));
  }
  try {
    for (const { path, type, major, minor } of HOST_NODES) {
      mkdirSync(join(root, 'host/dev', dirname(path)), { recursive: true });
      execFileSync('mknod', [join(root, 'host/dev', path), type, String(major), String(minor)], { stdio: 'pipe' });
    }
    host = join(root, 'host');
  } catch {
    process.stderr.write('not tested: numbers that the CDI library takes from device nodes, because nobody can make them here\n');
  }
}

function addressOf({ type, major, minor }: InjectedNode): string | undefined {
  try {
    return type === 'p' ? undefined : basename(readlinkSync(join(root, `sys/dev/${type === 'b' ? 'block' : 'char'}/${major}:${minor}`)));
  } catch {
    return undefined;
  }
}

/** What a claim with this device must have, by what the library injects. */
function expected(nodes: readonly InjectedNode[]): object[] {
  if (nodes.length === 0) return [];
  const addresses = new Set(nodes.map(addressOf).filter((address) => address !== undefined));
  const deviceNodes = [...new Set(nodes.map(({ hostPath }) => hostPath.replace(/^\/.*(?=\/dev\/)/, '')))].sort();
  return [{ by: 'cdi', deviceNodes, ...(addresses.size === 1 ? { pciAddress: [...addresses][0] } : {}) }];
}

function write(folder: string, files: readonly GeneratedFile[]): void {
  for (const { path, text } of files) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    if (text === undefined) mkdirSync(join(folder, path));
    else writeFileSync(join(folder, path), text);
  }
}

/** Devices of claims for every name that the library, or a file, has. */
const NAMES = 'gpu-0 gpu-1 a b 007 7 0x10 16 1e3 1000 1.0 1 yes true null ~ 0 .5 0.5 1_000 0o17 15 2001-01-01 a:b v1.2 n false'.split(' ');
const KINDS = ['example.com/gpu', 'example.com/nic', 'example.com/gpu.x'];

async function differences(seed: number): Promise<{ readonly wrong: readonly string[]; readonly answer: LibraryAnswer }> {
  const folder = join(root, `folder-${seed}`);
  const files = new CdiFolders(seeded(seed), host).folder();
  write(folder, files);
  const directories = [join(folder, 'etc'), join(folder, 'run')];
  const answer = await library.read(directories);
  const reader = new ClaimReader({
    ...{ metadataDirectory: '', cdiDirectories: directories.toReversed(), sysfs: join(root, 'sys'), forms: [], thread, clock: systemClock },
  });
  const names = new Set([...Object.keys(answer.devices), ...KINDS.flatMap((kind) => NAMES.map((name) => `${kind}=${name}`))]);
  const claims = [...names].map((name) => claimOf({ device: name, cdiDevices: [name] }));
  await reader.read(claims.map(held));
  const wrong: string[] = [];
  for (const claim of claims) {
    if (answer.refused[claim.device] !== undefined) continue;
    const found = JSON.stringify((reader.current().get(claimDeviceKey(claim)) ?? []).map(sorted));
    const wanted = JSON.stringify(expected(answer.devices[claim.device] ?? []).map(sorted));
    if (found !== wanted) wrong.push(`seed ${seed}, ${claim.device}: read ${found}, injected ${wanted}`);
  }
  const problems = new Set(reader.problems().map(({ message }) => message.slice(0, message.indexOf(': '))));
  const conflicts = reader.problems().filter(({ message }) => message.includes('another spec beside it'));
  const inConflict = new Set(conflicts.map(({ message }) => message.slice(0, message.indexOf(': '))));
  for (const [path, fault] of Object.entries(answer.files)) {
    if (problems.has(path) === (fault !== '') || (fault === '' && inConflict.has(path))) continue;
    const why = reader.problems().find(({ message }) => message.startsWith(`${path}: `))?.message;
    wrong.push(`seed ${seed}, ${path}: ${why ?? 'read'}; the library: ${fault || 'a spec'}`);
  }
  for (const path of problems) if (answer.files[path] === undefined) wrong.push(`seed ${seed}, ${path}: the library does not look at it`);
  if (wrong.length === 0) rmSync(folder, { recursive: true });
  return { wrong, answer };
}

const sorted = (value: object): object => Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));

describe.skipIf('missing' in built)('CDI specs as the library of container runtimes reads them', () => {
  beforeAll(() => {
    if ('path' in built) library = new CdiLibrary(built.path);
    makeMachine();
  });
  afterAll(() => {
    library.close();
    thread.close();
    if (process.env.CDI_KEEP === undefined) rmSync(root, { recursive: true, force: true });
    else process.stderr.write(`kept: ${root} ${readdirSync(root).length}\n`);
  });

  it('lead to what it injects, file by file', async () => {
    const wrong: string[] = [];
    const counts = { specs: 0, others: 0, devices: 0, withNodes: 0, refused: 0 };
    for (let at = 0; at < FOLDERS; at += 1) {
      const { wrong: more, answer } = await differences(SEED + at);
      wrong.push(...more);
      const faults = Object.values(answer.files);
      counts.specs += faults.filter((fault) => fault === '').length;
      counts.others += faults.filter((fault) => fault !== '').length;
      counts.devices += Object.keys(answer.devices).length;
      counts.withNodes += Object.values(answer.devices).filter((nodes) => nodes.some((node) => addressOf(node) !== undefined)).length;
      counts.refused += Object.keys(answer.refused).length;
    }
    process.stderr.write(`${FOLDERS} folders: ${JSON.stringify(counts)}\n`);
    expect(wrong).toEqual([]);
    // A generator that makes nothing valid would agree, too.
    expect(counts.withNodes).toBeGreaterThan(FOLDERS / 4);
    expect(counts.others).toBeGreaterThan(FOLDERS / 4);
  });
});
