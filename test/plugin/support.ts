import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../src/host/clock.ts';
import { type ChangeLog, createChangeLog } from '../../src/log/changes.ts';
import type { DeviceAccess } from '../../src/model/access.ts';
import type { Device } from '../../src/model/device.ts';
import { type Millis, millis } from '../../src/model/duration.ts';
import type { HealthState, Verdict } from '../../src/model/health.ts';
import { defaultValues } from '../../src/model/options.ts';
import type { PluginResource } from '../../src/model/plugin-resource.ts';
import type { PodResources } from '../../src/model/pod-resources.ts';
import { Readings } from '../../src/model/readings.ts';
import type { DeviceState, FamilyState, Snapshot } from '../../src/model/snapshot.ts';
import { type PluginOptions, pluginOptions, type RegistrationChoice } from '../../src/plugin/options.ts';
import { createDevicePlugin, type DevicePlugin, type DevicePluginDependencies } from '../../src/plugin/plugin.ts';
import { TestDeviceManager, type TestDeviceManagerSettings } from '../support/kubelet/device-manager.ts';
import { familyState, device as plainDevice, podResources } from '../support/snapshots.ts';

export const verdict = (state: HealthState, reason = 'Broken'): Verdict => ({
  state,
  sinceMs: 0,
  conditions:
    state === 'unhealthy'
      ? [{ type: 'Fault', class: 'latched', severity: 'fatal', reason, message: 'error count 3', remedy: 'reset', sinceMs: 0 }]
      : [],
});

export const deviceState = (part: Partial<Device> & Pick<Device, 'id'>, health: HealthState = 'healthy'): DeviceState => {
  const device = plainDevice(part);
  return {
    key: `${device.family}/${device.id}`,
    device,
    readings: Readings.of([]),
    processes: [],
    verdict: verdict(health),
    holders: [],
    readAtMs: 0,
    stale: false,
  };
};

/** A store as far as the plugin knows one. */
export class TestStore {
  #snapshot: Snapshot | undefined;
  #looks = new Set<() => void>();
  #sequence = 0;

  snapshot = (): Snapshot | undefined => this.#snapshot;

  subscribe = (look: () => void): (() => void) => {
    this.#looks.add(look);
    return () => this.#looks.delete(look);
  };

  get subscribers(): number {
    return this.#looks.size;
  }

  publish(
    devices: readonly DeviceState[],
    families: readonly FamilyState[] = [familyState('toy')],
    told: Partial<PodResources> = {},
  ): void {
    this.#sequence += 1;
    this.#snapshot = {
      sequence: this.#sequence,
      takenAtMs: 0,
      devices,
      allocations: [],
      containerReadings: [],
      families,
      podResources: podResources([], told),
    };
    for (const look of [...this.#looks]) look();
  }
}

export const toyAccess = (device: Device): DeviceAccess => ({
  deviceNodes: [
    { path: '/dev/toyctl', permissions: 'rw' },
    { path: `/dev/${device.id}`, permissions: 'rw' },
  ],
  env: { TOYS: device.id },
});

/** Short waits, so that a test sees in a second what takes minutes. */
export const QUICK = {
  registerTimeoutMs: 800,
  contactTimeoutMs: 1_500,
  firstWaitMs: 20,
  longestWaitMs: 100,
  absenceWaitMs: 20,
  stableMs: 250,
};

export const TOY: PluginResource = { resource: 'example.com/toy', select: { family: 'toy' } };

export interface Bench {
  readonly directory: string;
  readonly registry: string;
  readonly manager: TestDeviceManager;
  readonly store: TestStore;
  readonly plugin: DevicePlugin;
  /** Lines of the log: `begin` or `end` and the resource. */
  readonly lines: string[];
  /** Message and fields of each line. */
  readonly fields: Record<string, unknown>[];
  readonly changes: ChangeLog;
  close(): Promise<void>;
}

export interface BenchSettings {
  readonly resources?: readonly PluginResource[];
  readonly registration?: RegistrationChoice;
  readonly streamTimeout?: Millis;
  readonly manager?: Partial<TestDeviceManagerSettings>;
  readonly parts?: Partial<DevicePluginDependencies>;
}

/** A kubelet's directories, a simulated kubelet (not started) and a plugin (not started). */
export function setUp(settings: BenchSettings = {}): Bench {
  const root = mkdtempSync(join(tmpdir(), 'plugin-'));
  const [directory, registry] = [join(root, 'device-plugins'), join(root, 'plugins_registry')];
  const manager = new TestDeviceManager({ directory, ...settings.manager });
  const store = new TestStore();
  const lines: string[] = [];
  const fields: Record<string, unknown>[] = [];
  const note =
    (word: string) =>
    (message: string, more: Record<string, unknown> = {}) => {
      lines.push(`${word} ${String(more.resource)}`);
      fields.push({ message, ...more });
    };
  const logger = { debug() {}, info: note('end'), warn: note('begin'), error: note('error') };
  const bench = { directory, registry, manager, store, lines, fields, changes: createChangeLog(logger) };
  const plugin = pluginAt(bench, settings);
  const close = async (): Promise<void> => {
    await plugin.stop();
    await manager.stop();
    rmSync(root, { recursive: true, force: true });
  };
  return { ...bench, plugin, close };
}

/** One more plugin on the same kubelet, as that of another agent. */
export function pluginAt(
  { directory, registry, store, changes }: Pick<Bench, 'directory' | 'registry' | 'store' | 'changes'>,
  settings: BenchSettings = {},
): DevicePlugin {
  const options: PluginOptions = {
    ...(defaultValues(pluginOptions) as PluginOptions),
    dir: directory,
    'registry-dir': registry,
    registration: settings.registration ?? 'direct',
    'stream-timeout': settings.streamTimeout ?? millis(800),
  };
  return createDevicePlugin({
    resources: settings.resources ?? [TOY],
    store,
    access: { toy: toyAccess, other: toyAccess },
    missingRetentionMs: 60_000,
    clock: systemClock,
    changes,
    options,
    timings: QUICK,
    ...settings.parts,
  });
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export const ownSockets = (directory: string): string[] => readdirSync(directory).filter((name) => name.startsWith('device-agent-'));

/** `id=Healthy`, in the kubelet's order. */
export const listed = (manager: TestDeviceManager, resource = TOY.resource): string[] =>
  manager.devices(resource).map(({ ID, health }) => `${ID}=${health}`);
