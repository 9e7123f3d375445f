import { describe, expect, it } from 'vitest';
import { boardOf } from '../../src/board/board.ts';
import { type Bridge, socketsOf } from '../../src/board/places.ts';
import { pictureHtml } from '../../src/board/places-html.ts';
import type { Device } from '../../src/model/device.ts';
import { snapshot, state } from '../metrics/sample.ts';
import { device } from '../support/snapshots.ts';

const at = (id: string, numaNode: number | undefined, pciPath: string | undefined, more: Partial<Device> = {}): Device =>
  device({
    family: 'card',
    kind: 'gpu',
    id,
    ...more,
    ...(numaNode === undefined ? {} : { numaNode }),
    ...(pciPath === undefined ? {} : { pciPath }),
  });

const SWITCH = 'pci0000:10/0000:10:01.0/0000:11:00.0';
const BELOW = `${SWITCH}/0000:12:02.0/0000:13:00.0`;
const nodeOf = (...devices: readonly Device[]) =>
  boardOf({ ...snapshot, devices: devices.map((one) => state(one)), localities: [], allocations: [] }, { nowMs: snapshot.takenAtMs })
    .devices;
const shapeOf = ({ name, way, devices, bridges }: Bridge): unknown => [name, way, devices.map(({ id }) => id), ...bridges.map(shapeOf)];

const DEVICES = [
  at('a', 0, `${SWITCH}/0000:12:00.0/0000:1a:00.0`),
  at('b', 0, `${SWITCH}/0000:12:01.0/0000:1b:00.0`),
  at('far', 0, `${BELOW}/0000:14:00.0/0000:15:00.0`),
  at('deep', 0, `${BELOW}/0000:14:01.0/0000:16:00.0`),
  at('port', 0, 'pci0000:10/0000:10:02.0/0000:20:00.0'),
  at('part', 0, `${SWITCH}/0000:12:00.0/0000:1a:00.0`, { parent: 'a' }),
  at('alone', 0, 'pci0000:30/0000:30:01.0/0000:31:00.0'),
  at('other', 1, 'pci0000:40/0000:40:01.0/0000:41:00.0'),
  at('usb', undefined, undefined),
];

describe('the picture of the placement', () => {
  it('has bridges where ways meet, with the way between what each joins, and no parts', () => {
    const sockets = socketsOf(nodeOf(...DEVICES));
    expect(sockets.map(({ numaNode }) => numaNode)).toEqual([0, 1, undefined]);
    expect(sockets[0]?.bridges.map(shapeOf)).toEqual([
      ['0000:10', 'PHB', ['port'], ['0000:11:00.0', 'PXB', ['a', 'b'], ['0000:13:00.0', 'PIX', ['deep', 'far']]]],
      ['0000:30', undefined, ['alone']],
    ]);
    expect(sockets[2]).toMatchObject({ bridges: [], loose: [{ id: 'usb' }] });
  });

  it('ends for functions of one slot, and for devices that say one place', () => {
    const slot = 'pci0000:10/0000:10:01.0/0000:11:00';
    const sockets = socketsOf(nodeOf(at('a', 0, `${slot}.0`), at('b', 0, `${slot}.1`), at('c', 0, `${slot}.1`)));
    const shown = JSON.stringify(sockets[0]?.bridges.map(shapeOf));
    for (const id of ['a', 'b', 'c']) expect(shown.split(`"${id}"`).length, id).toBe(2);
  });

  it('names each way that it shows in the words of the commands', () => {
    const { text } = pictureHtml({ devices: nodeOf(...DEVICES), families: [] }, { group: 'placement' });
    expect([...text.matchAll(/<dt>(\w+)<\/dt><dd>([^<]+)/g)].map(([, way, words]) => `${way} ${words}`)).toEqual([
      'PIX through one PCIe switch',
      'PXB through several PCIe switches',
      'PHB through one host bridge',
      'NODE through two host bridges of one NUMA node',
      'SYS through the link between NUMA nodes, the slowest way',
    ]);
    expect(text.match(/class="tile /g)).toHaveLength(DEVICES.length - 1);
  });
});
