import { readdirSync } from 'node:fs';
import { errnoName } from '../../host/fs/tree.ts';
import { pathOptions } from '../../host/options.ts';
import { type CheckContext, type CheckResult, finding, ok } from './check.ts';

/** Entries that each root must contain to be valid. */
const ROOTS = [
  { name: 'sysfs', option: 'sysfs', entries: ['bus', 'class', 'devices'], loss: 'No device can be found without it.' },
  { name: 'procfs', option: 'procfs', entries: [], loss: 'Processes cannot be assigned to pods without it.' },
  { name: 'dev', option: 'dev', entries: [], loss: 'Device nodes cannot be seen without it.' },
] as const;

export function checkRoots({ configuration }: Pick<CheckContext, 'configuration'>): CheckResult[] {
  const paths = configuration.section('path', pathOptions);
  return ROOTS.map(({ name, option, entries, loss }) => checkRoot(name, paths[option], entries, loss));
}

function checkRoot(name: 'sysfs' | 'procfs' | 'dev', path: string, entries: readonly string[], loss: string): CheckResult {
  const remedy = `Mount the host's directory into the container, or set --path.${name} to it.`;
  let found: string[];
  try {
    found = readdirSync(path);
  } catch (error) {
    return finding(name, `${path} cannot be read (${errnoName(error)})`, loss, remedy);
  }
  if (found.length === 0) return finding(name, `${path} is empty`, loss, remedy);
  if (entries.length > 0 && !entries.some((entry) => found.includes(entry))) {
    return finding(name, `${path} is not a sysfs: none of ${entries.join(', ')} is in it`, loss, remedy);
  }
  return ok(name, path);
}
