import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, relative } from 'node:path';

/** Debian's kernel for all machines; the one for clouds lacks soft RoCE. */
const META_PACKAGE = 'linux-image-amd64';
/** What the guest starts with. */
export const EARLY_MODULES: readonly string[] = ['virtio_pci', '9pnet_virtio', '9p', 'overlay', 'virtio_console'];
/** What the tests load in it. Soft RoCE asks for its checksum by another name than that of the module. */
const TESTED_MODULES: readonly string[] = [
  ...['rdma_rxe', 'crc32_generic', 'ib_umad', 'ib_uverbs', 'rdma_ucm', 'ib_ipoib', 'veth', 'dummy'],
  ...['nvme', 'e1000e', 'igb', 'igbvf', 'vfio-pci', 'aer_inject'],
];
const PROGRAMS: readonly string[] = ['qemu-system-x86_64', 'busybox', 'depmod', 'modprobe', 'apt-cache', 'apt-get', 'dpkg-deb'];

/** A kernel to boot, and the modules that belong to it. */
export interface Kernel {
  readonly release: string;
  readonly image: string;
  /** Directory of its modules. */
  readonly modules: string;
}

export type Found = { readonly kernel: Kernel } | { readonly missing: string };

/**
 * The kernel, from the cache or this machine's package archive. `missing` says why there is none, or why it cannot be booted here, or
 * which of the programs or emulated devices that are wanted besides is absent.
 */
export function findKernel(programs: readonly string[] = [], devices: readonly string[] = []): Found {
  if (process.arch !== 'x64') return { missing: `the kernel is one for x64, and this machine is ${process.arch}` };
  const absent = [...PROGRAMS, ...programs].find((program) => spawnSync(program, ['--version']).error !== undefined);
  if (absent !== undefined) return { missing: `there is no ${absent}` };
  // The guest's first program runs where there is no library yet.
  const busybox = readFileSync(execFileSync('which', ['busybox'], { encoding: 'utf8' }).trim());
  if (hasInterpreter(busybox)) return { missing: 'busybox needs libraries here: the package busybox-static has one that does not' };
  const known = spawnSync('qemu-system-x86_64', ['-device', 'help'], { encoding: 'utf8' }).stdout;
  const unknown = devices.find((device) => !known.includes(`name "${device}"`));
  if (unknown !== undefined) return { missing: `this QEMU does not emulate ${unknown}` };
  const dependencies = spawnSync('apt-cache', ['depends', META_PACKAGE], { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } }).stdout;
  const name = /^\s*Depends: (linux-image-\S+)$/m.exec(dependencies)?.[1];
  if (name === undefined) return { missing: `the package archive has no ${META_PACKAGE}` };
  const release = name.slice('linux-image-'.length);
  // A cache with other modules is another cache.
  const modules = createHash('sha256')
    .update([...EARLY_MODULES, ...TESTED_MODULES].join(' '))
    .digest('hex')
    .slice(0, 8);
  const folder = join(process.env.TEST_CACHE ?? join(homedir(), '.cache/device-agent'), `${name}-${modules}`);
  const failure = existsSync(folder) ? undefined : fetchKernel(name, release, folder);
  if (failure !== undefined) return { missing: failure };
  return { kernel: { release, image: join(folder, 'vmlinuz'), modules: join(folder, 'lib/modules', release) } };
}

/** Whether a program of ELF (64 bits) names a loader of libraries, in a header of type PT_INTERP. A static one can have the name of it in its texts. */
function hasInterpreter(program: Buffer): boolean {
  const [start, size, count] = [Number(program.readBigUInt64LE(32)), program.readUInt16LE(54), program.readUInt16LE(56)];
  return Array.from({ length: count }, (_, at) => program.readUInt32LE(start + at * size)).includes(3);
}

/** Why the package could not be had; undefined when what is needed of it now lies in `folder`. */
function fetchKernel(name: string, release: string, folder: string): string | undefined {
  mkdirSync(dirname(folder), { recursive: true });
  const beside = mkdtempSync(`${folder}.`);
  try {
    process.stderr.write(`fetching and unpacking ${name}: half a minute the first time\n`);
    const { status, stderr } = spawnSync('apt-get', ['download', '-qq', name], { cwd: beside, encoding: 'utf8' });
    const file = readdirSync(beside).find((entry) => entry.endsWith('.deb'));
    if (status !== 0 || file === undefined) return `${name} cannot be downloaded: ${stderr.trim().split('\n').at(-1)}`;
    const whole = join(beside, 'whole');
    execFileSync('dpkg-deb', ['-x', join(beside, file), whole]);
    const made = join(beside, 'made');
    mkdirSync(made);
    renameSync(join(whole, `boot/vmlinuz-${release}`), join(made, 'vmlinuz'));
    takeModules(whole, made, release, [...EARLY_MODULES, ...TESTED_MODULES]);
    renameSync(made, folder);
    return undefined;
  } finally {
    rmSync(beside, { recursive: true, force: true });
  }
}

/** Copies modules and what they need from one tree of files to another. Names that belong to no module are built into the kernel. */
export function takeModules(from: string, to: string, release: string, names: readonly string[]): void {
  const [source, target] = [join(from, 'lib/modules', release), join(to, 'lib/modules', release)];
  for (const file of readdirSync(source)) {
    if (/^modules\.(order|builtin.*)$/.test(file)) cpSync(join(source, file), join(target, file), { recursive: true });
  }
  if (!existsSync(join(source, 'modules.dep'))) execFileSync('depmod', ['-b', from, release]);
  const wanted = spawnSync('modprobe', ['-d', from, '-S', release, '-a', '--show-depends', ...names], { encoding: 'utf8' }).stdout;
  for (const [, path] of wanted.matchAll(/^insmod (\S+)/gm)) {
    const file = join(source, relative(source, path as string));
    cpSync(file, join(target, relative(source, file)));
  }
  execFileSync('depmod', ['-b', to, release]);
}
