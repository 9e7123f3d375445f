import { deviceKey } from '../../model/device.ts';
import type { HealthEvent } from '../../model/events.ts';
import { acceptedEvent, type EventContext } from '../journal/event-text.ts';
import type { ConditionState, DeviceMemory, HealthMemory } from './memory.ts';
import { effectiveSeverity } from './verdict.ts';

/** What a person said about a device. */
export interface Acceptance {
  /** Key of the device. */
  readonly device: string;
  /** Keys of its conditions. */
  readonly keys: readonly string[];
  readonly why: string;
}

const isCalled = (memory: DeviceMemory, device: string): boolean => memory.isDisplaced !== true && deviceKey(memory.device) === device;

/** Keys of the conditions of a device that no reading confirms now. `condition`: only this one, or all instances of this type. */
export function unverifiedOf({ devices }: HealthMemory, device: string, condition: string | undefined): readonly string[] {
  const memory = Object.values(devices).find((one) => isCalled(one, device));
  return Object.entries(memory?.conditions ?? {}).flatMap(([key, { type, unverifiedSinceMs }]) =>
    unverifiedSinceMs !== undefined && (condition === undefined || condition === key || condition === type) ? [key] : [],
  );
}

/** Drops accepted conditions, and adds their events. A fatal one is unchecked from then on, because no reading denied it. */
export function withAccepted(
  memory: HealthMemory,
  accepted: readonly Acceptance[],
  contextOf: (memory: DeviceMemory) => EventContext,
  events: Omit<HealthEvent, 'id'>[],
): HealthMemory {
  if (accepted.length === 0) return memory;
  const devices = Object.entries(memory.devices).map(([key, one]): [string, DeviceMemory] => {
    const said = accepted.filter(({ device }) => isCalled(one, device));
    return [key, said.reduce((before, acceptance) => without(before, acceptance, contextOf(before), events), one)];
  });
  return { ...memory, devices: Object.fromEntries(devices) };
}

function without(memory: DeviceMemory, { keys, why }: Acceptance, context: EventContext, events: Omit<HealthEvent, 'id'>[]): DeviceMemory {
  const ended = keys.filter((key) => memory.conditions[key] !== undefined);
  const stateOf = (key: string): ConditionState => memory.conditions[key] as ConditionState;
  for (const key of ended) events.push(acceptedEvent(context, stateOf(key), why));
  const fatal = ended.filter((key) => effectiveSeverity(stateOf(key), context.policyOf(stateOf(key))) === 'fatal');
  const conditions = Object.fromEntries(Object.entries(memory.conditions).filter(([key]) => !ended.includes(key)));
  const unchecked = [...new Set([...(memory.unchecked ?? []), ...fatal])].sort();
  return {
    ...memory,
    conditions,
    ...(unchecked.length === 0 ? {} : { unchecked }),
  };
}
