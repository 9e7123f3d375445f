import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { CaptureLog } from '../../../src/capture/capture-log.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { StepGuard } from '../../../src/host/fs/step-guard.ts';
import { createHost, type HostDependencies } from '../../../src/host/host.ts';
import { PciDatabase } from '../../../src/host/pci/pci-names.ts';

const root = mkdtempSync(join(tmpdir(), 'device-agent-pci-names-'));
const file = join(root, 'misc/pci.ids');
const NAVI = { device: '73bf', subsystem: '1002 0e3a' };
const TEXT = '1002  A Vendor\n\t73bf  Navi 21\n\t\t1002 0e3a  Product\n\t744c  Navi 31\n10de  Another\n\t2330  H100\n';

const write = (text: string | Buffer, path = file): void => {
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, text);
};
const database = (parts: HostDependencies = {}): PciDatabase =>
  new PciDatabase(createHost({ sysfs: root, procfs: root, dev: root, share: root }, systemClock, parts), '1002');

afterEach(() => {
  for (const folder of ['misc', 'hwdata']) rmSync(join(root, folder), { recursive: true, force: true });
});

describe('the database of PCI ids', () => {
  it('names the card of its vendor and its subsystem', () => {
    write(TEXT);
    const names = database();
    expect(names.of(NAVI)).toEqual({ device: 'Navi 21', subsystem: 'Product' });
    expect(names.of({ device: '744c', subsystem: '1002 0e3a' })).toEqual({ device: 'Navi 31' });
    expect(names.of({ device: '2330' })).toEqual({});
  });

  it('is also found where Fedora has it', () => {
    write(TEXT, join(root, 'hwdata/pci.ids'));
    expect(database().of(NAVI)).toEqual({ device: 'Navi 21', subsystem: 'Product' });
  });

  it('is read again when its time changes, and only then', () => {
    write(TEXT);
    utimesSync(file, 1, 1);
    const names = database();
    names.of(NAVI);
    write(TEXT.replace('Navi 21', 'Navi 99'));
    utimesSync(file, 1, 1);
    expect(names.of(NAVI).device).toBe('Navi 21');
    utimesSync(file, 2, 2);
    expect(names.of(NAVI).device).toBe('Navi 99');
    rmSync(file);
    expect(names.of(NAVI)).toEqual({});
  });

  it.each([
    ['nothing', ''],
    ['random bytes', Buffer.from(Array.from({ length: 70_000 }, (_, n) => (n * 7919) % 256))],
    ['a vendor without cards', '1002  '],
    ['a line without a name', '1002  V\n\t73bf  \n'],
    ['a name of control characters', '1002  V\n\t73bf  \u0007\u001b\u202e\n'],
    ['a card of another vendor', '1002  V\n9999  W\n\t73bf  X\n'],
    ['a card behind the part that is read', `1002  V\n${'\t0000  x\n'.repeat(500_000)}\t73bf  X\n`],
  ])('that holds %s names no card', (_, content) => {
    write(content);
    expect(database().of(NAVI)).toEqual({});
  });

  it('gives a name of one short line', () => {
    write(`1002  V\n\t73bf  \u001b[2J${'x'.repeat(1_000_000)}\n`);
    const { device = '' } = database().of(NAVI);
    expect(device).toMatch(/^\[2Jx+\.\.\.$/);
    expect(Buffer.byteLength(device)).toBeLessThanOrEqual(100);
  });

  it('that is a pipe or a directory is none, and nothing waits for it', () => {
    mkdirSync(file, { recursive: true });
    expect(database().of(NAVI)).toEqual({});
    rmSync(file, { recursive: true });
    execFileSync('mkfifo', [file]);
    expect(database().of(NAVI)).toEqual({});
  });

  it('is not touched after a read of it hung', () => {
    write(TEXT);
    expect(database({ guard: new StepGuard([file]) }).of(NAVI)).toEqual({});
  });

  it('leaves only the lines of its cards in a capture, from which the same names are read', () => {
    write(`${TEXT}# ${'x'.repeat(1_000_000)}\n`);
    const log = new CaptureLog([{ name: 'share', path: root }]);
    const names = database({ observe: log.take });
    const cards = [NAVI, { device: '73bf', subsystem: '1da2 0001' }, { device: '744c' }, { device: '1234' }];
    const before = cards.map((card) => names.of(card));
    const { tree } = log.read({ atMs: 0, wallMs: 0 });
    expect(Object.keys(tree)).toEqual(['share', 'share/misc', 'share/misc/pci.ids']);
    const { file: kept } = tree['share/misc/pci.ids'] as { file: string };
    expect(kept.length).toBeLessThan(200);
    write(kept);
    const replayed = database();
    expect(cards.map((card) => replayed.of(card))).toEqual(before);
    rmSync(file);
    names.of(NAVI);
    expect(Object.keys(log.read({ atMs: 1, wallMs: 0 }).tree)).toEqual(['share', 'share/misc']);
  });
});
