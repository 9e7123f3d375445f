/** Text as the kernel puts it into a record of `/dev/kmsg`: each byte outside printable ASCII, and the backslash, as `\xHH`. */
export const escaped = (text: string | Buffer): string =>
  [...Buffer.from(text)]
    .map((byte) => (byte < 0x20 || byte >= 0x7f || byte === 0x5c ? `\\x${byte.toString(16).padStart(2, '0')}` : String.fromCharCode(byte)))
    .join('');

/**
 * What a process that imitates drivers may be called: its program's file has the whole name, and the process the first 15 bytes
 * (TASK_COMM_LEN of the kernel). `at` is the PCI address of the device: `0000:03:00.0`. */
export function forgedNames(at: string): Readonly<Record<string, string>> {
  const slot = at.slice(0, -2);
  const lost = `NVRM: Xid (PCI:${slot}): 79, GPU has fallen off the bus.`;
  const wedged = `xe ${at}: [drm] *ERROR* CRITICAL: Xe has declared device ${at} as wedged.`;
  return {
    'line break': `NVRM:\n${lost}`,
    'line breaks on both sides': `\n\n${lost}\nNVRM: \n`,
    'carriage return': `NVRM:\r${lost}\r`,
    'line break and continuation': `NVRM:\n SUBSYSTEM=pci\n DEVICE=+pci:${at}\n${lost}`,
    brackets: `NVRM: [7]: ${lost}`,
    '15 characters': `NVRM: Xid (PCI:${slot}): 79, GPU has fallen off the bus.`,
    '15 characters of a switch': `nvidia-nvswitch0: SXid (PCI:${at}): 20001, Fatal, Link 4 LTSSM fault`,
    'a switch after a line break': `nvidia-nvswitch\nnvidia-nvswitch0: SXid (PCI:${at}): 20001, Fatal, Link 4 LTSSM fault`,
    'letters of several bytes': `NVRM: é€😀${lost}`,
    'escape sequence': `\u001b[2KNVRM:\u000b${lost}`,
    'the rest of a message': `NVRM: fallen off the bus and is not responding to commands.`,
    'driver and device': wedged,
    'driver and device, line break': `xe:\n${wedged}\ni915 ${at}: [drm] device wedged, needs recovery`,
    'start of a driver': `[drm] Initialized xe 1.1.0 for ${at} on minor 0`,
    'port of the device': `pcieport ${at}: AER: Uncorrectable (Fatal) error message received from ${at}`,
    'severity of a report of the firmware': '{1}[Hardware Error]:  Error 0, type: fatal',
    'function of a report of the firmware': `{1}[Hardware Error]:   device_id: ${at}`,
    drive: `nvme nvme0: controller is down; will reset: CSTS=0xffffffff`,
    'address of the device': at,
  };
}

/** Records of the kernel about a process, a module or a packet. `name` has 15 bytes at most, `file` 255. */
const TEMPLATES: Readonly<Record<string, (name: string, file: string) => string>> = {
  'crash on x86': (name, file) =>
    `${name}[4711]: segfault at 0 ip 000055d0c1a01129 sp 00007ffc12345678 error 6 in ${file}[55d0c1a01000+1000] likely on CPU 1 (core 1, socket 0)`,
  'crash on ARM': (name, file) =>
    `${name}[4711]: unhandled exception: DABT (lower EL), ESR 0x0000000092000046, level 2 translation fault in ${file}[aaaab3c10000+1000]`,
  'bad frame': (name, file) =>
    `${name}[4711] bad frame in rt_sigreturn frame:00007ffc12345678 ip:55d0c1a01129 sp:7ffc12345678 orax:0 in ${file}[55d0c1a01000+1000]`,
  trap: (name, file) => `traps: ${name}[4711] trap invalid opcode ip:55d0c1a01129 sp:7ffc12345678 error:0 in ${file}[55d0c1a01000+1000]`,
  memfd: (name) => `${name}[4711]: memfd_create() called without MFD_EXEC or MFD_NOEXEC_SEAL set`,
  'OOM killer': (name) => `${name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=1000`,
  'out of memory': (name) => `Memory cgroup out of memory: Killed process 4711 (${name}) total-vm:9kB, anon-rss:1kB, file-rss:0kB`,
  'out of pages': (name, file) =>
    `${name}: page allocation failure: order:4, mode:0x40cc0(GFP_KERNEL|__GFP_COMP), nodemask=(null),cpuset=${file.replaceAll(/[/\n]/g, ' ')},mems_allowed=0`,
  'out of pages, the second piece': (_, file) => `${file.replaceAll(/[/\n]/g, ' ')},mems_allowed=0`,
  'dropped caches': (name) => `${name} (4711): drop_caches: 3`,
  'hung task': (name) => `INFO: task ${name}:4711 blocked for more than 120 seconds.`,
  'state of a CPU': (name) => `CPU: 1 PID: 4711 Comm: ${name} Not tainted 6.1.0-30-amd64 #1  Debian 6.1.124-1`,
  audit: (name, file) =>
    `audit: type=1701 audit(1700000000.100:5): auid=1000 uid=1000 pid=4711 comm="${name}" exe="/tmp/${file}" sig=11 res=1`,
  module: (_, file) => `${file}: loading out-of-tree module taints kernel.`,
  packet: (_, file) =>
    `${file.slice(0, 127)}IN=eth0 OUT= MAC= SRC=10.0.0.1 DST=10.0.0.2 LEN=60 TOS=0x00 PREC=0x00 TTL=64 ID=1 DF PROTO=TCP`,
};

export interface ForgedRecord {
  readonly title: string;
  readonly priority: number;
  /** `c` or `+`: a piece of a message. Default: a whole message. */
  readonly flag?: string;
  /** Escaped as in `/dev/kmsg`. */
  readonly text: string;
}

/** Every name in every record that the kernel writes about a process, and written to `/dev/kmsg` by a program. `lines`: further names. */
export function forgedRecords(at: string, lines: readonly string[] = []): readonly ForgedRecord[] {
  return Object.entries({ ...forgedNames(at), ...Object.fromEntries(lines.map((line) => [line, line])) }).flatMap(([variant, text]) => [
    ...Object.entries(TEMPLATES).map(([template, write]) => ({
      title: `${template}, ${variant}`,
      priority: 6,
      text: escaped(written(write, text)),
    })),
    ...['c', '+'].flatMap((flag) => pieces(flag, variant, text)),
    // The kernel gives a program's record the facility 1 where the program names the kernel's own, 0.
    { title: `write to /dev/kmsg, ${variant}`, priority: 8 + 3, text: escaped(text) },
    { title: `write to /dev/kmsg as a daemon, ${variant}`, priority: 24 + 2, text: escaped(text) },
  ]);
}

/** `…,cpuset=` `<name of a cgroup>` `,mems_allowed=0` while other processors print between all three. */
function pieces(flag: string, variant: string, text: string): readonly ForgedRecord[] {
  const name = written((_, file) => file.replaceAll(/[/\n]/g, ' '), text);
  return [
    {
      title: `the kernel before a name, ${variant}, ${flag}`,
      priority: 6,
      text: 'oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=',
    },
    { title: `a name alone, ${variant}, ${flag}`, priority: 4, flag, text: escaped(name) },
    { title: `the kernel after a name, ${variant}, ${flag}`, priority: 4, flag, text: ',mems_allowed=0' },
  ];
}

/** Puts the record together as bytes, because a name may end within a character. */
function written(write: (name: string, file: string) => string, text: string): Buffer {
  const [name, file] = [15, 255].map((bytes) => Buffer.from(text).subarray(0, bytes).toString('latin1'));
  return Buffer.from(write(name as string, file as string), 'latin1');
}

/** The records one after the other, numbered from `first` on. */
export const logOf = (records: readonly ForgedRecord[], first = 2): string =>
  records.map(({ priority, flag = '-', text }, index) => `${priority},${first + index},${1_000_000 + index},${flag};${text}\n`).join('');
