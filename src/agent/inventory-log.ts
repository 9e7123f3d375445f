import type { Logger } from '../log/logger.ts';
import type { Device } from '../model/device.ts';
import { firstOf } from '../model/first-of.ts';
import type { PluginStats } from '../model/plugin-stats.ts';
import type { Snapshot } from '../model/snapshot.ts';

/** Names in one line. */
const MOST_NAMES = 16;

/** Logs which devices each family has, once and after each change, and which resources the kubelet has, once for each. */
export class InventoryLog {
  readonly #logger: Logger;
  /** The logged names, keyed by family. */
  readonly #devices = new Map<string, string>();
  #resources: ReadonlySet<string> = new Set();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  update(snapshot: Snapshot, plugin: PluginStats | undefined): void {
    const read = snapshot.families.filter(({ succeeded }) => succeeded === true).map(({ family }) => family);
    const without = read.filter((family) => this.#family(family, snapshot));
    if (without.length > 0) this.#logger.info('no devices found', { families: without.join(', ') });
    const registered = plugin?.resources.filter((one) => one.registered || this.#resources.has(one.resource)) ?? [];
    for (const { resource, healthy, unhealthy } of registered) {
      if (!this.#resources.has(resource))
        this.#logger.info('the kubelet has a resource', { resource, devices: healthy + unhealthy, unhealthy });
    }
    this.#resources = new Set(registered.map(({ resource }) => resource));
  }

  /** Returns true for a family whose first read found no device. All such families share one line. */
  #family(family: string, { devices }: Snapshot): boolean {
    const present = devices.filter(({ device, missingSinceMs }) => device.family === family && missingSinceMs === undefined);
    const all = present.map(({ key }) => key).join('\u0000');
    const names = present.map(({ device }) => shortName(device));
    const before = this.#devices.get(family);
    if (before === all) return false;
    this.#devices.set(family, all);
    if (before === undefined && names.length === 0) return true;
    this.#logger.info('devices found', {
      family,
      count: names.length,
      ...(names.length === 0 ? {} : { devices: firstOf(names, MOST_NAMES) }),
    });
    return false;
  }
}

/** An id of a GPU is a UUID. Its index is shorter, and is the name that the vendor's tools print. */
const shortName = ({ id, kind, index }: Device): string => (index === undefined ? id : `${kind} ${index}`);
