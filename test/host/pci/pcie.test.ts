import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { Tree } from '../../../src/host/fs/tree.ts';
import {
  attainableGeneration,
  attainableWidth,
  doesPciFunctionAnswer,
  parseAer,
  parseLinkGeneration,
  parseLinkWidth,
  readAer,
  readPcieLink,
} from '../../../src/host/pci/pcie.ts';
import { buildMachine, type Machine } from '../../support/machine.ts';

const PORT = 'sys/devices/pci0000:17/0000:17:01.0';
const CARD = `${PORT}/0000:18:00.0`;
const machines: Machine[] = [];

function sysOf(files: Readonly<Record<string, string>>): Tree {
  const machine = buildMachine({
    about: 'one card below one root port',
    files,
    links: { 'sys/bus/pci/devices/0000:18:00.0': '../../../devices/pci0000:17/0000:17:01.0/0000:18:00.0' },
  });
  machines.push(machine);
  return new Tree(`${machine.root}/sys`);
}

afterEach(() => {
  for (const machine of machines.splice(0)) machine.remove();
});

describe('PCIe link', () => {
  it.each([
    ['16', 16],
    ['16\n', 16],
    ['1', 1],
    ['63', undefined],
    ['255', undefined],
    ['0', undefined],
    ['x16', undefined],
    [undefined, undefined],
  ])('reads width %j as %j', (text, width) => {
    expect(parseLinkWidth(text)).toBe(width);
  });

  it.each([
    ['2.5 GT/s PCIe', 1],
    ['5.0 GT/s PCIe', 2],
    ['8 GT/s', 3],
    ['16.0 GT/s PCIe\n', 4],
    ['32.0 GT/s PCIe', 5],
    ['64.0 GT/s PCIe', 6],
    ['Unknown speed', undefined],
    ['Unknown', undefined],
    ['7.5 GT/s', undefined],
    [undefined, undefined],
  ])('reads speed %j as generation %j', (text, generation) => {
    expect(parseLinkGeneration(text)).toBe(generation);
  });

  it('has the maxima of device and slot', () => {
    const sys = sysOf({
      [`${CARD}/power_state`]: 'D0\n',
      [`${CARD}/current_link_width`]: '8\n',
      [`${CARD}/max_link_width`]: '16\n',
      [`${CARD}/current_link_speed`]: '16.0 GT/s PCIe\n',
      [`${CARD}/max_link_speed`]: '32.0 GT/s PCIe\n',
      [`${PORT}/max_link_width`]: '8\n',
      [`${PORT}/max_link_speed`]: '16.0 GT/s PCIe\n',
    });
    const link = readPcieLink(sys, '0000:18:00.0');
    expect(link).toEqual({
      powerState: 'D0',
      isAsleep: false,
      width: 8,
      widthMax: 16,
      generation: 4,
      generationMax: 5,
      upstreamWidthMax: 8,
      upstreamGenerationMax: 4,
    });
    expect([attainableWidth(link), attainableGeneration(link)]).toEqual([8, 4]);
  });

  it('reads nothing but the power state of a sleeping function', () => {
    const sys = sysOf({ [`${CARD}/power_state`]: 'D3hot\n' });
    for (const file of ['current_link_width', 'max_link_speed', 'config']) execFileSync('mkfifo', [sys.path(`../${CARD}/${file}`)]);
    expect(readPcieLink(sys, '0000:18:00.0')).toEqual({ powerState: 'D3hot', isAsleep: true });
    expect(doesPciFunctionAnswer(sys, '0000:18:00.0')).toBeUndefined();
  });

  it('is empty for an absent address', () => {
    const link = readPcieLink(sysOf({}), '0000:99:00.0');
    expect(link).toEqual({ isAsleep: false });
    expect([attainableWidth(link), attainableGeneration(link)]).toEqual([undefined, undefined]);
  });
});

describe('configuration header', () => {
  it.each([
    ['answers', Buffer.concat([Buffer.from([0xb3, 0x15]), Buffer.alloc(62, 0xff)]), true],
    ['fell off the bus', Buffer.alloc(64, 0xff), false],
    ['gives half a header', Buffer.alloc(32, 0xff), undefined],
    ['gives an empty header', Buffer.alloc(0), undefined],
  ])('of a card that %s', (_name, header, answers) => {
    const sys = sysOf({ [`${CARD}/power_state`]: 'D0\n' });
    mkdirSync(sys.path(`../${CARD}`), { recursive: true });
    writeFileSync(sys.path(`../${CARD}/config`), header);
    expect(doesPciFunctionAnswer(sys, '0000:18:00.0')).toBe(answers);
  });

  it('that cannot be read gives undefined', () => {
    expect(doesPciFunctionAnswer(sysOf({}), '0000:18:00.0')).toBeUndefined();
  });
});

describe('AER', () => {
  it('takes the last word as the number and the rest as the name', () => {
    expect(parseAer('RxErr 3\nCorrected Internal Error 12\n\nTOTAL_ERR_COR 14\nnonsense\nBad -1\n')).toEqual({
      kinds: [
        ['RxErr', 3n],
        ['Corrected Internal Error', 12n],
      ],
      total: 14n,
    });
  });

  it('keeps 64 bits', () => {
    expect(parseAer('DLP 18446744073709551615').kinds).toEqual([['DLP', 18446744073709551615n]]);
  });

  it('limits the number of kinds', () => {
    const text = Array.from({ length: 1000 }, (_, index) => `Kind${index} 1`).join('\n');
    expect(parseAer(text).kinds).toHaveLength(64);
  });

  it('keeps severities separate and leaves out absent files', () => {
    const sys = sysOf({
      [`${CARD}/aer_dev_correctable`]: 'RxErr 1\nTOTAL_ERR_COR 1\n',
      [`${CARD}/aer_dev_fatal`]: 'DLP 2\nTOTAL_ERR_FATAL 1\n',
    });
    expect(readAer(sys, '0000:18:00.0')).toEqual({
      errors: [
        { severity: 'correctable', kind: 'RxErr', count: 1n },
        { severity: 'fatal', kind: 'DLP', count: 2n },
      ],
      totals: { correctable: 1n, fatal: 1n },
    });
    expect(readAer(sys, '0000:99:00.0')).toEqual({ errors: [], totals: {} });
  });

  it('take the severity from the name of the file, because a kernel labels the total of the non-fatal errors as fatal', () => {
    const sys = sysOf({
      [`${CARD}/aer_dev_fatal`]: 'Undefined 3\nPoisonTLPBlocked 4\nTOTAL_ERR_FATAL 7\n',
      [`${CARD}/aer_dev_nonfatal`]: 'Undefined 0\nPoisonTLPBlocked 5\nTOTAL_ERR_FATAL 5\n',
    });
    expect(readAer(sys, '0000:18:00.0')).toEqual({
      errors: [
        { severity: 'nonfatal', kind: 'Undefined', count: 0n },
        { severity: 'nonfatal', kind: 'PoisonTLPBlocked', count: 5n },
        { severity: 'fatal', kind: 'Undefined', count: 3n },
        { severity: 'fatal', kind: 'PoisonTLPBlocked', count: 4n },
      ],
      totals: { fatal: 7n, nonfatal: 5n },
    });
  });
});
