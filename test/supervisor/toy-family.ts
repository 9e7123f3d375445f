import { readFileSync } from 'node:fs';
import type { Host } from '../../src/host/host.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import type { Probe } from '../../src/probes/family.ts';

/** Below the root of `/sys`. Each directory in it is a device. */
export const TOYS = 'class/toy';

/**
 * Devices of which each has a file `state`, and may have a file `call`: reading it stands for a call of a vendor's library, of which the
 * guard is told. Of what is read from a file `unseen` nobody is told.
 */
function createProbe({ sys }: Host): Probe {
  const look = (id: string): DeviceReport => {
    const device = { family: 'fpga', id, kind: 'toy', aliases: [] };
    const path = `${TOYS}/${id}`;
    const { text } = sys.read(`${path}/state`);
    if (text === undefined || !call(sys.path(path))) return { device };
    return { device, read: { readings: [{ metric: 'state', value: Number(text) }], findings: [] } };
  };
  /** False where it must not be made. */
  const call = (place: string): boolean => {
    if (!sys.exists(`${TOYS}/${place.split('/').at(-1)}/call`)) return true;
    if (sys.guard?.enter(`${place}/nvml/call`, 'call') === false) return false;
    // With an encoding it is one call of the kernel's caller: a thread that is to end does not end within.
    readFileSync(`${place}/call`, 'utf8');
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
