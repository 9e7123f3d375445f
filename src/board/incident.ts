import { conditionName } from '../model/condition-text.ts';
import { seconds } from '../model/duration.ts';
import { HardwareKeys, hardwareKey } from '../model/hardware.ts';
import { ONE_FAULT_MS } from '../model/health.ts';
import type { DeviceState, Snapshot } from '../model/snapshot.ts';

/** An incident as the list of incidents has it. */
export interface IncidentSummary {
  readonly id: string;
  readonly time: string;
  /** When its fault began; absent when the verdict changed at once. */
  readonly began?: string;
  /** Key of the device, `family/id`. */
  readonly device: string;
  readonly hardware?: string;
  readonly conditions: readonly string[];
  /** `namespace/pod/container` of those that it hit. */
  readonly holders: readonly string[];
}

/** The recorder adds to a record what begins within this time. */
const JOINED_MS = seconds(10);

/** Finds the records of the faults that devices have now. */
export class FaultRecords {
  /** The newest first. */
  readonly #byHardware = new Map<string, IncidentSummary[]>();
  readonly #keys: HardwareKeys;

  /** `incidents`: the newest first. */
  constructor(incidents: readonly IncidentSummary[], { devices }: Pick<Snapshot, 'devices'>) {
    this.#keys = new HardwareKeys(devices.map(({ device }) => device));
    for (const one of incidents) {
      const key = one.hardware ?? one.device;
      const known = this.#byHardware.get(key);
      if (known === undefined) this.#byHardware.set(key, [one]);
      else known.push(one);
    }
  }

  /** The first record of the fault that leads the verdict, and those of the same fault of its parts. A later record can be of another fault. */
  of(state: DeviceState, parts: readonly DeviceState[]): readonly IncidentSummary[] {
    const { verdict } = state;
    if (verdict.state === 'healthy') return NONE;
    const counting = verdict.conditions.filter(({ severity }) => severity !== 'info');
    const [lead, ...others] = counting.map(conditionName);
    const { sinceMs } = counting[0] ?? verdict;
    const isOfFault = ({ time, conditions }: IncidentSummary): boolean => {
      const afterMs = Date.parse(time) - sinceMs;
      if (lead === undefined) return Math.abs(afterMs) <= JOINED_MS;
      if (conditions.includes(lead)) return afterMs >= -JOINED_MS;
      return Math.abs(afterMs) <= ONE_FAULT_MS && others.some((name) => conditions.includes(name));
    };
    return [state, ...parts].flatMap((one) => this.#all(one).findLast(isOfFault) ?? []);
  }

  #all({ key, device }: DeviceState): readonly IncidentSummary[] {
    const hardware = hardwareKey(device);
    const found = this.#byHardware.get(hardware) ?? NONE;
    // Two devices can report the same identity. Then the key of the device says whose record it is.
    if (this.#keys.isShared(device)) return found.filter((one) => one.device === key);
    return found.length > 0 ? found : (this.#byHardware.get(key) ?? NONE);
  }
}

const NONE: readonly IncidentSummary[] = [];

/** `namespace/pod` of each, once. */
export const podNames = (holders: readonly string[]): readonly string[] => [
  ...new Set(holders.map((holder) => holder.split('/').slice(0, 2).join('/'))),
];
