import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Assembler } from '../../../src/agent/assemble.ts';
import type { Collection } from '../../../src/model/collection.ts';
import type { Snapshot } from '../../../src/model/snapshot.ts';
import { familyState, lookAt, podResources } from '../../support/snapshots.ts';
import { isRunning, until } from '../../support/until.ts';
import { documentText, emptyMachine, findingIn, gpuText, type Machine, machineOf, nested, reportOf, UUIDS, valueIn } from './harness.ts';

const machines: Machine[] = [];
const keep = (machine: Machine): Machine => {
  machines.push(machine);
  return machine;
};
afterEach(() => {
  for (const machine of machines.splice(0)) machine.remove();
});

const [FIRST, SECOND] = UUIDS;
const TWO = documentText(gpuText(), gpuText({ index: 1 }));
const HARDWARE: readonly (readonly [string, string])[] = [
  ['sys/bus/pci/devices/0000:10:00.0/vendor', '0x10de\n'],
  ['sys/bus/pci/devices/0000:10:00.0/class', '0x030200\n'],
];

/** A machine with NVIDIA hardware on its bus. */
function withHardware(timeoutMs?: number): Machine {
  const machine = keep(emptyMachine(timeoutMs));
  for (const [path, text] of HARDWARE) machine.write(path, text);
  return machine;
}

const idsOf = ({ reports }: Collection): readonly string[] => reports.map(({ device }) => device.id);
const codesOf = ({ problems }: Collection): readonly string[] => problems.map(({ code }) => code);

/** Returns a function that assembles a snapshot from each of a series of collections. */
function assembler(): (collection: Collection, nowMs: number) => Snapshot {
  const settings = { rules: { pools: [], families: new Map() }, specs: new Map(), staleAfterMs: 60_000, missingRetentionMs: 600_000 };
  const made = new Assembler(settings, () => new Map());
  return (collection, nowMs) => {
    const state = { ...familyState('nvidia'), problems: collection.problems };
    const families = [{ state, latest: lookAt(collection, nowMs) }];
    return made.assemble({ families, podResources: podResources([]), checkpoint: [] }, { nowMs, monotonicMs: nowMs });
  };
}

describe('an nvidia-smi that hangs', () => {
  it('and ignores SIGTERM is killed with its children, and its GPUs stay', async () => {
    const machine = withHardware(300);
    const remember = assembler();
    machine.show(TWO);
    remember(await machine.collect(), 0);
    machine.smi(
      `trap '' TERM; echo $$ > '${machine.root}/pid'; (trap '' TERM; exec sleep 1000) & echo $! > '${machine.root}/child'; while :; do sleep 1000; done`,
    );
    const collection = await machine.collect();
    expect(codesOf(collection)).toEqual(['smi-timeout']);
    expect(collection.listing).toBe('partial');
    const { devices } = remember(collection, 10_000);
    expect(devices.map(({ device, missingSinceMs }) => [device.id, missingSinceMs])).toEqual([
      [FIRST, undefined],
      [SECOND, undefined],
    ]);
    for (const name of ['pid', 'child']) await until(() => !isRunning(Number(readFileSync(join(machine.root, name), 'utf8'))));
    expect(machine.running.size).toBe(0);
  });

  it('does not affect the next read after it works again', async () => {
    const machine = withHardware(300);
    machine.smi('sleep 1000');
    expect(codesOf(await machine.collect())).toEqual(['smi-timeout']);
    machine.show(TWO);
    expect(idsOf(await machine.collect())).toEqual([FIRST, SECOND]);
  });
});

describe('an nvidia-smi that prints too much', () => {
  it('is ended at 16 MiB, and its output is ignored', async () => {
    const machine = withHardware();
    machine.show(TWO);
    await machine.collect();
    machine.smi(`cat '${machine.root}/bin/document.xml'; exec yes`);
    const collection = await machine.collect();
    expect(codesOf(collection)).toEqual(['smi-too-large']);
    expect([collection.reports, collection.listing]).toEqual([[], 'partial']);
  });
});

describe('an nvidia-smi that is replaced', () => {
  it('is a problem while it is missing, and is used again afterwards', async () => {
    const machine = withHardware();
    machine.show(TWO);
    await machine.collect();
    rmSync(join(machine.root, 'bin/nvidia-smi'));
    expect(await machine.collect()).toMatchObject({ reports: [], listing: 'partial', problems: [{ code: 'smi-not-found' }] });
    machine.show(documentText(gpuText({ temperature: '77 C' })));
    expect(valueIn(reportOf(await machine.collect(), FIRST), 'device_temperature_celsius')).toBe(77);
  });

  it('differs from one that may not be run', async () => {
    const machine = withHardware();
    machine.show(TWO);
    chmodSync(join(machine.root, 'bin/nvidia-smi'), 0o644);
    expect(codesOf(await machine.collect())).toEqual(['smi-not-executable']);
  });
});

describe('an unusable driver', () => {
  it.each([
    ['Failed to initialize NVML: Driver/library version mismatch', 18, 'driver-library-mismatch', 'LibraryMismatch'],
    ["NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9, 'driver-not-loaded', 'DriverNotLoaded'],
  ])('%s: is a fault of each GPU seen before', async (text, status, code, reason) => {
    const machine = withHardware();
    machine.show(TWO);
    await machine.collect();
    machine.smi(`echo "${text}"; exit ${status}`);
    for (let read = 0; read < 2; read += 1) {
      const collection = await machine.collect();
      expect(codesOf(collection)).toEqual([code]);
      expect(collection.listing).toBe('partial');
      for (const id of [FIRST, SECOND]) {
        const report = collection.reports.find(({ device }) => device.id === id);
        expect(report).not.toHaveProperty('read');
        expect(report?.outOfBand).toEqual({
          readings: [],
          findings: [{ type: 'DriverUnusable', status: true, reason, message: text }],
        });
      }
    }
    machine.show(TWO);
    expect(findingIn(reportOf(await machine.collect(), FIRST), 'DriverUnusable')).toMatchObject({ status: false });
  });

  it.each(['Failed to initialize NVML: Unknown Error', 'Failed to initialize NVML: Insufficient Permissions'])(
    '%s: is a fault of the container, and no GPU is blamed',
    async (text) => {
      const machine = withHardware();
      machine.show(TWO);
      await machine.collect();
      machine.smi(`echo "${text}"; exit 255`);
      expect(await machine.collect()).toMatchObject({ reports: [], listing: 'partial' });
    },
  );

  it('is a fault of each GPU on the bus, also at the first look', async () => {
    const machine = withHardware();
    machine.smi('echo "Failed to initialize NVML: Driver/library version mismatch"; exit 18');
    const collection = await machine.collect();
    expect(collection).toMatchObject({ listing: 'partial', problems: [{ code: 'driver-library-mismatch' }] });
    expect(collection.reports.map(({ device, outOfBand }) => [device.id, outOfBand?.findings[0]?.type])).toEqual([
      ['0000:10:00.0', 'DriverUnusable'],
    ]);
  });
});

describe('a GPU that is no longer shown', () => {
  it('is missing, and has its readings again when it returns', async () => {
    const machine = withHardware();
    const remember = assembler();
    machine.show(TWO);
    remember(await machine.collect(), 0);
    machine.show(documentText(gpuText()));
    const gone = remember(await machine.collect(), 10_000);
    expect(gone.devices.map(({ device, missingSinceMs, readings }) => [device.id, missingSinceMs, readings.length > 0])).toEqual([
      [FIRST, undefined, true],
      [SECOND, 10_000, false],
    ]);
    machine.show(TWO);
    const back = remember(await machine.collect(), 20_000);
    expect(back.devices.map(({ missingSinceMs }) => missingSinceMs)).toEqual([undefined, undefined]);
  });

  it('is also missing when the driver has no GPU any more', async () => {
    const machine = withHardware();
    const remember = assembler();
    machine.show(documentText(gpuText()));
    remember(await machine.collect(), 0);
    machine.smi('echo "No devices were found"; exit 6');
    const collection = await machine.collect();
    expect(codesOf(collection)).toEqual(['no-devices']);
    expect(remember(collection, 10_000).devices.map(({ missingSinceMs }) => missingSinceMs)).toEqual([10_000]);
  });

  it('is lost when a line around the document says so; its neighbour is not', async () => {
    const machine = withHardware();
    machine.show(TWO);
    await machine.collect();
    machine.show(documentText(gpuText()));
    machine.smi(
      `echo "Unable to determine the device handle for GPU1: 0000:11:00.0: Unknown Error" >&2; cat '${machine.root}/bin/document.xml'; exit 255`,
    );
    for (let read = 0; read < 3; read += 1) {
      const collection = await machine.collect();
      expect(collection.listing).toBe('complete');
      expect(findingIn(reportOf(collection, SECOND), 'GpuLost')).toMatchObject({ status: true, reason: 'GpuIsLost' });
      expect(findingIn(reportOf(collection, FIRST), 'GpuLost')).toMatchObject({ status: false });
      expect(collection.problems).toMatchObject([{ code: 'gpu-unreadable', device: SECOND }]);
    }
    machine.show(TWO);
    expect(findingIn(reportOf(await machine.collect(), SECOND), 'GpuLost')).toMatchObject({ status: false });
  });

  it('is neither lost nor missing when the line reports missing permission', async () => {
    const machine = withHardware();
    machine.show(TWO);
    await machine.collect();
    machine.show(documentText(gpuText()));
    machine.smi(
      `echo "Unable to determine the device handle for GPU1: 0000:11:00.0: Insufficient Permissions"; cat '${machine.root}/bin/document.xml'; exit 4`,
    );
    for (let read = 0; read < 2; read += 1) {
      const collection = await machine.collect();
      expect(collection.listing).toBe('partial');
      expect(collection.reports.map(({ device, read }) => [device.id, read === undefined])).toEqual([
        [FIRST, false],
        [SECOND, true],
      ]);
      expect(collection.problems).toMatchObject([{ code: 'no-permission' }]);
    }
  });

  it('is lost when it makes the whole command fail; the others are unread', async () => {
    const machine = withHardware();
    machine.show(TWO);
    await machine.collect();
    machine.smi(
      'echo "Unable to determine the device handle for GPU 0000:11:00.0: GPU is lost.  Reboot the system to recover this GPU"; exit 15',
    );
    const collection = await machine.collect();
    expect(codesOf(collection)).toEqual(['gpu-unreadable']);
    expect(collection.listing).toBe('partial');
    expect(idsOf(collection)).toEqual([SECOND]);
    expect(findingIn(reportOf(collection, SECOND), 'GpuLost')).toMatchObject({ status: true });
  });
});

describe('MIG instances', () => {
  const split = (index: number): string =>
    gpuText({
      index,
      extra: `<mig_mode><current_mig>Enabled</current_mig></mig_mode><gpu_recovery_action>None</gpu_recovery_action>
        <mig_devices><mig_device><index>0</index><gpu_instance_id>7</gpu_instance_id><compute_instance_id>0</compute_instance_id></mig_device></mig_devices>`,
    });
  const listing = `GPU 0: Test (UUID: ${FIRST})\n  MIG 1g.10gb     Device  0: (UUID: MIG-1)\n`;

  it('keep their names while the listing fails, which is a problem', async () => {
    const machine = withHardware();
    machine.show(documentText(split(0)), listing);
    expect(idsOf(await machine.collect())).toEqual([FIRST, 'MIG-1']);
    machine.show(documentText(split(0)), '');
    const collection = await machine.collect();
    expect(idsOf(collection)).toEqual([FIRST, 'MIG-1']);
    expect(codesOf(collection)).toEqual(['mig-names-unknown']);
  });

  it('without numbers are ignored, and cause no problem about names', async () => {
    const machine = withHardware();
    const nameless =
      '<mig_device><index>1</index><gpu_instance_id>N/A</gpu_instance_id><compute_instance_id>N/A</compute_instance_id></mig_device>';
    machine.show(documentText(split(0).replace('</mig_devices>', `${nameless}</mig_devices>`)), listing);
    const collection = await machine.collect();
    expect([idsOf(collection), collection.problems, collection.listing]).toEqual([[FIRST, 'MIG-1'], [], 'complete']);
  });

  it('cause no further command when there are none', async () => {
    const machine = withHardware();
    machine.show(TWO);
    machine.smi(`echo "$*" >> '${machine.root}/calls'; cat '${machine.root}/bin/document.xml'`);
    await machine.collect();
    expect(readFileSync(join(machine.root, 'calls'), 'utf8')).toBe('-q -x\ntopo -m\n');
  });

  it('share faults of their whole GPU, but no fault that may concern only a neighbour', async () => {
    const machine = withHardware();
    const sick = split(0)
      .replace('<gpu_recovery_action>None', '<gpu_recovery_action>GPU Reset')
      .replace('</gpu>', `${nested('ecc_errors/volatile/dram_uncorrectable', '1')}${nested('fabric/state', 'In Progress')}</gpu>`);
    machine.show(documentText(sick, gpuText({ index: 1 })), listing);
    const collection = await machine.collect();
    const holding = (id: string): readonly string[] =>
      reportOf(collection, id)
        .findings.filter(({ status }) => status === true)
        .map(({ type }) => type);
    expect(holding(FIRST)).toEqual(['RecoveryAction', 'UncorrectableEcc', 'FabricNotReady']);
    expect(holding('MIG-1')).toEqual(['RecoveryAction', 'FabricNotReady']);
    expect(holding(SECOND)).toEqual([]);
  });

  it('are lost together with their GPU', async () => {
    const machine = withHardware();
    machine.show(documentText(split(0)), listing);
    writeFileSync(join(machine.root, 'sys/bus/pci/devices/0000:10:00.0/config'), Buffer.alloc(64, 0xff));
    const collection = await machine.collect();
    for (const id of [FIRST, 'MIG-1']) expect(findingIn(reportOf(collection, id), 'PciFunctionGone')).toMatchObject({ status: true });
  });
});

describe('a value that is not understood', () => {
  it('is one problem with the path and the text, the same at each read', async () => {
    const machine = withHardware();
    machine.show(documentText(gpuText({ temperature: '40 K' })));
    const first = await machine.collect();
    expect(first.problems).toEqual([{ code: 'unknown-value', device: FIRST, message: 'temperature/gpu_temp: 40 K' }]);
    expect((await machine.collect()).problems).toEqual(first.problems);
    expect(valueIn(reportOf(first, FIRST), 'device_temperature_celsius')).toBeUndefined();
  });

  it.each([
    ['gpu_recovery_action', 'Turn it off and on'],
    ['fabric/state', 'Elsewhere'],
    ['fabric/health/summary', 'Splendid'],
  ])('in %s is a problem too', async (path, text) => {
    const machine = withHardware();
    machine.show(documentText(gpuText({ extra: nested(path, text) })));
    expect((await machine.collect()).problems).toEqual([{ code: 'unknown-value', device: FIRST, message: `${path}: ${text}` }]);
  });

  it('differs from a value that the driver could not read', async () => {
    const machine = withHardware();
    machine.show(documentText(gpuText({ temperature: 'Unknown Error' })));
    const collection = await machine.collect();
    expect(collection.problems).toEqual([{ code: 'value-unreadable', device: FIRST, message: 'temperature/gpu_temp: Unknown Error' }]);
    expect(findingIn(reportOf(collection, FIRST), 'GpuLost')).toMatchObject({ status: 'unknown' });
  });

  it('gives a short message when every value of a GPU fails', async () => {
    const machine = withHardware();
    const clocks = ['graphics_clock', 'sm_clock', 'mem_clock', 'video_clock'].map((name) => nested(name, 'Unknown Error')).join('');
    machine.show(documentText(gpuText({ extra: `<clocks>${clocks}</clocks>` })));
    const [problem, ...more] = (await machine.collect()).problems;
    expect(more).toEqual([]);
    expect(problem?.message).toBe(
      'clocks/graphics_clock: Unknown Error, clocks/sm_clock: Unknown Error, clocks/mem_clock: Unknown Error and 1 more',
    );
  });
});

describe('the width of a link', () => {
  it('is reported at each read, so that it can be compared with earlier values', async () => {
    const machine = withHardware();
    const width = (text: string): string =>
      documentText(gpuText({ extra: nested('pci/pci_gpu_link_info/link_widths/current_link_width', text) }));
    machine.show(width('16x'));
    expect(findingIn(reportOf(await machine.collect(), FIRST), 'PcieLinkDegraded')).toMatchObject({ level: 16 });
    machine.show(width('8x'));
    expect(findingIn(reportOf(await machine.collect(), FIRST), 'PcieLinkDegraded')).toMatchObject({ level: 8 });
  });
});

describe('counters of the kernel', () => {
  it('are read twice a minute, even if the GPUs are read more often', async () => {
    const machine = keep(machineOf('hopper-that-tells-everything'));
    const address = '0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:19:00.0';
    const fatal = `sys/devices/pci0000:15/${address}/aer_dev_fatal`;
    const count = async (): Promise<number | undefined> =>
      findingIn(reportOf(await machine.collect(), 'GPU-40000000-0000-4000-8000-000000000001'), 'AerFatal')?.count;
    expect(await count()).toBe(0);
    machine.write(fatal, 'MalfTLP 1\nTOTAL_ERR_FATAL 1\n');
    machine.clock.nowMs += 29_999;
    expect(await count()).toBe(0);
    machine.clock.nowMs += 1;
    expect(await count()).toBe(1);
  });
});

describe('a machine without NVIDIA hardware', () => {
  it.each([
    ['no nvidia-smi', undefined],
    [
      'an nvidia-smi that misses its driver',
      'echo "NVIDIA-SMI has failed because it couldn\'t communicate with the NVIDIA driver."; exit 9',
    ],
    ['an nvidia-smi that finds nothing', 'echo "No devices were found"; exit 6'],
    ['an nvidia-smi without its library', 'exit 12'],
  ])('and with %s is in order', async (_, script) => {
    const machine = keep(emptyMachine());
    if (script !== undefined) machine.smi(script);
    expect(await machine.collect()).toEqual({ reports: [], problems: [], listing: 'absent' });
  });

  it('counts as one with hardware when the driver is loaded', async () => {
    const machine = keep(emptyMachine());
    machine.write('proc/driver/nvidia/version', 'NVRM version: 580.1\n');
    expect(codesOf(await machine.collect())).toEqual(['smi-not-found']);
    expect(existsSync(join(machine.root, 'bin'))).toBe(false);
  });
});
