import type { DeviceFiles } from '../kit/device-files.ts';
import { type Channel, channelsIn, findMonitor, type Monitors, type SensorRow } from '../kit/hwmon.ts';
import type { ReadingSet } from '../kit/reading-set.ts';
import { parseCount } from '../kit/text.ts';
import { metrics } from './metrics.ts';

/** What is known of the hardware monitors of a card without reading their sensors. */
export interface CardMonitors extends Monitors {
  /** Counters of energy, by sensor. */
  readonly energies: readonly { readonly sensor: string; readonly file: string }[];
}

const LABELS: Readonly<Record<string, string>> = { pkg: 'package', vram: 'memory', mctrl: 'memory_controller' };

/** Names a sensor by its label. Without one, the number tells on xe; i915 has one channel of each kind. */
function sensorName({ label, name, kind, number }: Channel, isXe: boolean): string {
  if (label !== '') return LABELS[label] ?? label.replace(/^vram_/, 'memory_').replace(/^memory_ch_/, 'memory_channel_');
  if (kind === 'temp') return isXe ? name : 'package';
  if (!isXe) return 'card';
  // Voltages count from 0, and all other channels from 1.
  return ['card', 'package'][number - (kind === 'in' ? 0 : 1)] ?? name;
}

function rowsOf(sensorOf: (channel: Channel) => string): readonly SensorRow[] {
  const labels = (channel: Channel) => ({ sensor: sensorOf(channel) });
  const powers = { max: 'max', rated_max: 'rated_max', crit: 'crit', cap: 'cap' };
  return [
    {
      kind: 'temp',
      metric: metrics.temperature,
      labels,
      limits: { metric: metrics.temperatureLimit, of: { max: 'max', crit: 'crit', emergency: 'emergency' } },
    },
    { kind: 'in', metric: metrics.voltage, labels },
    { kind: 'fan', metric: metrics.fanSpeed, labels: ({ number }) => ({ fan: String(number - 1) }) },
    {
      kind: 'power',
      labels,
      limits: { metric: metrics.powerLimit, of: powers, labels: (channel, limit) => ({ limit: `${sensorOf(channel)}_${limit}` }) },
    },
  ];
}

/** Finds the monitors of the driver. On i915 each tile has a monitor of its own. */
export function findCardMonitors(files: DeviceFiles): CardMonitors {
  const found = files.names('hwmon').flatMap((name): CardMonitors[] => {
    const directory = `hwmon/${name}`;
    const [driver, tile] = /^(?:xe|i915)(?:_(gt\d{1,3}))?$/.exec(files.text(`${directory}/name`) ?? '') ?? [];
    if (driver === undefined) return [];
    const sensorOf = (channel: Channel): string => tile ?? sensorName(channel, driver === 'xe');
    const energies = channelsIn(files, directory, { kinds: ['energy'] });
    return [
      {
        ...findMonitor(files, directory, rowsOf(sensorOf)),
        energies: energies.flatMap((channel) => (channel.file === undefined ? [] : [{ sensor: sensorOf(channel), file: channel.file }])),
      },
    ];
  });
  return {
    sensors: found.flatMap(({ sensors }) => sensors),
    energies: found.flatMap(({ energies }) => energies),
    limits: found.flatMap(({ limits }) => limits),
  };
}

/** Microjoules since the driver was loaded, by sensor. A counter of 0 is absent: the channel is not wired, or the read failed. */
export function readEnergies(files: DeviceFiles, { energies }: CardMonitors): ReadonlyMap<string, number> {
  const counts = energies.map(({ sensor, file }) => [sensor, Number(files.live(file, parseCount).value ?? 0)] as const);
  return new Map(counts.filter(([, microjoules]) => microjoules > 0));
}

/** Sensors of the whole GPU, the most complete first. */
const WHOLE: readonly string[] = ['card', 'package'];

/** Shortest time between two reads that gives a power. The driver refreshes its counters once in some milliseconds. */
const SHORTEST_MS = 500;

/** Turns counters of energy into readings of energy and of mean power. */
export class EnergyMeter {
  #before: { readonly energies: ReadonlyMap<string, number>; readonly atMs: number } | undefined;
  /** Chosen once, because the counter must not jump from one sensor to another. */
  #whole: string | undefined;

  /** The card slept: energy of that time is not power of now. */
  rest(): void {
    this.#before = undefined;
  }

  add(readings: ReadingSet, energies: ReadonlyMap<string, number>, nowMs: number): void {
    this.#whole ??= WHOLE.find((sensor) => energies.has(sensor));
    const whole = energies.get(this.#whole ?? '');
    readings.add(metrics.energy, whole && whole / 1e6);
    const before = this.#before;
    const elapsedMs = before === undefined ? SHORTEST_MS : nowMs - before.atMs;
    if (elapsedMs < SHORTEST_MS) return;
    this.#before = { energies, atMs: nowMs };
    for (const [sensor, now] of energies) {
      const start = before?.energies.get(sensor);
      // An awake card always uses power, so a counter that stands still says nothing.
      if (start !== undefined && now > start) readings.add(metrics.power, (now - start) / 1e3 / elapsedMs, { sensor });
    }
  }
}
