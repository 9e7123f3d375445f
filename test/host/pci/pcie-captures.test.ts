import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Tree } from '../../../src/host/fs/tree.ts';
import { attainableWidth, readAer, readPcieLink } from '../../../src/host/pci/pcie.ts';
import { areThere, CAPTURES, skipped } from '../../support/captures.ts';

const SYS = join(CAPTURES, 'sysfs/sys');

/** The captures contain only the directories. This creates the kernel's links in `bus/pci/devices`. */
const DEVICES: Readonly<Record<string, string>> = {
  '0000:01:00.0': 'devices/pci0000:00/0000:00:02.1/0000:01:00.0',
  '0000:03:00.0': 'devices/pci0000:00/0000:00:03.0/0000:03:00.0',
  '0000:00:03.0': 'devices/pci0000:00/0000:00:03.0',
  '0000:00:1f.6': 'devices/pci0000:00/0000:00:1f.6',
  '0000:09:00.0': 'class/drm/card0/device',
};

let root = '';
let sys: Tree;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-pcie-'));
  mkdirSync(join(root, 'bus/pci/devices'), { recursive: true });
  for (const [address, path] of Object.entries(DEVICES)) symlinkSync(join(SYS, path), join(root, 'bus/pci/devices', address));
  sys = new Tree(root);
});
afterAll(() => rmSync(root, { recursive: true }));

describe.skipIf(!areThere)(`PCIe of captured machines${skipped}`, () => {
  it.each([
    ['0000:01:00.0', { width: 4, widthMax: 4, generation: 3, generationMax: 3, upstreamWidthMax: 8 }],
    ['0000:03:00.0', { width: 8, widthMax: 8, generation: 3, generationMax: 3, upstreamWidthMax: 16 }],
    ['0000:00:03.0', { width: 8, widthMax: 16, generation: 3, generationMax: 3 }],
    ['0000:09:00.0', { width: 16, widthMax: 16, generation: 3, generationMax: 3 }],
  ])('the link of %s is as its files say', (address, link) => {
    expect(readPcieLink(sys, address)).toMatchObject({ powerState: 'D0', isAsleep: false, ...link });
  });

  it('a card of four lanes in a slot of eight has its full width', () => {
    expect(attainableWidth(readPcieLink(sys, '0000:01:00.0'))).toBe(4);
  });

  it('a function without link files has no link', () => {
    expect(readPcieLink(sys, '0000:00:1f.6')).toEqual({ isAsleep: false });
  });

  it('every AER count has its own name', () => {
    const { errors, totals } = readAer(sys, '0000:00:1f.6');
    const counts = (severity: string): Record<string, bigint> =>
      Object.fromEntries(errors.filter((error) => error.severity === severity).map(({ kind, count }) => [kind, count]));
    expect(counts('correctable')).toEqual({
      RxErr: 1n,
      BadTLP: 2n,
      BadDLLP: 3n,
      Rollover: 4n,
      Timeout: 5n,
      NonFatalErr: 6n,
      CorrIntErr: 7n,
      HeaderOF: 8n,
    });
    expect(counts('fatal')).toMatchObject({ Undefined: 10n, SDES: 12n, MalfTLP: 19n, UnsupReq: 21n, PoisonTLPBlocked: 27n });
    expect(counts('nonfatal')).toMatchObject({ Undefined: 30n, CmpltTO: 35n, ACSViol: 42n, PoisonTLPBlocked: 47n });
    // This machine's kernel labels the total of non-fatal errors as fatal, so the file name decides.
    expect(totals).toEqual({ correctable: 9n, fatal: 28n, nonfatal: 48n });
  });

  it('zeros are reported as zeros', () => {
    const { errors, totals } = readAer(sys, '0000:09:00.0');
    expect(errors).toHaveLength(8 + 18 + 18);
    expect(errors.every(({ count }) => count === 0n)).toBe(true);
    expect(totals).toEqual({ correctable: 0n, fatal: 0n, nonfatal: 0n });
  });
});
