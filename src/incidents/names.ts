import type { HealthEvent } from '../model/events.ts';

/** What happened to the names of devices in one judgement. */
export interface NameChanges {
  /** Present keys, keyed by earlier keys. Two devices may have swapped their names. */
  readonly renamed: ReadonlyMap<string, string>;
  /** Keys that now belong to other hardware. */
  readonly replaced: readonly string[];
}

export function nameChanges(events: readonly HealthEvent[]): NameChanges {
  return {
    renamed: new Map(events.flatMap(({ was, device }): [string, string][] => (was === undefined ? [] : [[was, device]]))),
    replaced: events.flatMap(({ transition, device }) => (transition === 'replaced' ? [device] : [])),
  };
}

/** Events of the hardware that has the key, also those under its earlier names. `events`: oldest first. */
export function eventsOfHardware(events: readonly HealthEvent[], key: string): readonly HealthEvent[] {
  const found: HealthEvent[] = [];
  let name = key;
  // In the judgement that renamed the hardware, the earlier name can already be that of other hardware.
  let renamedAtMs: number | undefined;
  for (const event of events.toReversed()) {
    if (event.device !== name || event.timeMs === renamedAtMs) continue;
    found.unshift(event);
    if (event.transition === 'replaced') break;
    if (event.was === undefined) continue;
    name = event.was;
    renamedAtMs = event.timeMs;
  }
  return found;
}

/** Makes what is remembered by name follow the devices. What belongs to replaced hardware is dropped. */
export function follow<T>(remembered: Map<string, T>, { renamed, replaced }: NameChanges): void {
  for (const key of replaced) if (!renamed.has(key)) remembered.delete(key);
  const moving = [...renamed].flatMap(([was, now]): [string, T][] => {
    const value = remembered.get(was);
    return value === undefined ? [] : [[now, value]];
  });
  for (const was of renamed.keys()) remembered.delete(was);
  for (const [now, value] of moving) remembered.set(now, value);
}
