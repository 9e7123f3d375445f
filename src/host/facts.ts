import { existsSync } from 'node:fs';
import { release } from 'node:os';
import type { HostFacts } from '../model/agent-stats.ts';
import { defined } from '../model/defined.ts';
import type { VirtualMachine } from '../model/device.ts';
import type { Clock } from './clock.ts';
import type { AskedFacts } from './facts-worker.ts';
import { Tree } from './fs/tree.ts';
import { JobThread, moduleBeside } from './job-thread.ts';

const DEADLINE_MS = 10_000;

/**
 * Reads the facts of the machine. `systeminformation` gives CPU and memory, in a thread that ends: its code takes several MiB. After a
 * deadline these facts are left out. Its `system` and `osInfo` run shells synchronously, one of which queries the name service. Their facts are
 * therefore read here, from the same files.
 */
export async function readHostFacts(sys: Tree, clock: Clock): Promise<HostFacts> {
  const entry = moduleBeside(import.meta.url, 'facts-worker');
  const thread = new JobThread<null, AskedFacts>({ name: 'facts', entry, clock, memoryMib: 64, deadlineMs: DEADLINE_MS, idleMs: 0 });
  const made = await thread.ask(null);
  thread.close();
  const nodes = sys.list('devices/system/node').filter((name) => /^node\d+$/.test(name)).length;
  return {
    ...present({
      manufacturer: usable(sys.text('class/dmi/id/sys_vendor')),
      model: usable(sys.text('class/dmi/id/product_name')),
      operatingSystem: isOnImage(sys) ? undefined : operatingSystem(),
      kernel: release(),
      numaNodes: nodes || undefined,
    }),
    ...('answer' in made ? askedFacts(made.answer) : {}),
  };
}

const askedFacts = ({ cpu, memory }: AskedFacts): HostFacts =>
  present({
    cpuModel: usable([cpu.manufacturer, cpu.brand].filter(Boolean).join(' ')),
    cpus: cpu.cores || undefined,
    memoryBytes: memory.total || undefined,
  });

/** Whether the root file system belongs to a container image. Its operating system is then not that of the machine. */
function isOnImage(sys: Tree): boolean {
  return sys.root !== '/sys' || process.env.KUBERNETES_SERVICE_HOST !== undefined || ['/.dockerenv', '/run/.containerenv'].some(existsSync);
}

function operatingSystem(): string | undefined {
  const text = new Tree('/etc').text('os-release') ?? '';
  return usable(/^PRETTY_NAME="?([^"\n]*)"?$/m.exec(text)?.[1]);
}

/** Trimmed text; undefined for the filler text that platforms put into unknown fields. */
function usable(text = ''): string | undefined {
  const trimmed = text.trim();
  return trimmed === '' || /^(?:unknown|none|default string|to be filled by o\.e\.m\.|not specified|-)$/i.test(trimmed)
    ? undefined
    : trimmed;
}

function present(facts: { readonly [Name in keyof HostFacts]: HostFacts[Name] | undefined }): HostFacts {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}

/** Names that hypervisors give to their machines. Firmware of real machines has none of them. */
const GUESTS = /\bKVM\b|QEMU|VMware|Virtual Machine|VirtualBox|HVM domU|Google Compute Engine|OpenStack|Bochs/i;

/** Finds out whether this is a virtual machine; undefined when no file shows it. */
export function readVirtualMachine(sys: Tree, proc: Tree): VirtualMachine | undefined {
  const firmware = ['sys_vendor', 'product_name']
    .map((file) => sys.text(`class/dmi/id/${file}`) ?? '')
    .join(' ')
    .trim();
  const name = firmware === '' ? undefined : firmware;
  const found = (is: boolean, from: string): VirtualMachine => ({ is, from, ...defined({ name }) });
  const type = sys.text('hypervisor/type');
  if (type !== undefined && type !== '') return { is: true, name: type, from: '/sys/hypervisor/type' };
  if (GUESTS.test(firmware)) return found(true, '/sys/class/dmi/id');
  // The flags of the first CPU are enough, and the file is long. A processor of another architecture has no such line.
  const flags = /^flags\s*:(.*)$/m.exec(proc.bytes('cpuinfo', 8_192)?.toString('latin1') ?? '')?.[1];
  if (flags === undefined) return undefined;
  return found(/\bhypervisor\b/.test(flags), '/proc/cpuinfo');
}

/** More than any kernel is built for. */
const MOST_CPUS = 8_192;
const MOST_NODES = 1_024;

/**
 * The NUMA node of each CPU, by the number of the CPU; empty when the kernel has no NUMA nodes. Source: /sys/devices/system/node. A list of
 * ranges that are not in order is none of the kernel's, and gives no CPU.
 */
export function readCpuNodes(sys: Tree): ReadonlyMap<number, number> {
  const nodes = new Map<number, number>();
  for (const name of sys
    .list('devices/system/node')
    .filter((one) => /^node\d{1,4}$/.test(one))
    .slice(0, MOST_NODES)) {
    const ranges = rangesOf(sys.text(`devices/system/node/${name}/cpulist`) ?? '') ?? [];
    for (const [first, last] of ranges) for (let cpu = first; cpu <= last; cpu += 1) nodes.set(cpu, Number(name.slice('node'.length)));
  }
  return nodes;
}

/** Parses `0-19,40-59`. Ranges that follow each other have no more CPUs together than the kernel can have, however long the text is. */
function rangesOf(list: string): readonly (readonly [number, number])[] | undefined {
  const ranges: (readonly [number, number])[] = [];
  for (const part of list === '' ? [] : list.split(',')) {
    const [, first = '', last = first] = /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(part) ?? [];
    const [from, to] = [Number(first), Number(last)];
    if (first === '' || to < from || to >= MOST_CPUS || from <= (ranges.at(-1)?.[1] ?? -1)) return undefined;
    ranges.push([from, to]);
  }
  return ranges;
}
