import type { Logger } from '../log/logger.ts';
import { type Configuration, describeOrigin } from './configuration.ts';
import type { Registry } from './registry.ts';

/** Warns of deprecated options that are set, and counts the loads of a configuration that sets them. */
export class DeprecatedOptions {
  readonly #logger: Logger;
  /** Keyed by option key: every deprecated option. */
  readonly #loads: Map<string, number>;
  /** Keys that the last load set. */
  #set: ReadonlySet<string> = new Set();

  constructor(registry: Registry, logger: Logger) {
    this.#logger = logger;
    this.#loads = new Map(registry.entries.flatMap(({ key, spec }) => (spec.deprecated === undefined ? [] : [[key, 0]])));
  }

  /** Loads since the start, of each deprecated option. */
  get loads(): ReadonlyMap<string, number> {
    return this.#loads;
  }

  /** Takes a configuration that came into use. An option that the one before did not set is logged. */
  loaded({ settings }: Configuration): void {
    const before = this.#set;
    const given = settings.filter(({ entry, origin }) => entry.spec.deprecated !== undefined && origin.from !== 'default');
    this.#set = new Set(given.map(({ entry }) => entry.key));
    for (const { entry, origin } of given) {
      this.#loads.set(entry.key, (this.#loads.get(entry.key) ?? 0) + 1);
      if (before.has(entry.key)) continue;
      this.#logger.warn('an option is deprecated', { option: entry.key, origin: describeOrigin(origin), ...entry.spec.deprecated });
    }
  }
}
