import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Tree } from '../../src/host/fs/tree.ts';
import { leaveOut } from '../../src/supervisor/left-out.ts';
import { device, listed, outOfBand, report } from '../support/snapshots.ts';

let root: string;
let sys: Tree;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-left-out-'));
  sys = new Tree(root);
  const place = 'devices/pci0000:17/0000:18:00.0';
  mkdirSync(join(root, place, 'hwmon/hwmon4'), { recursive: true });
  for (const path of ['class/hwmon', 'bus/pci/devices']) mkdirSync(join(root, path), { recursive: true });
  symlinkSync(`../../../${place}`, join(root, 'bus/pci/devices/0000:18:00.0'));
  symlinkSync(`../../${place}/hwmon/hwmon4`, join(root, 'class/hwmon/hwmon4'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const log = outOfBand({ findings: [{ type: 'Xid', status: true, reason: 'Logged', message: 'Xid 79' }] });
const card = { ...report({ device: device({ id: 'a', pciAddress: '0000:18:00.0', aliases: ['uverbs0'] }) }), outOfBand: log };
const other = report({ device: device({ id: 'b', pciAddress: '0000:19:00.0' }) });
const whole = listed([card, other]);

describe('a device in whose directory something hangs', () => {
  it.each(['class/toy/a', 'bus/pci/devices/0000:18:00.0', 'class/infiniband_verbs/uverbs0', 'class/hwmon/hwmon4'])(
    'is listed unread, with what others tell of it, and nothing is missed: %s',
    (directory) => {
      expect(leaveOut(whole, [sys.path(directory)], sys)).toEqual({
        ...whole,
        reports: [{ device: card.device, outOfBand: log }, other],
        listing: 'partial',
      });
    },
  );

  it('is unknown when no device has the name of the directory, so that no device is missed', () => {
    expect(leaveOut(whole, [sys.path('class/toy/z')], sys)).toEqual({ ...whole, listing: 'partial' });
    expect(leaveOut(whole, ['nvml/nvmlInit_v2'], sys)).toEqual({ ...whole, listing: 'partial' });
  });

  it('does not exist when nothing hangs', () => {
    expect(leaveOut(whole, [], sys)).toBe(whole);
  });
});
