import type { Allocation } from '../model/allocation.ts';
import { defined } from '../model/defined.ts';
import type { Device } from '../model/device.ts';
import type { ExpectedDevices } from '../model/expected.ts';
import { HEALTH_STATES, type HealthState, type Remedy, type Severity, type Verdict } from '../model/health.ts';
import type { ReadingView } from '../server/api/names.ts';

/** One condition in the format of the API. */
export interface ApiCondition {
  readonly type: string;
  readonly instance?: string;
  readonly severity: Severity;
  readonly reason: string;
  readonly message: string;
  readonly remedy: Remedy;
  readonly unverifiedSince?: string;
  readonly recovering?: { readonly since: string; readonly until: string };
}

export interface ApiPending extends ApiCondition {
  readonly countsAt: string;
}

type Holder = Partial<Pick<Allocation, 'namespace' | 'pod' | 'container' | 'resource' | 'deviceId' | 'claim'>>;

/** One device in the format of the API. */
export interface ApiDevice extends Device {
  readonly holders?: readonly Holder[];
  readonly readings?: Readonly<Record<string, ReadingView>>;
  readonly missingSince?: string;
  readonly stale?: boolean;
  readonly health: {
    readonly state: HealthState;
    readonly since?: string;
    readonly conditions: readonly ApiCondition[];
    readonly pending?: readonly ApiPending[];
    readonly unchecked?: readonly string[];
    readonly probation?: {
      readonly condition?: string;
      readonly since: string;
      readonly busySeconds?: number;
      readonly neededSeconds: number;
    };
  };
}

/** Returns the devices of an API answer; undefined when another program answered. */
export function devicesIn(body: unknown): readonly ApiDevice[] | undefined {
  const devices = (body as { readonly devices?: unknown } | undefined | null)?.devices;
  return Array.isArray(devices) && devices.every(isApiDevice) ? devices : undefined;
}

export function probationIn(given: NonNullable<ApiDevice['health']['probation']>): NonNullable<Verdict['probation']> {
  const { since, busySeconds, neededSeconds, condition } = given;
  const busyMs = busySeconds === undefined ? undefined : busySeconds * 1_000;
  return defined({ condition, sinceMs: Date.parse(since), busyMs, neededMs: neededSeconds * 1_000 });
}

/** Returns the expected devices of an API answer; undefined when the answer has none. */
export function expectedIn(body: unknown): readonly ExpectedDevices[] | undefined {
  const expected = (body as { readonly expected?: unknown } | undefined | null)?.expected;
  return Array.isArray(expected) && expected.every(isExpected) ? expected : undefined;
}

function isExpected(value: unknown): value is ExpectedDevices {
  const { family, expected, present } = (value ?? {}) as Partial<ExpectedDevices>;
  return typeof family === 'string' && typeof expected === 'number' && ['number', 'undefined'].includes(typeof present);
}

function isApiDevice(value: unknown): value is ApiDevice {
  const { family, id, aliases, health } = (value ?? {}) as Partial<ApiDevice>;
  return (
    typeof family === 'string' &&
    typeof id === 'string' &&
    Array.isArray(aliases) &&
    HEALTH_STATES.includes(health?.state as HealthState) &&
    Array.isArray(health?.conditions)
  );
}
