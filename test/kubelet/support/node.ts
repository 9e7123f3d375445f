import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import { type Clock, systemClock } from '../../../src/host/clock.ts';
import { type PodResourcesOptions, podResourcesOptions } from '../../../src/kubelet/options.ts';
import { createPodResourcesPoller, type PodResourcesPoller, type PollerSettings } from '../../../src/kubelet/poller.ts';
import { millis } from '../../../src/model/duration.ts';
import { defaultValues } from '../../../src/model/options.ts';
import type { SimulatedPod } from '../../../src/sim/kubelet/pods.ts';
import { TestKubelet, type TestKubeletSettings } from '../../support/kubelet/kubelet.ts';

/** A directory with a simulated kubelet in it, and pollers on it; all of it ends with the test. */
export interface TestNode {
  readonly kubelet: TestKubelet;
  readonly options: PodResourcesOptions;
  poller(settings?: { clock?: Clock; options?: Partial<PodResourcesOptions>; onChange?: PollerSettings['onChange'] }): PodResourcesPoller;
}

const endings: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-kubelet-'));
  endings.push(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

export function makeNode(settings: Omit<TestKubeletSettings, 'directory'> = {}): TestNode {
  const kubelet = new TestKubelet({ directory: temporaryDirectory(), ...settings });
  endings.push(() => kubelet.close());
  const options = {
    ...defaultValues(podResourcesOptions),
    socket: kubelet.podResourcesSocket,
    checkpoint: kubelet.checkpoint,
    timeout: millis(5_000),
  };
  return {
    kubelet,
    options,
    poller({ clock = systemClock, options: own = {}, onChange = () => {} } = {}) {
      const poller = createPodResourcesPoller({ options: { ...options, ...own }, clock, onChange });
      endings.push(() => poller.close());
      return poller;
    },
  };
}

/** A pod `ml/<name>` with one container `main` that holds these devices of `vendor.com/gpu`. */
export function gpuPod(name: string, ...ids: readonly string[]): SimulatedPod {
  const devices = ids.map((id) => ({ resource: 'vendor.com/gpu', id, numaNodes: [0] }));
  return { namespace: 'ml', name, uid: `uid-${name}`, containers: [{ name: 'main', devices }] };
}

/** `pod/container=resource:id` of all that the poller knows, in its order. */
export function holders(poller: PodResourcesPoller): string[] {
  return poller.current().allocations.map(({ pod, container, resource, deviceId }) => `${pod}/${container}=${resource}:${deviceId}`);
}

/** The pods whose allocations are marked as held. */
export function heldPods(poller: PodResourcesPoller): string[] {
  return [...poller.current().held].map((key) => key.split('\u0000')[1] as string).sort();
}
