import { addValues, restoredValue, savedValue, subtractValues } from '../model/metric.ts';

type Plain = Readonly<Record<string, unknown>>;

/**
 * Accounts as versions 2 and 3 of the file have them: running ones in milliseconds, and counters as `[metric, carried, [base, last], labels]`.
 * The result has the present form where the file was right, and the caller checks it. Undefined when it was not.
 */
export function accountsOfVersion3({ devices, active, ended, endedDevices = {} }: Readonly<Record<string, object>>): unknown {
  try {
    return {
      devices: entriesOf(devices, deviceOf),
      active: entriesOf(active, containerOf),
      ended: entriesOf(ended, ({ usage, ...times }) => ({ ...times, usage: endedOf(usage as Plain) })),
      endedDevices: { ...endedDevices },
    };
  } catch {
    return undefined;
  }
}

const entriesOf = (accounts: object = {}, read: (account: Plain) => unknown): object =>
  Object.fromEntries(Object.entries(accounts).map(([name, account]) => [name, read(Object(account))]));

function deviceOf({
  key,
  beganAs = key,
  startedAtMs,
  allocatedMs,
  unallocatedMs,
  unhealthyMs,
  unobservedMs,
  facts = {},
  ...kept
}: Plain): unknown {
  const seconds = inSeconds({ allocatedMs, unallocatedMs, unhealthyMs, unobservedMs });
  return { ...kept, facts, usage: { device: key, ...(beganAs === key ? {} : { beganAs }), sinceMs: startedAtMs, ...seconds } };
}

function containerOf(account: Plain): unknown {
  const { name, ids, ageMs, seenAgoMs, run, isShown, startedAtMs, device, beganAs = device, counters, busyMs, ...rest } = account;
  const { allocatedMs, shareMs, idleMs, unobservedMs, ...kept } = rest;
  const usage = {
    ...kept,
    ...{ device, sinceMs: startedAtMs, ...(beganAs === device ? {} : { beganAs }), ...(isShown === true ? {} : { isNew: true }) },
    ...inSeconds({ allocatedMs, shareMs, idleMs, unobservedMs }),
    busySeconds: inSeconds(busyMs),
    counters: (counters as readonly OldCounter[]).map(counterOf),
  };
  return { ...(run === undefined ? {} : { run }), name, ids, ageMs, seenAgoMs, pendingMs: 0, usage };
}

const endedOf = ({ counters, ...usage }: Plain): unknown =>
  counters === undefined
    ? usage
    : { ...usage, counters: (counters as readonly OldReading[]).map(([metric, value, labels]) => named(metric, value, labels)) };

/** Members of milliseconds as members of seconds. The name of an engine stays. */
const inSeconds = (amounts: unknown): object =>
  Object.fromEntries(Object.entries(Object(amounts)).map(([name, ms]) => [name.replace(/Ms$/, 'Seconds'), (ms as number) / 1_000]));

type OldReading = readonly [metric: string, value: unknown, labels?: object];
type OldCounter = readonly [metric: string, carried: unknown, since: readonly [base: unknown, last: unknown] | null, labels?: object];

const named = (metric: string, value: unknown, labels?: object): object => ({ metric, value, ...(labels && { labels }) });

function counterOf([metric, carried, since, labels]: OldCounter): object {
  const [grown, base, last] = [restoredValue(carried), restoredValue(since?.[0]), restoredValue(since?.[1])];
  if (grown === undefined || base === undefined || last === undefined) return named(metric, carried, labels);
  return { ...named(metric, savedValue(addValues(grown, subtractValues(last, base))), labels), last: savedValue(last) };
}
