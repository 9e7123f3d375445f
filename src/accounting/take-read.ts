import type { DeviceProcess } from '../model/collection.ts';
import { readMsOf } from '../model/metric.ts';
import { ofMetric, Readings } from '../model/readings.ts';
import { shared } from '../model/shared-metrics.ts';
import { type ContainerAccount, observe } from './container-account.ts';
import type { DeviceAccount } from './device-account.ts';
import { type FamilyActivity, loadOf, type OwnReadings, sumOf, workOfDevice, workOfSharer, workSince } from './device-work.ts';
import type { UsageInput, UsedDevice } from './holders.ts';

/** One container that holds a device, with its share. */
export interface HeldPart {
  readonly account: ContainerAccount;
  readonly share: number;
  /** Its users have its share, and the reads. */
  readonly isDelegated?: true;
}

/** Who holds a device. */
export interface Held {
  readonly parts: readonly HeldPart[];
  /** Several containers hold it, one that the kubelet's answer lacks may hold it still, or another pod uses it. */
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
  const { isShared } = held;
  const holders = held.parts.filter(({ isDelegated }) => isDelegated !== true);
  const times = device.current;
  if (times === undefined || (account.readFromMs !== undefined && times.startedMs <= account.readFromMs)) return;
  account.readFromMs = times.startedMs;
  const family = rules.activity.get(device.device.family);
  const { work, trafficSum } = workOfDevice(family, device, times.monotonicMs, account.trafficSum);
  account.trafficSum = trafficSum;
  const energy =
    growthOfEnergy(account, device.readings, times.monotonicMs) ??
    energyOfPower(account, family, device.readings, times.monotonicMs, rules);
  if (holders.length === 0) return;

  const ownOf = ({ account: { name } }: HeldPart): Readings => own.of(name, device.device.id);
  const isExclusive = !isShared && !wasShared;
  const { users = [] } = device;
  // A user has an account. What others use belongs to nobody.
  const strangers = (isShared ? (device.strangers ?? []) : []).filter((one) => !users.some(({ uid }) => uid === one.podUid));
  const taking = holders.filter(({ account: one }) => times.startedMs >= one.countedFromAtMs && times.monotonicMs > one.lookedAtMs);
  const observed = taking.map((holder): Sharer => {
    // Readings of a container that is alone now are those of the device.
    const readings = holders.length === 1 && strangers.length + users.length === 0 ? Readings.NONE : ownOf(holder);
    const spanMs = observe(holder.account, {
      lookMs: times.monotonicMs,
      work: workSince(isExclusive ? work : workOfSharer(family, work, readings), holder.account.countedFromAtMs, rules.staleAfterMs),
      now,
      memoryBytes: sumOf(isExclusive ? device.readings : readings, shared.memoryUsed.name),
      longestMs: rules.staleAfterMs,
    });
    return { ...holder, spanMs, load: loadOf(readings) };
  });
  if (!isExclusive || energy?.isOfPower === true) divide(observed, strangers);
  if (energy !== undefined) for (const { account: one } of holders) payOut(one, energy);
}

interface Sharer extends HeldPart {
  readonly spanMs: number;
  /** Sum of the shares of time of the container's engines. */
  readonly load: number;
}

/**
 * Divides energy among those who used the device: by their load, or by their share when none worked. The shares add up to 1, from
 * which processes of other pods take their part: it belongs to nobody. Each such pod counts as much as a holder.
 */
function divide(observed: readonly Sharer[], strangers: readonly DeviceProcess[]): void {
  const sharers = observed.filter(({ spanMs }) => spanMs > 0);
  const strange = sumOfAll(strangers.flatMap(({ utilization = {} }) => Object.values(utilization)));
  const isBusy = strange > 0 || sharers.some(({ load }) => load > 0);
  const weights = sharers.map(({ load, share }) => (isBusy ? load : share));
  const strangePods = new Set(strangers.map(({ podUid }) => podUid)).size;
  const total = sumOfAll(weights) + (isBusy ? strange : strangePods / Math.max(1, observed.length));
  // Users without a share, alone and idle: what the device takes is not theirs.
  if (total === 0) return;
  for (const [index, { account }] of sharers.entries()) {
    account.energyShares = (account.energyShares ?? 0) + (weights[index] as number) / total;
  }
}

/** Gives a container its mean share of the energy between two reads of the counter, which may be further apart than those of the device. */
function payOut(account: ContainerAccount, { joules, looks, isOfPower }: Energy): void {
  const { energyShares } = account;
  if (energyShares === undefined) return;
  delete account.energyShares;
  // A counter that an earlier run of the agent saw goes on later.
  if (joules === undefined || (isOfPower === true && account.counters.readings().some(({ metric }) => metric === shared.energy.name)))
    return;
  account.usage.energyEstimatedJoules = (account.usage.energyEstimatedJoules ?? 0) + (joules * energyShares) / looks;
}

interface Energy {
  /** Undefined at the first read. */
  readonly joules: number | undefined;
  /** Reads of the device in that time. */
  readonly looks: number;
  /** The device counts no energy, so that it is an estimate for a container that holds the device alone, too. */
  readonly isOfPower?: true;
}

const sumOfAll = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/**
 * Energy between two reads of the counter. A smaller value means a reset, after which the counter grew from 0. Undefined without a new read
 * of the counter.
 */
function growthOfEnergy(account: DeviceAccount, readings: Readings, deviceMs: number): Energy | undefined {
  const looks = account.energyLooks + 1;
  account.energyLooks = looks;
  const now = sumOf(readings, shared.energy.name);
  if (now === undefined) return undefined;
  const { joules: before, joulesAtMs } = account;
  const times = ofMetric(readings, shared.energy.name).map((reading) => readMsOf(reading, deviceMs));
  const atMs = Math.max(...times);
  if (joulesAtMs !== undefined && atMs <= joulesAtMs) return undefined;
  Object.assign(account, { joules: now, joulesAtMs: atMs, energyLooks: 0 });
  return { joules: before === undefined ? undefined : now < before ? now : now - before, looks };
}

/**
 * Energy since the previous read by the power at both reads, of a device whose driver counts none. Undefined where a counter
 * was ever seen: its next read tells this time too.
 */
function energyOfPower(
  account: DeviceAccount,
  family: FamilyActivity | undefined,
  readings: Readings,
  deviceMs: number,
  { staleAfterMs }: Rules,
): Energy | undefined {
  const { power: before, joulesAtMs } = account;
  if (joulesAtMs !== undefined) return undefined;
  const sensors = family?.powerSensors ?? [];
  const powers = sensors.length === 0 ? [] : ofMetric(readings, shared.power.name);
  const [reading] = sensors.flatMap((sensor) => powers.filter(({ labels }) => labels?.sensor === sensor));
  if (reading === undefined) {
    account.power = undefined;
    return undefined;
  }
  const [watts, atMs] = [Number(reading.value), readMsOf(reading, deviceMs)];
  if (before !== undefined && atMs <= before.atMs) return undefined;
  const looks = account.energyLooks;
  Object.assign(account, { power: { watts, atMs }, energyLooks: 0 });
  if (before === undefined || atMs - before.atMs > staleAfterMs) return { joules: undefined, looks, isOfPower: true };
  return { joules: (((before.watts + watts) / 2) * (atMs - before.atMs)) / 1_000, looks, isOfPower: true };
}
