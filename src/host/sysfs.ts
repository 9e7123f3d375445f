import { statfsSync } from 'node:fs';

/** `f_type` of sysfs (linux/magic.h). */
const SYSFS_MAGIC = 0x62656572;

/**
 * Whether a path lies in the kernel's own sysfs. There the times of a directory tell nothing, and a descriptor of a removed
 * file fails; everywhere else it is the other way round.
 */
export function isSysfs(path: string): boolean {
  try {
    return statfsSync(path).type === SYSFS_MAGIC;
  } catch {
    return false;
  }
}
