import { existsSync } from 'node:fs';
import { release } from 'node:os';
import type { HostFacts } from '../model/host-facts.ts';
import type { Clock } from './clock.ts';
import { endsWithin } from './ends-within.ts';
import { Tree } from './fs/tree.ts';

const DEADLINE_MS = 10_000;

/**
 * What the machine is. CPU and memory are told by `systeminformation`, whose `cpu` starts commands and waits for them without blocking;
 * after a deadline their facts are left out. Its `system` and `osInfo` run shells synchronously, one of which asks the name
 * service, so what they would tell is read from the files that they read.
 */
export async function readHostFacts(sys: Tree, clock: Clock): Promise<HostFacts> {
  const { default: si } = await import('systeminformation');
  let asked: HostFacts = {};
  const asking = Promise.all([si.cpu(), si.mem()]).then(([cpu, memory]) => {
    asked = present({
      cpuModel: told([cpu.manufacturer, cpu.brand].filter(Boolean).join(' ')),
      cpus: cpu.cores || undefined,
      memoryBytes: memory.total || undefined,
    });
  });
  await endsWithin(asking, DEADLINE_MS, clock);
  const nodes = sys.list('devices/system/node').filter((name) => /^node\d+$/.test(name)).length;
  return {
    ...present({
      manufacturer: told(sys.text('class/dmi/id/sys_vendor')),
      model: told(sys.text('class/dmi/id/product_name')),
      operatingSystem: isOnImage(sys) ? undefined : operatingSystem(),
      kernel: release(),
      numaNodes: nodes || undefined,
    }),
    ...asked,
  };
}

/** Whether the root file system is that of a container's image, whose name and version are not the machine's. */
function isOnImage(sys: Tree): boolean {
  return sys.root !== '/sys' || process.env.KUBERNETES_SERVICE_HOST !== undefined || ['/.dockerenv', '/run/.containerenv'].some(existsSync);
}

function operatingSystem(): string | undefined {
  const text = new Tree('/etc').text('os-release') ?? '';
  return told(/^PRETTY_NAME="?([^"\n]*)"?$/m.exec(text)?.[1]);
}

/** Platforms fill unknown fields with filler text. */
function told(text = ''): string | undefined {
  const trimmed = text.trim();
  return trimmed === '' || /^(?:unknown|none|default string|to be filled by o\.e\.m\.|not specified|-)$/i.test(trimmed)
    ? undefined
    : trimmed;
}

function present(facts: { readonly [Name in keyof HostFacts]: HostFacts[Name] | undefined }): HostFacts {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}
