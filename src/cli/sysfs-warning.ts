import type { CommandContext } from './context.ts';
import { checkRoots } from './doctor/path-checks.ts';

/** Where there is no sysfs all families see a machine without hardware, and find nothing wrong with that. */
export function warnOfSysfs({ configuration, logger }: Pick<CommandContext, 'configuration' | 'logger'>): void {
  const sysfs = checkRoots({ configuration }).find(({ name }) => name === 'sysfs');
  if (sysfs?.status === 'finding') logger.warn('no device can be found', { detail: sysfs.detail, remedy: sysfs.remedy });
}
