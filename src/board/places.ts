import { defined } from '../model/defined.ts';
import { grouped } from '../model/grouped.ts';
import { type PciePath, pciePathBetween } from '../model/locality.ts';
import { type DeviceView, parentKey } from './device-view.ts';
import { byPlace, compareNames } from './order.ts';

/** A host bridge or a bridge below it where ways meet, with the devices and bridges that it joins. */
export interface Bridge {
  /** Its PCI address: `0000:0f`, or `0000:10:00.0`. */
  readonly name: string;
  /** The way between what it joins directly; absent where that is one device. */
  readonly way: PciePath | undefined;
  readonly devices: readonly DeviceView[];
  readonly bridges: readonly Bridge[];
}

/** A NUMA node, mostly a socket of the machine. */
export interface Socket {
  /** Absent for devices whose node is not known. */
  readonly numaNode?: number;
  /** Its host bridges. */
  readonly bridges: readonly Bridge[];
  /** Devices whose way to the processor is not known. */
  readonly loose: readonly DeviceView[];
}

/** Where the devices of a node are, without their parts. A bridge that joins nothing is left out: no way ends or turns there. Pure. */
export function socketsOf(devices: readonly DeviceView[]): readonly Socket[] {
  const known = new Set(devices.map(({ key }) => key));
  const wholes = devices.filter((one) => parentKey(one) === undefined || parentKey(one) === one.key || !known.has(parentKey(one) ?? ''));
  const nodes = grouped(wholes.toSorted(byPlace), ({ numaNode }) => numaNode);
  return [...nodes]
    .sort(([a = 1e9], [b = 1e9]) => a - b)
    .map(([numaNode, list]): Socket => {
      const placed = list.filter(({ pciPath }) => pciPath !== undefined);
      const roots = grouped(placed, (one) => pathOf(one)[0]);
      return {
        ...defined({ numaNode }),
        bridges: [...roots].sort(([a = ''], [b = '']) => compareNames(a, b)).map(([, below]) => bridgeOf(below, 1)),
        loose: list.filter(({ pciPath }) => pciPath === undefined),
      };
    });
}

const pathOf = ({ pciPath }: DeviceView): readonly string[] => pciPath?.split('/') ?? [];

/** All devices are below the first `depth` elements of their paths. */
function bridgeOf(devices: readonly DeviceView[], depth: number): Bridge {
  const [first] = devices as readonly [DeviceView];
  const groups = grouped(devices, (one) => pathOf(one)[depth]);
  const below = [...groups]
    .filter(([name, list]) => name !== undefined && list.length > 1)
    .map(([, list]) => bridgeOf(list, meeting(list)));
  const inner = new Set(below.flatMap(devicesIn));
  const own = devices.filter((one) => !inner.has(one));
  const lengths = devices.map((one) => pathOf(one).length);
  const longest = devices[lengths.indexOf(Math.max(...lengths))] ?? first;
  const other = devices.find((one) => one !== longest && (pathOf(one)[depth] !== pathOf(longest)[depth] || pathOf(one).length <= depth));
  return {
    name: (pathOf(first)[depth - 1] ?? '').replace(/^pci/, ''),
    way: other && pciePathBetween({ pciPath: pathOf(longest) }, { pciPath: pathOf(other) }),
    devices: own,
    bridges: below,
  };
}

/** All devices of a bridge and of those below it. */
export const devicesIn = ({ devices, bridges }: Bridge): readonly DeviceView[] => [...devices, ...bridges.flatMap(devicesIn)];

/** How many elements the paths have in common. */
function meeting(devices: readonly DeviceView[]): number {
  const [first = [], ...others] = devices.map(pathOf);
  const differs = first.findIndex((name, at) => others.some((path) => path[at] !== name));
  return differs < 0 ? first.length : differs;
}
