import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { release } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { HostFacts } from '../model/host-facts.ts';
import type { Clock } from './clock.ts';
import { endsWithin } from './ends-within.ts';
import type { AskedFacts } from './facts-worker.ts';
import { Tree } from './fs/tree.ts';

const DEADLINE_MS = 10_000;

/**
 * Reads the facts of the machine. `systeminformation` gives CPU and memory, in a thread that ends: its code takes several MiB. After a
 * deadline these facts are left out. Its `system` and `osInfo` run shells synchronously, one of which queries the name service. Their facts are
 * therefore read here, from the same files.
 */
export async function readHostFacts(sys: Tree, clock: Clock): Promise<HostFacts> {
  let asked: HostFacts = {};
  // Compiled and bundled builds have .js files. A runtime that strips types runs the .ts sources.
  const entry = import.meta.url.endsWith('.ts') ? './facts-worker.ts' : './facts-worker.js';
  const thread = new Worker(new URL(entry, import.meta.url), { name: 'facts' });
  thread.unref();
  const asking = once(thread, 'message').then(([message]) => {
    const { cpu, memory } = message as AskedFacts;
    asked = present({
      cpuModel: usable([cpu.manufacturer, cpu.brand].filter(Boolean).join(' ')),
      cpus: cpu.cores || undefined,
      memoryBytes: memory.total || undefined,
    });
  });
  await endsWithin(asking, DEADLINE_MS, clock);
  void thread.terminate();
  const nodes = sys.list('devices/system/node').filter((name) => /^node\d+$/.test(name)).length;
  return {
    ...present({
      manufacturer: usable(sys.text('class/dmi/id/sys_vendor')),
      model: usable(sys.text('class/dmi/id/product_name')),
      operatingSystem: isOnImage(sys) ? undefined : operatingSystem(),
      kernel: release(),
      numaNodes: nodes || undefined,
    }),
    ...asked,
  };
}

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
