import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import { createHost } from '../../src/host/host.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { areThere, skipped, unpackMachine } from '../support/captures.ts';
import { probeOptions } from '../support/probe-options.ts';

interface Machine {
  /** What each family finds. The other families must find nothing and have no problem. */
  readonly found: Readonly<Record<string, { readonly devices: readonly string[]; readonly problems?: readonly string[] }>>;
  /** Series of a device, as `family/device metric label=value`. */
  readonly series: Readonly<Record<string, number>>;
}

const ENGINES = ['1b', '1c', '1d', '1e', '3d', '3f', '40', '41'].map((bus) => `0000:${bus}:00.0`);

const MACHINES: Readonly<Record<string, Machine>> = {
  '32em64t-2n8c+dax+nvme+mic+dimms': {
    // The class lists scif0 of the Xeon Phi, whose directory is not in the archive.
    found: { infiniband: { devices: ['mlx4_0'], problems: ['device-vanished scif0'] } },
    series: {
      'infiniband/mlx4_0 device_link_up port=1': 1,
      'infiniband/mlx4_0 device_link_speed_bytes_per_second port=1': 7e9,
      'infiniband/mlx4_0 device_received_bytes_total port=1': 4 * 5_550_796,
    },
  },
  '32intel64-2p8co2t+8ve': {
    found: { ve: { devices: ENGINES } },
    series: Object.fromEntries(
      ENGINES.flatMap((address) => [
        // 50331648 KiB, as hwloc prints it.
        [`ve/${address} device_memory_total_bytes`, 50_331_648 * 1_024],
        [`ve/${address} device_ve_cores`, 8],
        [`ve/${address} device_pcie_link_width_lanes`, 16],
        [`ve/${address} device_pcie_link_generation`, 3],
      ]),
    ),
  },
  nvidiagpunumanodes: { found: {}, series: {} },
};

function seriesOf(family: string, { device, read }: DeviceReport): readonly (readonly [string, number])[] {
  return (read?.readings ?? []).map(({ metric, labels = {}, value }) => {
    const pairs = Object.entries(labels).map(([name, text]) => ` ${name}=${text}`);
    return [`${family}/${device.id} ${metric}${pairs.join('')}`, Number(value)];
  });
}

describe.skipIf(!areThere).each(Object.entries(MACHINES))(`the captured machine %s${skipped}`, (archive, { found, series }) => {
  it('has the devices of the families that know them, and breaks no other family', async () => {
    const root = mkdtempSync(join(tmpdir(), 'device-agent-whole-'));
    onTestFinished(() => rmSync(root, { recursive: true }));
    unpackMachine(archive, root);
    const host = createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, systemClock);
    const told: Record<string, object> = {};
    const values = new Map<string, number>();
    for (const [name, load] of Object.entries(familyLoaders)) {
      const family = await load();
      if (family.isOffByDefault === true || family.isPresent?.(host) === false) continue;
      const probe = family.createProbe(host, probeOptions(family, {}));
      const { reports, problems } = await probe.collect();
      await probe.close?.();
      for (const report of reports) for (const [key, value] of seriesOf(name, report)) values.set(key, value);
      if (reports.length + problems.length === 0) continue;
      const codes = problems.map(({ code, device }) => [code, device].join(' ').trim());
      told[name] = { devices: reports.map(({ device }) => device.id).sort(), ...(codes.length === 0 ? {} : { problems: codes }) };
    }
    expect(told).toEqual(found);
    expect(Object.fromEntries(Object.keys(series).map((key) => [key, values.get(key)]))).toEqual(series);
  });
});
