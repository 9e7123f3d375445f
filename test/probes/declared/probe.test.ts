import { chmodSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Collection } from '../../../src/model/collection.ts';
import { COLLECTION_LIMITS } from '../../../src/supervisor/collection-limits.ts';
import { buildMachine, type MachineFile } from '../../support/machine.ts';
import { ACME, acmeFiles, declaredFamily, HandClock, lookAt, probeOn } from './support.ts';

const machineOf = (file: Partial<MachineFile>) => {
  const machine = buildMachine({ about: '', ...file });
  onTestFinished(() => machine.remove());
  return machine;
};

const told = ({ problems }: Collection): readonly string[] => problems.map(({ code, device = '' }) => `${code} ${device}`.trim());
const idsOf = ({ reports }: Collection): readonly string[] => reports.map(({ device }) => device.id);

it('keeps the facts of a device while its program fails, and takes them again after that', async () => {
  const { root } = machineOf({
    files: {
      'sys/class/acme/acme0/state': 'ok\n',
      'bin/ls': '#!/bin/sh\ncat "$0.json"\n',
      'bin/ls.json': '[{"n": 0, "model": "X1"}]',
    },
  });
  const family = await declaredFamily(`
family: acme
summary: Acme
commands: { ls: { path: ${root}/bin/ls, format: json, key: /n } }
devices:
  - { kind: card, find: { sysfs: 'class/acme/acme#' }, rows: { ls: '{1}' }, id: '{name}', facts: { model: { command: ls, pointer: /model } } }
conditions:
  - { type: Bad, severity: fatal, meaning: Bad., remedy: reset, source: test, file: state, equals: [bad] }
`);
  const clock = new HandClock();
  const probe = probeOn(family, root, clock);
  const look = async (): Promise<unknown> => {
    const collection = await probe.collect();
    clock.nowMs += 61_000;
    return [collection.reports[0]?.device.model, told(collection), collection.listing];
  };
  expect(await look()).toEqual(['X1', [], 'complete']);
  writeFileSync(join(root, 'bin/ls.json'), 'no devices');
  expect(await look()).toEqual(['X1', ['command-output-invalid'], 'complete']);
  rmSync(join(root, 'bin/ls'));
  expect(await look()).toEqual(['X1', ['command-failed'], 'complete']);
  writeFileSync(join(root, 'bin/ls'), '#!/bin/sh\necho \'[{"n": 0, "model": "X2"}]\'\n');
  chmodSync(join(root, 'bin/ls'), 0o755);
  expect(await look()).toEqual(['X2', [], 'complete']);
  await probe.close?.();
});

it('sees at once that another device has the place of a known one', async () => {
  const { root } = machineOf(acmeFiles(2));
  const probe = probeOn(await declaredFamily(ACME), root);
  expect(idsOf(await probe.collect())).toEqual(['X1A0', 'X1A1']);
  renameSync(join(root, 'sys/devices/virtual/acme/acme1'), join(root, 'sys/devices/virtual/acme/old'));
  renameSync(join(root, 'sys/devices/virtual/acme/acme0'), join(root, 'sys/devices/virtual/acme/acme1'));
  const collection = await probe.collect();
  expect([idsOf(collection), collection.listing]).toEqual([['X1A0'], 'complete']);
  expect([...(collection.reports[0]?.read?.readings ?? [])].find(({ metric }) => metric === 'device_acme_jobs_total')?.value).toBe(0);
});

it('reports the first of two devices with one id, and a device without an id as a problem', async () => {
  const { files, links } = acmeFiles(3);
  const serial = (n: number): string => `sys/devices/virtual/acme/acme${n}/serial`;
  const { root } = machineOf({ links, files: { ...files, [serial(1)]: 'X1A0\n', [serial(2)]: '\n' } });
  const collection = await lookAt(await declaredFamily(ACME), root);
  expect([idsOf(collection), told(collection), collection.listing]).toEqual([['X1A0'], ['duplicate-id', 'id-unreadable'], 'partial']);
});

it('leaves out devices beyond the limit, and values beyond the limit of a source', async () => {
  const cards = Object.fromEntries(Array.from({ length: 1_030 }, (_, n) => [`sys/class/many/many${n}/state`, 'ok\n']));
  const values = Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`sys/class/many/many0/value${n}`, `${n}\n`]));
  const { root } = machineOf({ files: { ...cards, ...values } });
  const family = await declaredFamily(`
family: many
summary: Many
devices:
  - { kind: card, find: { sysfs: 'class/many/many#' }, id: '{name}' }
readings:
  - { metric: device_many_value, help: A value., file: 'value#', labels: { value: '{1}' } }
  - { metric: device_many_state, help: A state., file: state, map: { ok: 1 } }
`);
  const collection = await lookAt(family, root);
  expect([collection.reports.length, collection.listing]).toEqual([1_024, 'partial']);
  expect(collection.reports[0]?.read?.readings).toHaveLength(257);
  expect(told(collection)).toEqual(['too-many-devices', 'too-many-values many0']);
  expect(1_024).toBeLessThan(COLLECTION_LIMITS.devices);
});

it('does not count a device as read when none of its values can be read', async () => {
  const { root } = machineOf({ files: { 'sys/class/acme/acme0/serial': 'X1A0\n' }, directories: ['sys/class/acme/acme0/state'] });
  const collection = await lookAt(await declaredFamily(ACME), root);
  expect(collection.reports.map(({ read }) => read)).toEqual([undefined]);
  expect(told(collection)).toEqual(['value-unreadable X1A0', 'device-unreadable X1A0']);
});

it('does not count a PCI function as read that tells nothing, and a sleeping one only where its presence is all that is declared', async () => {
  const at = 'sys/bus/pci/devices/0000:3b:00.0';
  const found = { [`${at}/vendor`]: '0x1ae1\n' };
  const declared = `
family: xpu
summary: Xpu
devices:
  - { kind: card, find: { pci: { vendor: '0x1ae1' } }, id: '{pci}' }
`;
  const condition = `
conditions:
  - { type: Bad, severity: fatal, meaning: Bad., remedy: reset, source: test, file: state, equals: [bad] }
`;
  const isRead = async (text: string, files: Readonly<Record<string, string>>): Promise<boolean> => {
    const { root } = machineOf({ files: { ...found, ...files } });
    const collection = await lookAt(await declaredFamily(`${declared}${text}`), root);
    expect(told(collection).includes('device-unreadable 0000:3b:00.0')).toBe(collection.reports[0]?.read === undefined);
    return collection.reports[0]?.read !== undefined;
  };
  const [asleep, link] = [{ [`${at}/power_state`]: 'D3hot\n' }, { [`${at}/current_link_width`]: '16\n' }];
  expect(await isRead('', {})).toBe(true);
  expect([await isRead('pcie: true', {}), await isRead('pcie: true', asleep), await isRead('pcie: true', link)]).toEqual([
    false,
    true,
    true,
  ]);
  const both = `pcie: true${condition}`;
  expect([await isRead(both, {}), await isRead(both, asleep), await isRead(both, link)]).toEqual([false, false, true]);
  expect(await isRead('hwmon: true', {})).toBe(false);
});

it('knows without a read that the machine has no such device', async () => {
  const family = await declaredFamily(ACME);
  const { createHost } = await import('../../../src/host/host.ts');
  const hostOf = (root: string) => createHost({ sysfs: join(root, 'sys'), procfs: root, dev: root }, new HandClock());
  const isAt = (file: Partial<MachineFile>): boolean | undefined => family.isPresent?.(hostOf(machineOf(file).root));
  expect([isAt({ directories: ['sys/class'] }), isAt({ directories: ['sys/class/acme'] }), isAt(acmeFiles(1))]).toEqual([
    false,
    false,
    true,
  ]);
  // What a file in place of the class hides is unknown, so the probe runs and says so.
  expect(isAt({ files: { 'sys/class/acme': '' } })).toBe(true);
});
