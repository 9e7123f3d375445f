import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import type { Device } from '../../../../src/model/device.ts';
import type { PluginResource } from '../../../../src/model/plugin-resource.ts';
import type { Scenario } from '../../../../src/sim/family-simulation.ts';
import { type ServedAgent, serve } from '../../../support/serve.ts';
import type { StartSettings } from './exchanged.ts';
import { Machine } from './machine.ts';
import { RealKubelet } from './real-kubelet.ts';

export interface NodeSettings {
  readonly counts?: Scenario['counts'];
  readonly resources?: readonly PluginResource[];
  /** The rest of the configuration file. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly flags?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Arguments of the kubelet. */
  readonly kubelet?: readonly string[];
  readonly start?: StartSettings;
}

/** Simulated hardware, the kubelet's own code, and the built agent between them in a process of its own. */
export interface WatchedNode {
  readonly machine: Machine;
  readonly kubelet: RealKubelet;
  /** The one that was started last. */
  readonly agent: ServedAgent;
  /** Kills the agent and starts it again as it was. */
  restart(): Promise<ServedAgent>;
  /** As the agent tells them. */
  devices(): Promise<readonly ToldDevice[]>;
}

export interface ToldDevice extends Device {
  readonly health: { readonly state: string };
}

const open: { close(): unknown }[] = [];

/** Closes what the last test opened, the last first. */
export function closeAfterEach(): void {
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close();
  });
}

/** Has something closed after the test. */
export function closing<T extends { close(): unknown }>(one: T): T {
  open.push(one);
  return one;
}

export async function watchedNode(settings: NodeSettings = {}): Promise<WatchedNode> {
  const machine = new Machine(settings.counts ?? {});
  closing({ close: () => machine.remove() });
  const kubelet = closing(new RealKubelet(settings.kubelet));
  await kubelet.start(settings.start);
  const config = join(machine.root, 'config.json');
  const { plugin, ...rest } = (settings.config ?? {}) as { readonly plugin?: object };
  writeFileSync(config, JSON.stringify({ ...rest, plugin: { ...plugin, resources: settings.resources ?? [] } }));
  const flags = [...machine.flags(), ...kubelet.flags(), `--config.file=${config}`, '--refresh.interval=1s', ...(settings.flags ?? [])];
  let agent = await serve(flags, 'serve', settings.env && { env: settings.env });
  closing({ close: () => agent.stop('SIGKILL') });
  const restart = async (): Promise<ServedAgent> => {
    await agent.stop('SIGKILL');
    agent = await serve(flags, 'serve', settings.env && { env: settings.env });
    return agent;
  };
  const devices = async (): Promise<readonly ToldDevice[]> => {
    const answer = (await (await fetch(`${agent.url}/api/v1/devices`)).json()) as { readonly devices: readonly ToldDevice[] };
    return answer.devices;
  };
  return {
    machine,
    kubelet,
    get agent() {
      return agent;
    },
    restart,
    devices,
  };
}

/** One line of a metrics page as its labels, for each line of one metric. */
export function seriesOf(page: string, name: string): Readonly<Record<string, string>>[] {
  return page
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`))
    .map((line) => Object.fromEntries([...line.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, value]) => [label, value])));
}

export const podNamed = (name: string) => ({ namespace: 'ml', name });
