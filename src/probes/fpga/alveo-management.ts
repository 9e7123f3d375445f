import type { DeviceFiles } from '../kit/device-files.ts';
import { parseInteger } from '../kit/hwmon.ts';
import { addMemoryBanks } from './alveo-memory.ts';
import { metrics } from './metrics.ts';
import { numbered } from './name-order.ts';
import type { ReportBuilder } from './report-builder.ts';
import { parseCount, parseFlag } from './values.ts';

/** `level` of a firewall that has not tripped: -1, printed as unsigned. */
const NO_LEVEL = 18_446_744_073_709_551_615n;

/**
 * Reads the files of the management function. Returns the number of its device node. It never opens `error`, because a read clears
 * it, nor files whose read sends a command to the controller.
 */
export function addManagement(builder: ReportBuilder, id: string, files: DeviceFiles): number | undefined {
  addFirewall(builder, files);
  const isRecovery = files.value('recovery', parseFlag);
  if (isRecovery !== undefined) {
    const message = isRecovery ? 'the board booted its recovery image' : 'the board booted its own image';
    builder.find('RecoveryImage', isRecovery, isRecovery ? 'RecoveryBooted' : 'DefaultBooted', message, { instance: 'management' });
  }
  const offline = files.value('dev_offline', (text) => parseInteger(text));
  if (offline !== undefined) {
    const [isOffline, state] = offline === 1 ? [true, 'offline'] : [false, 'online'];
    const message = `the management function is ${state}`;
    builder.find('Reconfiguring', isOffline, isOffline ? 'Offline' : 'Idle', message, { instance: 'management' });
  }
  // If the board has a user function, that function reports the same counters.
  if (id === files.directory.split('/').at(-1)) addMemoryBanks(builder, files, 'm');
  return files.value('instance', parseInteger);
}

function addFirewall(builder: ReportBuilder, files: DeviceFiles): void {
  for (const name of numbered(files, /^firewall\.m\.\d+$/).slice(0, 1)) {
    const status = files.once(`${name}/status`, parseCount);
    if (status.isUnknown) builder.find('FirewallTripped', 'unknown', 'StatusSet', 'the status of the firewall cannot be read');
    if (status.value === undefined) continue;
    const isTripped = Number(status.value) !== 0;
    builder.add(metrics.firewallTripped, isTripped);
    const message = isTripped ? `firewall status ${status.value}${levelText(files, name)}` : 'firewall status 0';
    builder.find('FirewallTripped', isTripped, isTripped ? 'StatusSet' : 'Closed', message);
  }
}

function levelText(files: DeviceFiles, name: string): string {
  const level = files.value(`${name}/level`, parseCount);
  return level === undefined || BigInt(level) === NO_LEVEL ? '' : ` at level ${level}`;
}
