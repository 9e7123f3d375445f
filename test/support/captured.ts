import type * as CaptureSessions from '../../src/cli/capture/session.ts';
import type * as Replays from '../../src/cli/replay/replay.ts';
import { loadConfiguration } from '../../src/config/configuration.ts';
import { createRegistry } from '../../src/config/registry.ts';
import { loadFamilies, optionSections } from '../../src/config/sections.ts';
import { structuredParts } from '../../src/config/structured.ts';
import { createLogger } from '../../src/log/logger.ts';
import { familyLoaders } from '../../src/probes/families.ts';

/** The built modules: only they can start threads. */
const built = async <T>(path: string): Promise<T> => (await import(`${process.cwd()}/dist/cli/${path}`)) as T;
const { CaptureSession } = await built<typeof CaptureSessions>('capture/session.js');
export const { playCapture } = await built<typeof Replays>('replay/replay.js');

const families = await loadFamilies(familyLoaders);
const registry = createRegistry(optionSections(families), structuredParts);
const logger = createLogger({ level: 'error', format: 'text' });

/** What a replay needs of the command line. */
export const replayContext = { registry, families, logger, flags: new Map<string, string>() };

/** Opens a capture of the node with these flags. */
export async function openCapture(flags: readonly string[]): Promise<CaptureSessions.CaptureSession> {
  const given = new Map(flags.map((flag) => [flag.slice(2, flag.indexOf('=')), flag.slice(flag.indexOf('=') + 1)]));
  const { configuration } = await loadConfiguration(registry, {}, given);
  return await CaptureSession.open({ configuration, families, logger });
}
