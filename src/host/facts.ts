import { existsSync } from 'node:fs';
import { release } from 'node:os';
import type { HostFacts } from '../model/host-facts.ts';
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
