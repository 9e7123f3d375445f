import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Clock } from '../../src/host/clock.ts';
import { createHost } from '../../src/host/host.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { buildMachine, readMachine } from '../support/machine.ts';
import { probeOptions } from '../support/probe-options.ts';

const clock: Clock = { now: () => 0, monotonic: () => 0, after: () => () => {} };

/** What a family tells from the log on a machine, and its problems with the log. */
async function told(name: string, machine: string, kmsg: string | undefined) {
  const family = await (familyLoaders[name] as () => Promise<DeviceFamily>)();
  const { root, options, remove } = buildMachine(readMachine(join('test/probes', name, machine, 'machine.yaml')));
  if (kmsg === undefined) rmSync(join(root, 'dev/kmsg'));
  const roots = { sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev'), ...(kmsg !== undefined && { kmsg }) };
  const probe = family.createProbe(createHost(roots, clock), probeOptions(family, options));
  try {
    const { reports, problems } = await probe.collect();
    const findings = reports.flatMap(({ outOfBand }) => outOfBand?.findings ?? []);
    const count = (status: boolean): number => findings.filter((finding) => finding.status === status).length;
    return { raised: count(true), denied: count(false), problems: problems.flatMap(({ code }) => (code.startsWith('kmsg') ? [code] : [])) };
  } finally {
    await probe.close?.();
    remove();
  }
}

it.each([
  ['nvidia', 'xids-in-the-kernel-log'],
  ['intelgpu', 'wedged-cards'],
])('%s tells the same with a log that is not read as without a log, which is a problem', async (name, machine) => {
  const read = await told(name, machine, 'kmsg');
  const missing = await told(name, machine, undefined);
  expect(read.raised).toBeGreaterThan(0);
  expect(missing).toMatchObject({ raised: 0, problems: ['kmsg-missing'] });
  expect(missing.denied).toBeLessThan(read.raised + read.denied);
  expect(await told(name, machine, '')).toEqual({ ...missing, problems: [] });
});
