import { readFileSync } from 'node:fs';
import type { Host } from '../../src/host/host.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import type { Probe } from '../../src/probes/family.ts';

/** Directory below the root of `/sys`. Each directory in it is a device. */
export const TOYS = 'class/toy';

/**
 * Each device has a file `state` and may have a file `call`. Reading `call` simulates a call of a vendor library and enters the guard.
 * Reading a file `unseen` does not enter the guard.
 */
function createProbe({ sys }: Host): Probe {
  const look = (id: string): DeviceReport => {
    const device = { family: 'fpga', id, kind: 'toy', aliases: [] };
    const path = `${TOYS}/${id}`;
    const { text } = sys.read(`${path}/state`);
    if (text === undefined || !call(sys.path(path))) return { device };
    return { device, read: { readings: [{ metric: 'state', value: Number(text) }], findings: [] } };
  };
  /** False when the call is not allowed. */
  const call = (place: string): boolean => {
    if (!sys.exists(`${TOYS}/${place.split('/').at(-1)}/call`)) return true;
    if (sys.guard?.enter(`${place}/nvml/call`, 'call') !== undefined) return false;
    if (readFileSync(`${place}/call`, 'utf8') === 'abort') process.abort();
    sys.guard?.leave();
    return true;
  };
  return {
    collect() {
      if (sys.exists('unseen')) readFileSync(sys.path('unseen'), 'utf8');
      return { reports: sys.list(TOYS).map(look), problems: [], listing: 'complete' };
    },
  };
}

export const family = { name: 'fpga', metrics: [], createProbe };
