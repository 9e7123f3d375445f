import { basename, dirname } from 'node:path';
import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import { isPciAddress } from '../../host/pci/pci.ts';
import type { Problem } from '../../model/collection.ts';
import { type Millis, millis } from '../../model/duration.ts';
import { DeviceFiles, type DriverErrors } from '../kit/device-files.ts';
import type { ProbeMemory } from './memory.ts';
import { byNumbers } from './name-order.ts';
import type { FpgaOptions } from './options.ts';

/** A class device and its PCI function. `address` is absent for boards that are not on PCI. */
export interface Placed {
  /** `hwmon3`, `fpga0`, `br0`. The numbers follow the probe order. */
  readonly name: string;
  /** Path below `bus/pci/devices/<address>`, so that a hanging read counts for the board; otherwise a path in the class directory. */
  readonly path: string;
  readonly address?: string;
  /** Device that registered the class device: `firmware:zynqmp-firmware:pcap`, `dfl-fme-mgr.0`. */
  readonly owner?: string;
}

/** Input and shared state of one collection. */
export interface Survey {
  readonly host: Host;
  readonly options: FpgaOptions;
  readonly memory: ProbeMemory;
  readonly problems: Problem[];
  readonly monitors: readonly Placed[];
  readonly managers: readonly Placed[];
  readonly bridges: readonly Placed[];
  readonly uploads: readonly Placed[];
}

export function makeSurvey(host: Host, options: FpgaOptions, memory: ProbeMemory): Survey {
  const { sys } = host;
  return {
    host,
    options,
    memory,
    problems: [],
    monitors: placedIn(sys, 'class/hwmon'),
    managers: placedIn(sys, 'class/fpga_manager'),
    bridges: placedIn(sys, 'class/fpga_bridge'),
    uploads: placedIn(sys, 'class/firmware'),
  };
}

/** What the drivers mean by an error. XRT refuses `kdsstat` without an image: src/runtime_src/core/pcie/driver/linux/xocl/userpf/xocl_sysfs.c. */
export const FPGA_ERRORS: DriverErrors = { EINVAL: 'absent' };

/** Files of a board or a port in one directory. Their problems go to the survey. */
export function filesOf({ host, problems }: Survey, directory: string, device: string): DeviceFiles {
  return new DeviceFiles(host.sys, directory, { device, problems, errors: FPGA_ERRORS });
}

interface Outcome<T> {
  readonly value: T;
  readonly problems: readonly Problem[];
}

/**
 * Limits expensive reads. While the last result is younger than `maxAgeMs`, it returns that result and reports its problems again.
 * A result that is undefined or has problems is read again at the next sweep of the sensors.
 */
export function atMostEvery<T>(survey: Survey, key: string, maxAgeMs: Millis, read: (survey: Survey) => T): T {
  const keptFor = ({ value, problems }: Outcome<T>): Millis => {
    const isComplete = value !== undefined && problems.length === 0;
    return isComplete ? maxAgeMs : millis(Math.min(maxAgeMs, survey.options['sensor-interval']));
  };
  const { value, problems } = survey.memory.atMostEvery(key, keptFor, () => {
    const found: Problem[] = [];
    return { value: read({ ...survey, problems: found }), problems: found };
  });
  survey.problems.push(...problems);
  return value;
}

/** Returns all entries of a class directory in the order of their numbers. A plain file among them has no PCI function. */
export function placedIn(sys: Tree, directory: string): readonly Placed[] {
  return [...sys.list(directory)].sort(byNumbers).flatMap((name) => {
    const placed = place(sys, `${directory}/${name}`);
    return placed === undefined ? [] : [placed];
  });
}

/** Finds the PCI function of a class device: the last address in its real path. */
export function place(sys: Tree, path: string): Placed | undefined {
  const real = sys.realpath(path);
  if (real === undefined) return undefined;
  const parts = real.split('/');
  const at = parts.findLastIndex(isPciAddress);
  const owner = basename(dirname(dirname(real)));
  const common = { name: basename(path), ...(owner !== '' && owner !== '.' && { owner }) };
  if (at < 0) return { ...common, path };
  const address = parts[at] as string;
  return { ...common, address, path: ['bus/pci/devices', address, ...parts.slice(at + 1)].join('/') };
}
