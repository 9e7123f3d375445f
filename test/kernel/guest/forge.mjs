// Runs in the guest: makes the kernel write records about processes, a module and programs that have the names given as JSON, in base64.
// Each process is of a user without rights, and has the name of its program's file, or one that it gave itself.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [, , encoded, modules] = process.argv;
const names = JSON.parse(Buffer.from(encoded, 'base64').toString());
const FOLDER = '/tmp/forge';
const NOBODY = 65_534;

// x86-64: xor eax,eax; mov [rax],eax. ud2. mmap of 1 GiB, and a write to each of its pages.
const CRASH = [0x31, 0xc0, 0x89, 0x00];
const TRAP = [0x0f, 0x0b];
const EAT = [
  ...[0xb8, 9, 0, 0, 0, 0x31, 0xff, 0xbe, 0, 0, 0, 0x40, 0xba, 3, 0, 0, 0, 0x41, 0xba, 0x22, 0, 0, 0, 0x49, 0x83, 0xc8, 0xff],
  ...[0x45, 0x31, 0xc9, 0x0f, 0x05, 0xc6, 0x00, 0x01, 0x48, 0x05, 0, 0x10, 0, 0, 0xeb, 0xf5],
];
// prctl(PR_SET_NAME, what lies 14 bytes after the lea), then the rest of the code, which must be CRASH.
const RENAME = [0xbf, 15, 0, 0, 0, 0x48, 0x8d, 0x35, 11, 0, 0, 0, 0xb8, 157, 0, 0, 0, 0x0f, 0x05];

/** A program of one segment, which has header, code and data. */
function program(code, data = Buffer.alloc(0)) {
  const header = Buffer.alloc(120);
  header.write('7f454c46020101', 'hex');
  for (const [at, value] of [
    [16, 2],
    [18, 62],
    [20, 1],
    [52, 64],
    [54, 56],
    [56, 1],
  ])
    header.writeUInt16LE(value, at);
  header.writeBigUInt64LE(0x400078n, 24);
  header.writeBigUInt64LE(64n, 32);
  header.writeUInt32LE(1, 64);
  header.writeUInt32LE(5, 68);
  for (const at of [80, 88]) header.writeBigUInt64LE(0x400000n, at);
  const bytes = Buffer.concat([header, Buffer.from(code), data, Buffer.alloc(16)]);
  for (const at of [96, 104]) bytes.writeBigUInt64LE(BigInt(bytes.length), at);
  bytes.writeBigUInt64LE(0x1000n, 112);
  return bytes;
}

function run(name, bytes, before = '') {
  const file = join(FOLDER, Buffer.from(name).subarray(0, 255).toString());
  writeFileSync(file, bytes);
  chmodSync(file, 0o755);
  const started =
    before === '' ? spawnSync(file, { uid: NOBODY, gid: NOBODY }) : spawnSync('/bin/bash', ['-c', `${before}; exec "$0"`, file]);
  if (started.signal === null) throw new Error(`${JSON.stringify(name)} did not crash: ${started.error ?? started.status}`);
}

/** Loads the module `dummy` under a name of its own, which the kernel does not trust. */
function load(name) {
  const path = readdirSync(modules, { recursive: true }).find((file) => file.endsWith('/dummy.ko'));
  if (path === undefined) throw new Error(`there is no dummy.ko below ${modules}`);
  const bytes = readFileSync(join(modules, path));
  const at = bytes.indexOf(Buffer.concat([Buffer.from('dummy'), Buffer.alloc(51)]));
  bytes.fill(0, at, at + 56);
  bytes.write(name.slice(0, 55), at);
  bytes.write('x', bytes.indexOf('intree=Y'));
  // A module with a wrong signature is refused. One without is loaded, and the kernel says so.
  const end = bytes.indexOf('~Module signature appended~');
  writeFileSync(join(FOLDER, 'module.ko'), bytes.subarray(0, end < 0 ? bytes.length : end));
  const { status, stderr, error } = spawnSync('insmod', [join(FOLDER, 'module.ko')], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`the module was not loaded: ${error ?? stderr}`);
}

mkdirSync(FOLDER, { recursive: true });
chmodSync(FOLDER, 0o755);
// Each crash is to be logged.
writeFileSync('/proc/sys/kernel/printk_ratelimit', '0');
const group = '/run/cgroup/eaters';
spawnSync('/bin/bash', [
  '-c',
  `mkdir -p /run/cgroup && mount -t cgroup2 none /run/cgroup && echo +memory > /run/cgroup/cgroup.subtree_control; mkdir ${group}; echo 4M > ${group}/memory.max`,
]);
for (const [index, name] of names.entries()) {
  run(name, program(CRASH));
  run(name, program(TRAP));
  run('plain', program([...RENAME, ...CRASH], Buffer.alloc(16, Buffer.from(name).subarray(0, 15))));
  // Slow in emulation.
  if (index < 3) run(name, program(EAT), `echo $$ > ${group}/cgroup.procs`);
  for (const prefix of ['', '<3>', '<0>', '<11>'])
    writeFileSync('/dev/kmsg', `${prefix}${name}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:03:00.0\n`);
}
load(names.find((name) => name.startsWith('NVRM: Xid')));
