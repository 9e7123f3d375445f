import { describe, expect, it } from 'vitest';
import { pciAddressIn } from '../../../src/host/pci/pci.ts';
import { surplusFaults } from '../../../src/probes/nvidia/smi/source.ts';

const HANDLE = 'Unable to determine the device handle for';

/** Lines that were seen in public, with the drivers that print them. */
const LINES: readonly (readonly [line: string, fault: 'lost' | 'closed' | 'inforom', place: object])[] = [
  [`${HANDLE} GPU 0000:CB:00.0: GPU is lost.  Reboot the system to recover this GPU`, 'lost', { pciAddress: '0000:cb:00.0' }],
  [`${HANDLE} GPU0000:5F:00.0: Unknown Error`, 'lost', { pciAddress: '0000:5f:00.0' }],
  [`${HANDLE} GPU0: 0000:34:00.0: Unknown Error`, 'lost', { pciAddress: '0000:34:00.0' }],
  [`${HANDLE} GPU0: 00000008:01:00.0: Unknown Error`, 'lost', { pciAddress: '0008:01:00.0' }],
  [`${HANDLE} GPU3: Unknown Error`, 'lost', { index: 3 }],
  [`${HANDLE} gpu 0000:02:00.0: GPU requires reset`, 'lost', { pciAddress: '0000:02:00.0' }],
  [`${HANDLE} GPU 0000:34:00.0: Insufficient Permissions`, 'closed', { pciAddress: '0000:34:00.0' }],
  ['WARNING: infoROM is corrupted at gpu 0000:0B:00.0', 'inforom', { pciAddress: '0000:0b:00.0' }],
];

const placesOf = (text: string): readonly object[] =>
  surplusFaults(text).map(({ fault, pciAddress, index }) => ({ fault, pciAddress, index }));
const expected = (fault: string, place: object): readonly object[] => [{ fault, pciAddress: undefined, index: undefined, ...place }];

describe.each(LINES)('%s', (line, fault, place) => {
  it('names its GPU among other lines', () => {
    expect(surplusFaults(`aside\n  ${line}  \n`)).toMatchObject([{ fault, line, ...place }]);
  });

  it('names it in other cases, and without blanks', () => {
    expect(placesOf(line.toLowerCase())).toEqual(expected(fault, place));
    expect(placesOf(line.toUpperCase())).toEqual(expected(fault, place));
    expect(placesOf(line.replaceAll(' ', ''))).toEqual(expected(fault, place));
  });

  it.each(['=', ': ', ':', '#', ' at PCI:', ', '])('names it behind "%s"', (separator) => {
    expect(placesOf(line.replace(/(?<=gpu) ?(?=\d{4})/i, separator))).toEqual(expected(fault, place));
  });

  it('names no other GPU wherever the line is cut', () => {
    for (let length = 1; length < line.length; length += 1) {
      for (const { pciAddress, index } of surplusFaults(line.slice(0, length))) {
        if (pciAddress !== undefined) expect({ pciAddress }).toEqual(place);
        else if (index !== undefined && 'index' in place) expect({ index }).toEqual(place);
      }
    }
  });
});

describe('the lines around the document', () => {
  it('tell a GPU that nobody can name, when the line is cut before its address', () => {
    expect(placesOf(`${HANDLE} GPU0000:5F:0`)).toEqual(expected('lost', {}));
    expect(placesOf('Unable to determine the device handle')).toEqual(expected('lost', {}));
  });

  it('are no faults when they say something else', () => {
    expect(surplusFaults('WARNING: gpu 0000:0B:00.0 is fine\nGPU3: fine\n\n')).toEqual([]);
    expect(surplusFaults('WARNING: infoROM is corrupted')).toEqual([]);
  });
});

describe('a PCI address in a text', () => {
  it.each([
    ['GPU0000:5F:00.0:', '0000:5f:00.0'],
    ['PCI:0000:3b:00: 79', '0000:3b:00.0'],
    ['GPU3:0000:5F:00.0', '0000:5f:00.0'],
    ['gpu 00000000:0B:00.0', '0000:0b:00.0'],
    ['10000:01:00.0', '10000:01:00.0'],
    ['GPU0000:5F:0', undefined],
    ['GPU0000:5F', undefined],
    ['5F:00.0', undefined],
    ['GPU-00000001-0000-4000-8000-000000000001', undefined],
    ['at 2026-11-26 18:05:00.1', undefined],
  ])('%s', (text, address) => {
    expect(pciAddressIn(text)).toBe(address);
  });
});
