import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import { TreeWriter } from '../../../src/sim/tree-writer.ts';
import { collectChecked } from '../../../src/supervisor/probe-look.ts';
import { buildWithFamilies, type OtherBuild } from '../../support/other-families.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { startAgent } from '../../support/serve.ts';
import { family } from './fan-family.ts';

let build: OtherBuild;
beforeAll(() => {
  build = buildWithFamilies({ fpga: 'test/probes/kit/fan-family.ts' });
});
afterAll(() => rmSync(build.root, { recursive: true, force: true }));

type Files = Readonly<Record<string, string>>;

/** The simulation: files of one fan. */
function fan(index: number, files: Files = {}): Files {
  const all: Files = { serial: `F${index}`, rpm: '2400', millicelsius: '31500', asleep: '0', stalls: '7', ...files };
  return Object.fromEntries(Object.entries(all).map(([name, text]) => [`sys/class/fan/fan${index}/${name}`, `${text}\n`]));
}

let machines = 0;

/** A machine of fans; `change` writes the files of others or of the same. */
function machine(files: Files): { readonly root: string; change(files: Files): void } {
  machines += 1;
  const root = join(build.root, `machine-${machines}`);
  for (const directory of ['sys/class/net', 'proc', 'dev']) mkdirSync(join(root, directory), { recursive: true });
  const writer = new TreeWriter(root);
  const change = (now: Files): void => writer.apply({ files: now, links: {} });
  change(files);
  return { root, change };
}

/** What one collection says: series, findings and problems, in words. */
async function told(root: string, reads = 1): Promise<readonly (readonly string[])[]> {
  const host = createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, systemClock);
  const probe = family.createProbe(host, probeOptions(family, {}));
  for (let read = 1; read < reads; read += 1) await probe.collect();
  const { reports, problems, listing } = await collectChecked(probe, host);
  await probe.close?.();
  return [
    [listing],
    reports.flatMap(({ read }) => [...(read?.readings ?? [])].map(({ metric, value }) => `${metric} ${value}`)),
    reports.flatMap(({ read }) => (read?.findings ?? []).map(({ type, reason, status }) => `${type} ${reason} ${status}`)),
    problems.map(({ code, message, device }) => `${device} ${code} ${message}`),
  ];
}

describe('a family of the kit', () => {
  it('reads a fan that turns', async () => {
    expect(await told(machine(fan(0)).root)).toEqual([
      ['complete'],
      ['device_temperature_celsius 31.5', 'device_fan_speed_rpm 2400', 'device_fpga_asleep 0', 'device_fpga_stalls_total 7'],
      ['FanStopped Turns false', 'FanStalls CounterGrows undefined'],
      [],
    ]);
  });

  it('tells a value that is absent from one that cannot be read, and names each failure once', async () => {
    const { root } = machine(fan(0, { millicelsius: '9000000000', stalls: 'many', asleep: '?' }));
    rmSync(join(root, 'sys/class/fan/fan0/rpm'));
    mkdirSync(join(root, 'sys/class/fan/fan0/rpm'));
    expect(await told(root, 2)).toEqual([
      ['complete'],
      [],
      ['FanStopped Unreadable unknown'],
      [
        'fan0 read-failed /sys/class/fan/fan0: EISDIR of rpm',
        'fan0 unparsable /sys/class/fan/fan0: unparsable of asleep, stalls',
        'fan0 impossible-value /sys/class/fan/fan0: not a possible value of millicelsius',
      ],
    ]);
  });

  it('is absent without the class, and partial when the class cannot be listed', async () => {
    const { root } = machine({});
    expect((await told(root))[0]).toEqual(['absent']);
    mkdirSync(join(root, 'sys/class/fan'));
    chmodSync(join(root, 'sys/class/fan'), 0);
    if (process.getuid?.() !== 0) expect((await told(root))[0]).toEqual(['partial']);
  });

  it('is judged and exported by the agent', async () => {
    const { root, change } = machine({ ...fan(0), ...fan(1) });
    const paths = ['sysfs', 'procfs', 'dev'].map((name) => `--path.${name}=${join(root, name.replace(/fs$/, ''))}`);
    const flags = [...paths, '--podresources.checkpoint=', '--state.file=', '--refresh.interval=200ms', '--family.dir='];
    const agent = await startAgent([process.execPath, join(build.root, 'dist/cli/main.js'), 'serve', ...flags]);
    onTestFinished(async () => {
      await agent.stop();
    });
    const has = (page: string, ...parts: string[]): boolean =>
      page.split('\n').some((line) => parts.every((part) => line.includes(part)) && line.endsWith(' 1'));
    await agent.until('both fans are healthy', (page) => ['fan0', 'fan1'].every((id) => has(page, 'device_healthy{', `device="${id}"`)));
    change({ ...fan(0, { rpm: '0' }), ...fan(1, { stalls: '17' }) });
    const page = await agent.until('both fans have faults', (now) =>
      [
        ['fan0', 'FanStopped', 'NoTurns', 'fatal'],
        ['fan1', 'FanStalls', 'CounterGrows', 'degraded'],
      ].every(([id, ...parts]) => has(now, 'device_health_condition{', `device="${id}"`, ...parts)),
    );
    expect(has(page, 'device_health{', 'device="fan0"', 'state="unhealthy"')).toBe(true);
    expect(has(page, 'device_health{', 'device="fan1"', 'state="degraded"')).toBe(true);
  });
});
