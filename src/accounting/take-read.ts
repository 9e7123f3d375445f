import type { DeviceProcess } from '../model/collection.ts';
import type { Reading } from '../model/metric.ts';
import { shared } from '../model/shared-metrics.ts';
import { type ContainerAccount, observe } from './container-account.ts';
import type { DeviceAccount } from './device-account.ts';
import { type FamilyActivity, loadOf, sumOf, workOfDevice, workOfSharer } from './device-work.ts';
import type { OwnReadings } from './own-readings.ts';
import type { UsageInput, UsedDevice } from './used-device.ts';

/** One container that holds a device, with its share. */
export interface HeldPart {
  readonly account: ContainerAccount;
  readonly share: number;
}

/** Who holds a device. */
export interface Held {
  readonly parts: readonly HeldPart[];
  /** Several containers hold it, one that the kubelet's answer lacks may hold it still, or a process of another pod uses it. */
  readonly isShared: boolean;
}

interface Read {
  readonly device: UsedDevice;
  readonly held: Held;
  /** It was shared before. */
  readonly wasShared: boolean;
  readonly own: OwnReadings;
}

interface Rules {
  readonly staleAfterMs: number;
  readonly activity: ReadonlyMap<string, FamilyActivity>;
}

/** Gives each holder what a new read of the device shows. Does nothing without a new read. */
export function takeRead(account: DeviceAccount, read: Read, now: Pick<UsageInput, 'nowMs' | 'monotonicMs'>, rules: Rules): void {
  const { device, held, wasShared, own } = read;
  const { parts: holders, isShared } = held;
  const times = device.current;
  if (times === undefined || (account.readFromMs !== undefined && times.startedMs <= account.readFromMs)) return;
  account.readFromMs = times.startedMs;
  const family = rules.activity.get(device.device.family);
  const { work, trafficSum } = workOfDevice(family, device, times.monotonicMs, account.trafficSum);
  account.trafficSum = trafficSum;
  const joules = growthOfEnergy(account, device.readings);
  if (holders.length === 0) return;

  const ownOf = ({ account: { name } }: HeldPart): readonly Reading[] => own.of(name, device.device.id);
  const isExclusive = !isShared && !wasShared;
  const strangers = isShared ? (device.strangers ?? []) : [];
  const taking = holders.filter(({ account: one }) => times.startedMs >= one.countedFromAtMs && times.monotonicMs > one.observedAtMs);
  const observed = taking.map((holder): Sharer => {
    // Readings of a container that is alone now are those of the device.
    const readings = holders.length === 1 && strangers.length === 0 ? [] : ownOf(holder);
    const spanMs = observe(holder.account, {
      toMs: times.monotonicMs,
      atMs: now.nowMs - (now.monotonicMs - times.monotonicMs),
      work: isExclusive ? work : workOfSharer(family, work, readings),
      memoryBytes: sumOf(isExclusive ? device.readings : readings, shared.memoryUsed.name),
      longestMs: rules.staleAfterMs,
    });
    return { ...holder, spanMs, load: loadOf(readings) };
  });
  if (!isExclusive && joules !== undefined) divide(joules, observed, strangers);
}

interface Sharer extends HeldPart {
  readonly spanMs: number;
  /** Sum of the shares of time of the container's engines. */
  readonly load: number;
}

/**
 * Divides energy among those who used the device: by their load, or by their share when none worked. The shares add up to the total, from
 * which processes of other pods take their part: it belongs to nobody. Each such pod counts as much as a holder.
 */
function divide(joules: number, observed: readonly Sharer[], strangers: readonly DeviceProcess[]): void {
  const sharers = observed.filter(({ spanMs }) => spanMs > 0);
  const strange = sumOfAll(strangers.flatMap(({ utilization = {} }) => Object.values(utilization)));
  const isBusy = strange > 0 || sharers.some(({ load }) => load > 0);
  const weights = sharers.map(({ load, share }) => (isBusy ? load : share));
  const strangePods = new Set(strangers.map(({ podUid }) => podUid)).size;
  const total = sumOfAll(weights) + (isBusy ? strange : strangePods / Math.max(1, observed.length));
  for (const [index, { account }] of sharers.entries()) {
    account.energyEstimatedJoules = (account.energyEstimatedJoules ?? 0) + (joules * (weights[index] as number)) / total;
  }
}

const sumOfAll = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/** Energy since the last read. A smaller value means a reset, after which the counter grew from 0. Undefined at the first read. */
function growthOfEnergy(account: DeviceAccount, readings: readonly Reading[]): number | undefined {
  const now = sumOf(readings, shared.energy.name);
  const before = account.joules;
  if (now === undefined) return undefined;
  account.joules = now;
  if (before === undefined) return undefined;
  return now < before ? now : now - before;
}
