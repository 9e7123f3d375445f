import type { DeviceProcess } from '../model/collection.ts';
import { readMsOf } from '../model/metric.ts';
import { ofMetric, Readings } from '../model/readings.ts';
import { shared } from '../model/shared-metrics.ts';
import { type ContainerAccount, type DeviceAccount, observe } from './account.ts';
import { type FamilyActivity, loadOf, sumOf, workOfDevice, workOfSharer, workSince } from './device-work.ts';
import type { UsageInput, UsedDevice } from './holders.ts';

/** One container that holds a device, with its share. */
export interface HolderShare {
  readonly account: ContainerAccount;
  readonly share: number;
  /** Its users have its share, and the reads. */
  readonly isDelegated?: true | undefined;
}

/** Who holds a device. */
export interface DeviceHolders {
  readonly parts: readonly HolderShare[];
  /** Several containers hold it, one that the kubelet's answer lacks may hold it still, or another pod uses it. */
  readonly isShared: boolean;
}

/** `wasShared`: at the step before. */
interface Read extends DeviceHolders {
  readonly device: UsedDevice;
  readonly wasShared: boolean;
  /** Readings of the processes of a container, by its name. */
  readonly own: (name: string) => Readings;
}

interface Rules {
  readonly staleAfterMs: number;
  readonly activity: ReadonlyMap<string, FamilyActivity>;
}

/** Gives each holder what a new read of the device shows. Does nothing without a new read. */
export function takeRead(account: DeviceAccount, read: Read, now: Pick<UsageInput, 'nowMs' | 'monotonicMs'>, rules: Rules): void {
  const { device, isShared, wasShared, own } = read;
  const holders = read.parts.filter(({ isDelegated }) => isDelegated !== true);
  const { current: times, readings: all, users = [] } = device;
  if (times === undefined || (account.readFromMs !== undefined && times.startedMs <= account.readFromMs)) return;
  account.readFromMs = times.startedMs;
  const family = rules.activity.get(device.device.family);
  const { work, trafficSum } = workOfDevice(family, device, times.monotonicMs, account.trafficSum);
  account.trafficSum = trafficSum;
  account.energyLooks += 1;
  const energy = energyOfCounter(account, all, times.monotonicMs) ?? energyOfPower(account, family, all, times.monotonicMs, rules);
  if (energy !== undefined) account.energyLooks = 0;
  if (holders.length === 0) return;

  const isExclusive = !isShared && !wasShared;
  // A user has an account. What others use belongs to nobody.
  const strangers = (isShared ? (device.strangers ?? []) : []).filter((one) => !users.some(({ uid }) => uid === one.podUid));
  const isAlone = holders.length === 1 && strangers.length + users.length === 0;
  const sharers: Sharer[] = [];
  for (const { account: one, share } of holders) {
    if (times.startedMs < one.countedFromAtMs || times.monotonicMs <= one.lookedAtMs) continue;
    // Readings of a container that is alone now are those of the device.
    const readings = isAlone ? Readings.NONE : own(one.name);
    const spanMs = observe(one, {
      lookMs: times.monotonicMs,
      work: workSince(isExclusive ? work : workOfSharer(family, work, readings), one.countedFromAtMs, rules.staleAfterMs),
      now,
      memoryBytes: sumOf(isExclusive ? all : readings, shared.memoryUsed.name),
      longestMs: rules.staleAfterMs,
    });
    sharers.push({ account: one, share, spanMs, load: loadOf(readings) });
  }
  if (!isExclusive || energy?.isOfPower === true) divide(sharers, strangers);
  if (energy !== undefined) for (const { account: one } of holders) payOut(one, energy);
}

interface Sharer extends HolderShare {
  readonly spanMs: number;
  /** Sum of the shares of time of the container's engines. */
  readonly load: number;
}

/**
 * Divides energy among those who used the device: by their load, or by their share when none worked. The shares add up to 1, from
 * which processes of other pods take their part: it belongs to nobody. Each such pod counts as much as a holder.
 */
function divide(all: readonly Sharer[], strangers: readonly DeviceProcess[]): void {
  const sharers = all.filter(({ spanMs }) => spanMs > 0);
  const strange = sumOfAll(strangers.flatMap(({ utilization = {} }) => Object.values(utilization)));
  const isBusy = strange > 0 || sharers.some(({ load }) => load > 0);
  const strangePods = new Set(strangers.map(({ podUid }) => podUid)).size;
  const weightOf = ({ load, share }: Sharer): number => (isBusy ? load : share);
  const total = sumOfAll(sharers.map(weightOf)) + (isBusy ? strange : strangePods / Math.max(1, all.length));
  // Users without a share, alone and idle: what the device takes is not theirs.
  if (total === 0) return;
  for (const one of sharers) one.account.energyShares = (one.account.energyShares ?? 0) + weightOf(one) / total;
}

/** Gives a container its mean share of the energy between two reads of the counter, which may be further apart than those of the device. */
function payOut(account: ContainerAccount, { joules, looks, isOfPower }: Energy): void {
  const { energyShares, usage, counters } = account;
  if (energyShares === undefined) return;
  delete account.energyShares;
  // A counter that an earlier run of the agent saw goes on later.
  const isCounted = isOfPower === true && counters.readings().some(({ metric }) => metric === shared.energy.name);
  if (joules === undefined || isCounted) return;
  usage.energyEstimatedJoules = (usage.energyEstimatedJoules ?? 0) + (joules * energyShares) / looks;
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

/** Energy between two reads of the counter. After a reset it grew from 0. Undefined without a new read of the counter. */
function energyOfCounter(account: DeviceAccount, readings: Readings, deviceMs: number): Energy | undefined {
  const joules = sumOf(readings, shared.energy.name);
  if (joules === undefined) return undefined;
  const { energy: before, energyLooks: looks } = account;
  const atMs = Math.max(...ofMetric(readings, shared.energy.name).map((reading) => readMsOf(reading, deviceMs)));
  if (before !== undefined && atMs <= before.atMs) return undefined;
  account.energy = { joules, atMs };
  return { joules: before && (joules < before.joules ? joules : joules - before.joules), looks };
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
  const { power: before, energy, energyLooks: looks } = account;
  if (energy !== undefined) return undefined;
  const powers = ofMetric(readings, shared.power.name);
  const [reading] = (family?.powerSensors ?? []).flatMap((sensor) => powers.filter(({ labels }) => labels?.sensor === sensor));
  const power = reading && { watts: Number(reading.value), atMs: readMsOf(reading, deviceMs) };
  if (power !== undefined && before !== undefined && power.atMs <= before.atMs) return undefined;
  account.power = power;
  if (power === undefined) return undefined;
  const ms = before === undefined ? Number.POSITIVE_INFINITY : power.atMs - before.atMs;
  const joules = before === undefined || ms > staleAfterMs ? undefined : (((before.watts + power.watts) / 2) * ms) / 1_000;
  return { joules, looks, isOfPower: true };
}
