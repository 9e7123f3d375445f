import { existsSync } from 'node:fs';
import type { HostFacts } from '../model/host-facts.ts';
import type { Tree } from './fs/tree.ts';

/**
 * Asks `systeminformation`, whose calls start shells and block for up to a second: so only in a thread of its own, at start
 * and on a slow schedule. NUMA nodes are counted in `/sys/devices/system/node`.
 */
export async function readHostFacts(sys: Tree): Promise<HostFacts> {
  const { default: si } = await import('systeminformation');
  const [system, cpu, memory, os] = await Promise.all([si.system(), si.cpu(), si.mem(), si.osInfo()]);
  const nodes = sys.list('devices/system/node').filter((name) => /^node\d+$/.test(name)).length;
  return Object.fromEntries(
    Object.entries({
      manufacturer: told(system.manufacturer),
      model: told(system.model),
      cpuModel: told([cpu.manufacturer, cpu.brand].filter(Boolean).join(' ')),
      cpus: cpu.cores || undefined,
      memoryBytes: memory.total || undefined,
      operatingSystem: isOnImage(sys) ? undefined : told([os.distro, os.release].flatMap((text) => told(text) ?? []).join(' ')),
      kernel: told(os.kernel),
      numaNodes: nodes || undefined,
    }).filter(([, value]) => value !== undefined),
  ) as HostFacts;
}

/** Whether the root file system is that of a container's image, whose name and version are not the machine's. */
function isOnImage(sys: Tree): boolean {
  return sys.root !== '/sys' || process.env.KUBERNETES_SERVICE_HOST !== undefined || ['/.dockerenv', '/run/.containerenv'].some(existsSync);
}

/** Platforms fill unknown fields with filler text, and the library puts its own in a container. */
function told(text: string): string | undefined {
  const trimmed = text.trim();
  return trimmed === '' || /^(?:unknown|none|default string|to be filled by o\.e\.m\.|not specified|docker container|-)$/i.test(trimmed)
    ? undefined
    : trimmed;
}
