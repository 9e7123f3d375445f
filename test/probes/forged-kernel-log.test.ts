import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { Clock } from '../../src/host/clock.ts';
import { createHost } from '../../src/host/host.ts';
import type { Collection } from '../../src/model/collection.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { forgedRecords, logOf } from '../support/forged-records.ts';
import { buildMachine, readMachine } from '../support/machine.ts';
import { probeOptions } from '../support/probe-options.ts';

const clock: Clock = { now: () => Date.parse('2026-01-01T00:00:00Z'), monotonic: () => 0, after: () => () => {} };
const BOOT = '6,1,100,-;Linux version 7.0\n';

interface Read {
  readonly collection: Collection;
  /** All of it, to compare. */
  readonly text: string;
}

/** What a family reads on a machine whose kernel log contains only this. */
async function collect(family: DeviceFamily, path: string, log: string): Promise<Read> {
  const machine = buildMachine(readMachine(path));
  const { root } = machine;
  const host = createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, clock);
  const options: Readonly<Record<string, unknown>> = probeOptions(family, machine.options);
  const file = join(root, 'dev/kmsg');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, log);
  const probe = family.createProbe(host, options as never);
  try {
    const collection = await probe.collect();
    const text = inspect(collection, { depth: null, maxArrayLength: null, sorted: true }).replaceAll(root, '{root}');
    return { collection, text };
  } finally {
    await probe.close?.();
    machine.remove();
  }
}

const machinesOf = (family: string): readonly string[] =>
  readdirSync(join('test/probes', family))
    .sort()
    .map((name) => join('test/probes', family, name, 'machine.yaml'))
    .filter((path) => existsSync(path));

/** The lines of the family's own drivers, about a device. */
function linesAbout(family: string, at: string): readonly string[] {
  const path = join('test/probes', family, 'log-lines.yaml');
  const lines = existsSync(path) ? (parse(readFileSync(path, 'utf8')) as { readonly line: string }[]) : [];
  return lines.map(({ line }) => line.replaceAll(/[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d/g, at));
}

describe.each(Object.keys(familyLoaders))('%s', (name) => {
  it('takes no record for that of a driver that a process could have caused', async () => {
    const family = await (familyLoaders[name] as () => Promise<DeviceFamily>)();
    let devices = 0;
    for (const path of machinesOf(name)) {
      const honest = await collect(family, path, BOOT);
      const { reports } = honest.collection;
      const addresses = [...new Set(reports.map(({ device: { pciAddress } }) => pciAddress ?? '0000:03:00.0'))];
      if (addresses.length === 0) continue;
      const forged = addresses.slice(0, 2).flatMap((at) => forgedRecords(at, linesAbout(name, at)));
      expect((await collect(family, path, BOOT + logOf(forged))).text, path).toBe(honest.text);
      devices += reports.length;
      if (devices > 3) break;
    }
    expect(devices).toBeGreaterThan(0);
  });
});
