import type { CommandContext } from './context.ts';
import { checkRoots } from './doctor/process-checks.ts';

/** Without sysfs all families see a machine without hardware and report no problem, so this warns. */
export function warnOfSysfs({ configuration, logger }: Pick<CommandContext, 'configuration' | 'logger'>): void {
  const sysfs = checkRoots({ configuration }).find(({ name }) => name === 'sysfs');
  if (sysfs?.status === 'finding') logger.warn('no device can be found', { detail: sysfs.detail, remedy: sysfs.remedy });
}
