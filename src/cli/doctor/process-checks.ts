import { accessSync, constants, readdirSync } from 'node:fs';
import { errnoName } from '../../host/fs/tree.ts';
import { pathOptions } from '../../host/options.ts';
import { podResourcesOptions } from '../../kubelet/options.ts';
import { readVersion } from '../version.ts';
import { type CheckContext, type CheckResult, finding, ok } from './check.ts';

/** No version of this program existed before this date, so an earlier clock is wrong. */
const EARLIEST = Date.UTC(2025, 0, 1);
const OLDEST_NODE = [20, 19] as const;

export function checkNode(version = process.versions.node): CheckResult[] {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const detail = `device-agent ${readVersion().version} on Node ${version}`;
  const isNew = major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1]);
  if (isNew) return [ok('node-version', detail)];
  return [finding('node-version', detail, `Node ${OLDEST_NODE.join('.')} or newer is needed.`, 'Run it with a newer Node.')];
}

/** Certificates, rates and the age of data depend on a correct clock. */
export function checkClock(nowMs = Date.now()): CheckResult[] {
  const detail = new Date(nowMs).toISOString();
  if (nowMs >= EARLIEST) return [ok('clock', detail)];
  return [finding('clock', detail, 'The clock is years behind.', 'Start time synchronisation on this node (chrony or systemd-timesyncd).')];
}

/** Root is not required. A finding is only a path that the user of this process may not access. */
export function checkUser({ configuration }: CheckContext): CheckResult[] {
  const uid = process.getuid?.();
  const detail = uid === undefined ? 'user not known' : `user id ${uid}`;
  const { socket } = configuration.section('podresources', podResourcesOptions);
  if (uid === 0 || !isForbidden(socket)) return [ok('user', detail)];
  return [
    finding(
      'user',
      `${detail} may not use ${socket}`,
      "The kubelet's directories belong to root, and other users have no access.",
      'Run as user id 0 (in a pod: runAsUser: 0); this needs no further privileges.',
    ),
  ];
}

function isForbidden(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return false;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'EACCES' || code === 'EPERM';
  }
}

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
