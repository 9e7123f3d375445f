import type * as Captures from '../../src/cli/capture/capture.ts';
import type * as Replays from '../../src/cli/replay/replay.ts';
import { loadConfiguration } from '../../src/config/configuration.ts';
import { createRegistry } from '../../src/config/registry.ts';
import { loadFamilies, optionSections } from '../../src/config/sections.ts';
import { structuredParts } from '../../src/config/structured.ts';
import { createLogger } from '../../src/log/logger.ts';
import { familyLoaders } from '../../src/probes/families.ts';

/** The built modules: only they can start threads. */
const built = async <T>(path: string): Promise<T> => (await import(`${process.cwd()}/dist/cli/${path}`)) as T;
const { captureNode: capture } = await built<typeof Captures>('capture/capture.js');
const { playCapture } = await built<typeof Replays>('replay/replay.js');

export const families = await loadFamilies(familyLoaders);
const registry = createRegistry(optionSections(families), structuredParts);
const logger = createLogger({ level: 'error', format: 'text' });

/** Captures the node with these flags. `between` runs before the second read. */
export async function captureNode(flags: readonly string[], between: () => unknown): ReturnType<typeof Captures.captureNode> {
  const given = new Map(flags.map((flag) => [flag.slice(2, flag.indexOf('=')), flag.slice(flag.indexOf('=') + 1)]));
  const { configuration } = await loadConfiguration(registry, {}, new Map([...given, ['refresh.interval', '1s']]));
  return await capture({ configuration, families, logger }, between);
}

export const play = (of: Parameters<typeof playCapture>[1]): ReturnType<typeof playCapture> =>
  playCapture({ registry, families, logger, flags: new Map<string, string>() }, of);
