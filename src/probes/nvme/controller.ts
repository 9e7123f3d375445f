import type { Host } from '../../host/host.ts';
import { numaNodeOf, pciPathOf } from '../../host/pci/pci.ts';
import { isAsleepState, isSuspended } from '../../host/pci/pcie.ts';
import type { Problem } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import { DeviceFiles } from '../kit/device-files.ts';
import { findMonitor, type MonitorSample, monitorsBelow, readMonitors, type SensorRow } from '../kit/hwmon.ts';
import { isDue, Kept, type Pace } from '../kit/pace.ts';
import { PcieReader, type PcieSample } from '../kit/pcie/pcie.ts';
import { CredibleLimits } from '../kit/temperature.ts';
import { parseCount, parseFlag, plainText } from '../kit/text.ts';
import type { NvmeOptions } from './declaration.ts';
import type { ControllerPlace } from './discover.ts';
import { metrics } from './metrics.ts';
import type { SmartReader, SmartResult } from './smart-reader.ts';

/** Temperatures of one drive by the kernel's monitor. */
interface TemperatureSample extends MonitorSample {
  /** Bit of the drive's own critical warning; absent when it was not read. */
  readonly hasAlarm?: boolean;
}

/** 0 K: the drive does not measure it. */
const ABSOLUTE_ZERO = -273.15;
export const COMPOSITE = 'composite';

/** Channel 1 is the composite temperature, and channel N is sensor N - 1. Kernels that give no label number them in the same way. */
const SENSORS: readonly SensorRow[] = [
  {
    kind: 'temp',
    metric: metrics.temperature,
    labels: ({ label, number }) => ({ sensor: label || (number === 1 ? COMPOSITE : `sensor_${number - 1}`) }),
    absent: () => ABSOLUTE_ZERO,
    limits: { of: { crit: 'crit' } },
  },
];

/** Directory of the drive's monitor, below the directory of its controller; undefined when the kernel has none. */
const monitorOf = (files: DeviceFiles): string | undefined =>
  monitorsBelow(files).find((directory) => files.sys.text(files.path(`${directory}/name`)) === 'nvme');

/**
 * Reads the monitor: one SMART command of the kernel, which serves all its files for a second. `temp<N>_max` and `temp<N>_min` are never
 * opened, because each sends a Get Features command. `limits`: those of the drive.
 */
function readTemperatures(files: DeviceFiles, monitor: string, credible: CredibleLimits): TemperatureSample {
  const { readings, temperatures } = readMonitors(files, credible, findMonitor(files, monitor, SENSORS), 'once');
  // The drive has one warning for all its sensors.
  const hasAlarm = files.value(`${monitor}/temp1_alarm`, parseFlag);
  const limits = temperatures.flatMap(({ sensor, celsius, critical }) =>
    celsius === undefined ? [] : [{ metric: metrics.temperatureLimit.name, labels: { sensor, limit: 'crit' }, value: critical }],
  );
  return { readings: [...readings, ...limits], temperatures, ...(hasAlarm !== undefined && { hasAlarm }) };
}

/** Linux drivers/nvme/host/sysfs.c, `state`. */
const STATES = ['new', 'live', 'resetting', 'connecting', 'deleting', 'deleting (no IO)', 'dead'] as const;
export type ControllerState = (typeof STATES)[number];

/** Facts of a controller that rarely change. */
export interface ControllerFacts {
  readonly model?: string;
  readonly serial?: string;
  readonly firmware?: string;
  readonly transport?: string;
  /** Number of the controller in its drive. */
  readonly number?: string;
  /** `241:0` */
  readonly deviceNumber?: string;
  readonly queues?: number;
  readonly numaNode?: number;
  readonly pciVendor?: string;
  readonly pciDevice?: string;
  readonly pciPath?: string;
}

/** All that one collection knows of a controller. */
export interface ControllerSample {
  /** A read of its files hangs, so nothing can be said about it. */
  readonly isHung: boolean;
  /** The PCI function sleeps: nothing that would wake it was read. */
  readonly isAsleep: boolean;
  /** Absent when it could not be read. */
  readonly state?: ControllerState;
  /** Absent when they were not read: no monitor, a sleeping drive, a controller that is not live. */
  readonly temperatures?: TemperatureSample;
  /** Monotonic clock of their read, when an earlier collection made it. */
  readonly temperaturesMs?: number;
  /** The monitor exists, and its values are not known. */
  readonly areTemperaturesUnknown: boolean;
  /** Absent when the options ask for no log, or the drive cannot be asked now. */
  readonly smart?: SmartResult;
  /** Monotonic clock of the read of the log, when an earlier collection made it. */
  readonly smartMs?: number;
  readonly pcie?: PcieSample;
}

/** Reads one controller. */
export class Controller {
  readonly place: ControllerPlace;
  facts: ControllerFacts = {};
  /** Problems of the last read. */
  problems: readonly Problem[] = [];
  readonly #host: Host;
  readonly #options: NvmeOptions;
  readonly #smart: SmartReader;
  readonly #limits = new CredibleLimits();
  #monitor: string | undefined;
  #factsAtMs: number | undefined;
  readonly #pcie: PcieReader | undefined;
  readonly #temperatures = new Kept<{ readonly sample: TemperatureSample; readonly problems: readonly Problem[] }>();
  readonly #log = new Kept<SmartResult>();

  constructor(host: Host, options: NvmeOptions, smart: SmartReader, place: ControllerPlace) {
    this.#host = host;
    this.#options = options;
    this.#smart = smart;
    this.place = place;
    this.#pcie = place.address === undefined ? undefined : new PcieReader(host.sys, place.address);
  }

  read(pace: Pace): ControllerSample {
    const files = new DeviceFiles(this.#host.sys, this.place.directory, { device: this.place.id });
    const isAsleep = this.#isAsleep(files);
    this.#readFacts(files, pace);
    const state = files.live('state', parseState).value;
    const pcie = isAsleep ? undefined : this.#pcie?.read(pace);
    // A command to a controller that is not live waits for the controller, a minute or more.
    const canAnswer = !isAsleep && state === 'live' && pcie?.answers !== false && !files.isHung;
    const temperatures = canAnswer ? this.#readTemperatures(pace) : undefined;
    const smart = canAnswer ? this.#readSmart(pace) : undefined;
    const { id } = this.place;
    this.problems = [
      ...files.problems,
      ...(temperatures?.problems ?? []),
      ...(smart?.problem === undefined ? [] : [{ ...smart.problem, device: id }]),
    ];
    if (files.isHung)
      this.problems = [{ code: 'drive-hangs', message: `an earlier read of /sys/${this.place.directory} still hangs`, device: id }];
    return defined({
      isHung: files.isHung,
      isAsleep,
      areTemperaturesUnknown: this.#monitor !== undefined && !isAsleep,
      state,
      ...(temperatures !== undefined && { temperatures: temperatures.sample, temperaturesMs: this.#temperatures.readMs(pace) }),
      ...(smart !== undefined && { smart, smartMs: this.#log.readMs(pace) }),
      pcie,
    });
  }

  close(): void {
    this.#host.sys.forget(this.place.directory);
  }

  /** Neither file wakes the drive. A drive on its way to sleep or back is not touched either. */
  #isAsleep(files: DeviceFiles): boolean {
    if (isSuspended(files.live('device/power/runtime_status', plainText).value)) return true;
    return this.place.address !== undefined && isAsleepState(files.live('device/power_state', plainText).value);
  }

  /** All of these files tell what the kernel has in memory. */
  #readFacts(files: DeviceFiles, pace: Pace): void {
    if (!isDue(this.#factsAtMs, this.#options['facts-interval'], pace)) return;
    const { sys } = this.#host;
    const { address } = this.place;
    const queues = files.value('queue_count', parseCount);
    const facts = defined({
      // They cannot change while the controller exists, and without them the agent does not know which drive this is.
      model: files.text('model') ?? this.facts.model,
      serial: files.text('serial') ?? this.facts.serial,
      number: files.text('cntlid') ?? this.facts.number,
      firmware: files.text('firmware_rev'),
      transport: files.text('transport'),
      deviceNumber: files.text('dev'),
      queues: queues === undefined ? undefined : Number(queues),
      ...(address !== undefined && {
        numaNode: numaNodeOf(sys, address),
        pciVendor: files.text('device/vendor')?.toLowerCase(),
        pciDevice: files.text('device/device')?.toLowerCase(),
        pciPath: pciPathOf(sys, address),
      }),
    });
    // The facts of an earlier read are better than a part of them.
    if (files.isHung) return;
    this.#factsAtMs = pace.nowMs;
    this.#monitor = monitorOf(files);
    this.facts = facts;
  }

  #readTemperatures(pace: Pace) {
    const monitor = this.#monitor;
    if (monitor === undefined) return undefined;
    return this.#temperatures.of(pace, this.#options['temperature-interval'], () => {
      const files = new DeviceFiles(this.#host.sys, this.place.directory, { device: this.place.id });
      return { sample: readTemperatures(files, monitor, this.#limits), problems: files.problems };
    });
  }

  #readSmart(pace: Pace): SmartResult | undefined {
    if (!this.#smart.isOn) return undefined;
    const { deviceNumber, serial } = this.facts;
    const drive = { name: this.place.name, ...(deviceNumber !== undefined && { deviceNumber }), ...(serial !== undefined && { serial }) };
    return this.#log.of(pace, this.#options['smart-interval'], () => this.#smart.read(drive));
  }
}

function parseState(text: string): ControllerState | undefined {
  const word = plainText(text);
  return STATES.find((state) => state === word);
}
