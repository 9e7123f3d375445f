import { accessSync, constants } from 'node:fs';
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
