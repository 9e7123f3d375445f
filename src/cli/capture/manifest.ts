import type { Place } from '../../capture/capture-log.ts';
import { type Capture, DIRECTORY_OPTION, FORMAT, KERNEL_LOG, KERNEL_LOG_OPTION } from '../../capture/format.ts';
import type { Configuration } from '../../config/configuration.ts';
import type { OptionEntry } from '../../config/registry.ts';
import { toText } from '../../config/values.ts';
import { nodeName } from '../settings.ts';

/** Sections that decide what a probe reads and how it is joined, judged, counted and named. All others concern the machine of the agent. */
const SECTIONS = /^(?:probe\.[^.]+|device|labels|podresources|dra|cdi|usage|incidents)$/;
const isKept = ({ key, section }: OptionEntry): boolean => SECTIONS.test(section.path) || /^refresh\.(?!timeout$)/.test(key);

/** Options that a replay needs although they have their defaults: it has other programs and other directories. */
const NEEDED = /^cdi\.dirs$|^probe\..*-path$/;

/** What a capture says of the agent that made it. */
export function aboutCapture(configuration: Configuration, agentVersion: string): Omit<Capture, 'page' | 'reads'> {
  const options = configuration.settings
    .filter(({ entry, origin }) => isKept(entry) && (origin.from !== 'default' || NEEDED.test(entry.key)))
    .map(({ entry, value }) => [entry.key, toText(entry.spec, value)] as const);
  const parts = configuration.structured
    .filter(({ origin }) => origin.from !== 'default')
    .map(({ part, value }) => [part.path, part.path === 'plugin.resources' ? withoutAllocation(value) : value] as const);
  return {
    format: FORMAT,
    agentVersion,
    node: nodeName(),
    isRedacted: false,
    options: Object.fromEntries(options),
    parts: Object.fromEntries(parts),
  };
}

/** A capture leaves out what containers get: a replay does not need it, and its variables can hold passwords. */
const withoutAllocation = (resources: unknown): unknown =>
  (resources as readonly Readonly<Record<string, unknown>>[]).map(({ allocation: _, ...resource }) => resource);

/** Directories and files of which a capture keeps what is read. */
export function placesOf(configuration: Configuration): readonly Place[] {
  const text = (key: string): string => String(configuration.setting(key).value).replace(/\/+$/, '');
  const log = text(KERNEL_LOG_OPTION);
  const directories = configuration.settings.filter(({ entry }) => DIRECTORY_OPTION.test(entry.key));
  const cdi = configuration.setting('cdi.dirs').value as readonly string[];
  return [
    { name: 'sys', path: text('path.sysfs') },
    { name: 'proc', path: text('path.procfs') },
    { name: 'dev', path: text('path.dev') },
    { name: 'share', path: text('path.share') },
    { name: 'kubelet/checkpoint', path: text('podresources.checkpoint') },
    { name: 'claims', path: text('dra.metadata-dir') },
    { name: KERNEL_LOG, path: log.startsWith('/') ? log : '' },
    ...directories.map(({ entry }): Place => ({ name: `directory/${entry.key}`, path: text(entry.key) })),
    ...cdi.map((path, index): Place => ({ name: `cdi${index}`, path })),
  ];
}
