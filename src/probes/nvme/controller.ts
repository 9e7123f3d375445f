import type { Host } from '../../host/host.ts';
import { numaNodeOf, pciPathOf } from '../../host/pci/pci.ts';
import { isAsleepState, isSuspended } from '../../host/pci/pcie.ts';
import type { Problem } from '../../model/collection.ts';
import { defined } from '../../model/defined.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { DeviceFiles } from '../kit/device-files.ts';
import { addRows } from '../kit/file-rows.ts';
import { findMonitor, monitorsBelow, readMonitors, type SensorRow } from '../kit/hwmon.ts';
import { asOf, IntervalCache, isDue, type Pace } from '../kit/pace.ts';
import { pcieFindings } from '../kit/pcie/health.ts';
import { PcieReader, pcieReadings } from '../kit/pcie/pcie.ts';
import { ReadingSet } from '../kit/reading-set.ts';
import { recordReadings } from '../kit/record-rows.ts';
import { CredibleLimits } from '../kit/temperature.ts';
import { parseFlag, plainText } from '../kit/text.ts';
import { type ControllerState, overTemperature, STATES, smartFindings, stateFindings, type TemperatureSample } from './conditions.ts';
import type { NvmeOptions } from './declaration.ts';
import type { ControllerPlace } from './discover.ts';
import { COMPOSITE, CONTROLLER_FACTS, LOG_TEMPERATURES, metrics } from './metrics.ts';
import { type SmartLog, smartReadings } from './smart-log.ts';
import type { SmartReader } from './smart-reader.ts';

/** Channel 1 is the composite temperature, and channel N is sensor N - 1. Kernels that give no label number them in the same way. */
const SENSORS: readonly SensorRow[] = [
  {
    kind: 'temp',
    metric: metrics.temperature,
    labels: ({ label, number }) => ({ sensor: label || (number === 1 ? COMPOSITE : `sensor_${number - 1}`) }),
    // 0 K: the drive does not measure it.
    absent: () => -273.15,
    limits: { of: { crit: 'crit' } },
  },
];

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
  return defined({ readings: [...readings, ...limits], temperatures, hasAlarm });
}

/** One read of the SMART log. */
interface Smart {
  readonly log: SmartLog | undefined;
  readonly readings: readonly Reading[];
  readonly temperatures: readonly Reading[];
  readonly findings: readonly Finding[];
  readonly problems: readonly Problem[];
}

/** Facts of a controller that rarely change. */
export interface ControllerFacts {
  readonly model?: string;
  readonly serial?: string;
  readonly firmware?: string;
  /** Number of the controller in its drive. */
  readonly number?: string;
  /** `241:0` */
  readonly deviceNumber?: string;
  readonly numaNode?: number;
  readonly pciVendor?: string;
  readonly pciDevice?: string;
  readonly pciPath?: string;
}

/** What one collection knows of a controller. */
export interface ControllerSample {
  readonly state: ControllerState;
  /** A read of its files hangs, so nothing can be said about it. */
  readonly isHung: boolean;
  readonly readings: readonly Reading[];
  readonly findings: readonly Finding[];
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
  #steady: readonly Reading[] = [];
  readonly #pcie: PcieReader | undefined;
  readonly #temperatures = new IntervalCache<TemperatureSample & { readonly problems: readonly Problem[] }>();
  readonly #log = new IntervalCache<Smart>();

  constructor(host: Host, options: NvmeOptions, smart: SmartReader, place: ControllerPlace) {
    this.#host = host;
    this.#options = options;
    this.#smart = smart;
    this.place = place;
    this.#pcie = place.address === undefined ? undefined : new PcieReader(host.sys, place.address);
  }

  read(pace: Pace): ControllerSample {
    const { id, directory } = this.place;
    const files = new DeviceFiles(this.#host.sys, directory, { device: id });
    const isAsleep = this.#isAsleep(files);
    this.#readFacts(files, pace);
    const own = new ReadingSet();
    const { value: state = 'unknown' } = files.live('state', parseState);
    if (state !== 'unknown') own.add(metrics.state, 1, { state });
    own.add(metrics.asleep, Number(isAsleep));
    const pcie = isAsleep ? undefined : this.#pcie?.read(pace);
    // A command to a controller that is not live waits for the controller, a minute or more.
    const canAnswer = !isAsleep && state === 'live' && pcie?.answers !== false && !files.isHung;
    const temperatures = canAnswer ? this.#readTemperatures(pace) : undefined;
    const smart = canAnswer ? this.#readSmart(pace) : undefined;
    this.problems = [...files.problems, ...(temperatures?.problems ?? []), ...(smart?.problems ?? [])];
    if (files.isHung) this.problems = [{ code: 'drive-hangs', message: `an earlier read of /sys/${directory} still hangs`, device: id }];
    const smartMs = smart && this.#log.readMs(pace);
    const heatMs = temperatures === undefined ? smartMs : this.#temperatures.readMs(pace);
    const isHeatTold = this.#monitor !== undefined && !isAsleep;
    const readings = [
      ...own.list(),
      ...this.#steady,
      ...asOf(smart?.readings ?? [], smartMs),
      // The log has the temperatures, too, which serve where the kernel has no monitor.
      ...asOf(temperatures?.readings ?? smart?.temperatures ?? [], heatMs),
      ...(pcie === undefined ? [] : pcieReadings(pcie)),
    ];
    const findings = [
      ...stateFindings([state]),
      ...asOf(overTemperature(temperatures, smart?.log, isHeatTold), heatMs),
      ...asOf(smart?.findings ?? [], smartMs),
      ...(pcie === undefined ? [] : pcieFindings(pcie)),
    ];
    return { state, isHung: files.isHung, readings, findings };
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
    const steady = new ReadingSet();
    const transport = files.text('transport');
    if (transport !== undefined) steady.add(metrics.info, 1, { transport });
    addRows(steady, files, CONTROLLER_FACTS, 'once');
    const facts = defined({
      // They cannot change while the controller exists, and without them the agent does not know which drive this is.
      model: files.text('model') ?? this.facts.model,
      serial: files.text('serial') ?? this.facts.serial,
      number: files.text('cntlid') ?? this.facts.number,
      firmware: files.text('firmware_rev'),
      deviceNumber: files.text('dev'),
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
    this.#monitor = monitorsBelow(files).find((monitor) => sys.text(files.path(`${monitor}/name`)) === 'nvme');
    this.#steady = steady.list();
    this.facts = facts;
  }

  #readTemperatures(pace: Pace) {
    const monitor = this.#monitor;
    if (monitor === undefined) return undefined;
    return this.#temperatures.of(pace, this.#options['temperature-interval'], () => {
      const files = new DeviceFiles(this.#host.sys, this.place.directory, { device: this.place.id });
      return { ...readTemperatures(files, monitor, this.#limits), problems: files.problems };
    });
  }

  #readSmart(pace: Pace): Smart | undefined {
    if (!this.#smart.isOn) return undefined;
    const { deviceNumber, serial } = this.facts;
    return this.#log.of(pace, this.#options['smart-interval'], () => {
      const result = this.#smart.read(defined({ name: this.place.name, deviceNumber, serial }));
      const { log, problem } = result;
      return {
        log,
        readings: smartReadings(log),
        temperatures: recordReadings(LOG_TEMPERATURES, (field) => log?.[field]),
        findings: smartFindings(result),
        problems: problem === undefined ? [] : [{ ...problem, device: this.place.id }],
      };
    });
  }
}

const parseState = (text: string): ControllerState | undefined => STATES.find((state) => state === plainText(text));
