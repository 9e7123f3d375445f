import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import type { Clock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import type { Collection } from '../../../src/model/collection.ts';
import { family } from '../../../src/probes/nvme/index.ts';
import { buildMachine, readMachine } from '../../support/machine.ts';
import { probeOptions } from '../../support/probe-options.ts';

const clock: Clock = { now: () => 0, monotonic: () => 0, after: () => () => {} };

/** What a process that holds a Neuron device can have its driver print, and one line that the driver of NVMe prints with its device. */
const LOG = [
  '6,0,0,-;Linux version 7.0',
  '3,1,1000000,-;I/O error, dev nvme0n1, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2',
  '3,2,1000001,-;Aborting journal on device nvme0n1p2-8.',
  '3,3,1000002,-;nvme0n1: Read(0x2) @ LBA 0, 1 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) DNR ',
].join('\n');

async function look(hasNeuron: boolean): Promise<Collection> {
  const machine = buildMachine(readMachine('test/probes/nvme/drive-that-answers/machine.yaml'));
  const { root } = machine;
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  write('dev/kmsg', `${LOG}\n`);
  const partition = 'devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1/nvme0n1p2';
  write(`sys/${partition}/partition`, '2\n');
  mkdirSync(join(root, 'sys/class/block'), { recursive: true });
  symlinkSync(`../../${partition}`, join(root, 'sys/class/block/nvme0n1p2'));
  if (hasNeuron) write('sys/module/neuron/version', '2.19\n');
  const host = createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, clock);
  const probe = family.createProbe(host, probeOptions(family, machine.options));
  try {
    return (await probe.collect()) as Collection;
  } finally {
    await probe.close?.();
    machine.remove();
  }
}

const toldIn = ({ reports }: Collection): readonly string[] =>
  reports.flatMap(({ device, outOfBand, faults = [] }) => [
    ...(outOfBand?.findings ?? []).filter(({ count = 0 }) => count > 0).map(({ type, count }) => `${device.id} ${type} ${count}`),
    ...faults.map(({ type, severity }) => `${device.id} ${type} ${severity}`),
  ]);
const told = async (hasNeuron: boolean): Promise<readonly string[]> => toldIn(await look(hasNeuron));

it('takes lines without a device only for information while the driver of Neuron prints what processes say', async () => {
  const alone = await told(false);
  expect(alone.some((text) => text.includes('RequestErrors 1'))).toBe(true);
  expect(alone.some((text) => text.includes('FileSystemReadOnly fatal'))).toBe(true);
  const beside = await told(true);
  expect(beside.length).toBeGreaterThan(0);
  for (const text of beside) expect(text).toMatch(/ CommandError info$/);
});

it.each([
  [false, ['RequestErrors counted', 'firmware-pcie-error 0', 'request-error 1']],
  [true, ['RequestErrors unknown', 'kmsg-forgeable']],
])('counts nothing of the lines that it does not take, and says so: %s', async (hasNeuron, expected) => {
  const { reports, problems } = await look(hasNeuron);
  const own = reports.flatMap(({ outOfBand }) => outOfBand ?? []);
  const growths = own.flatMap(({ findings }) =>
    findings.flatMap((finding) => (finding.type === 'RequestErrors' && finding.count !== undefined ? [finding] : [])),
  );
  const states = growths.map(({ count, ceiling }) => `RequestErrors ${ceiling === count ? 'unknown' : 'counted'}`);
  const series = own.flatMap(({ readings }) => [...readings].map(({ labels, value }) => `${labels?.event} ${value}`));
  const wanted = /^(?:request-error|firmware-pcie-error) /;
  expect([...new Set([...states, ...series.filter((text) => wanted.test(text)), ...problems.map(({ code }) => code)])]).toEqual(expected);
});
