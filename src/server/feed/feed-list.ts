import { conditionLine } from '../../model/condition-text.ts';
import { type FamilyReading, familyReading } from '../../model/family-reading.ts';
import type { HealthState, Verdict } from '../../model/health.ts';
import { shortened } from '../../model/one-line.ts';
import type { DeviceState, Snapshot } from '../../model/snapshot.ts';
import { deviceNamesByKey, type FeedName, type NamingRules } from './device-names.ts';

/** The three values of the kubelet's health API for DRA devices. */
export type FeedHealth = 'HEALTHY' | 'UNHEALTHY' | 'UNKNOWN';

/** A degraded device stays in service, as for the device plugin. Its message names the condition. */
const HEALTH_OF: Readonly<Record<HealthState, FeedHealth>> = {
  healthy: 'HEALTHY',
  degraded: 'HEALTHY',
  unhealthy: 'UNHEALTHY',
  unknown: 'UNKNOWN',
};

/** The kubelet cuts longer messages. Bytes, so that no client counts more of them. */
const MESSAGE_BYTES = 1_024;

export interface FeedDevice {
  readonly state: DeviceState;
  readonly names: readonly FeedName[];
  readonly health: FeedHealth;
  /** One line; empty when there is nothing to report. */
  readonly message: string;
}

/** All devices at one time. */
export interface FeedList {
  readonly devices: readonly FeedDevice[];
  /** How far each family was read: only then the absence of a device or a fault says something. */
  readonly families: readonly FamilyReading[];
  readonly takenAtMs: number;
  /** Equal for two lists with the same content. */
  readonly signature: string;
}

/** `fault`: why the agent does not work. The state of all devices is then unknown. */
export function feedList(snapshot: Snapshot, rules: NamingRules, fault: string | undefined): FeedList {
  const names = deviceNamesByKey(snapshot, rules);
  const devices = snapshot.devices.map((state): FeedDevice => {
    const verdict =
      fault === undefined ? judged(state.verdict) : ({ health: 'UNKNOWN', message: shortened(fault, MESSAGE_BYTES) } as const);
    return { state, names: names.get(state.key) ?? [], ...verdict };
  });
  const content = devices.map(({ state, ...rest }) => [state.key, state.device.pciAddress, state.device.uuid, rest]);
  const readings = snapshot.families.map(familyReading);
  const families = fault === undefined ? readings : readings.map((one) => ({ ...one, complete: false, problem: 'agent-stuck' }));
  return { devices, families, takenAtMs: snapshot.takenAtMs, signature: JSON.stringify([content, families]) };
}

function judged({ state, conditions }: Verdict): Pick<FeedDevice, 'health' | 'message'> {
  const texts = conditions.filter(({ severity }) => severity !== 'info').map(conditionLine);
  return { health: HEALTH_OF[state], message: shortened(texts.join(' | '), MESSAGE_BYTES) };
}
