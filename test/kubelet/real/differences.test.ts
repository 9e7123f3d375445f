import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CASES } from './cases/all.ts';
import type { AnyKubelet, Case, Stage } from './support/any-kubelet.ts';
import { describeReal, RealKubelet } from './support/real-kubelet.ts';
import { VendorPlugin } from './support/vendor-plugin.ts';
import { closeAfterEach, closing } from './support/watched-node.ts';
import { WholeSimulation } from './support/whole-simulation.ts';

closeAfterEach();

const LIMIT_MS = 15_000;

async function until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + LIMIT_MS; !(await isTrue()); ) {
    if (performance.now() > end) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

async function observed(kubelet: AnyKubelet, { observe }: Case): Promise<unknown> {
  closing(kubelet);
  await kubelet.start();
  const stage: Stage = {
    kubelet,
    until,
    plugin: (settings) => closing(new VendorPlugin(kubelet.pluginDirectory, settings)),
    watched: (settings, folder = '') => closing(new VendorPlugin(join(kubelet.registry, folder), settings)),
  };
  return observe(stage);
}

const realKubelet = ({ policy = 'none', scope = 'container', onlyV1alpha1 = false }: Case): RealKubelet =>
  new RealKubelet(['-topology-policy', policy, '-topology-scope', scope, ...(onlyV1alpha1 ? ['-only-v1alpha1'] : [])]);

describeReal("the kubelet's own code", () => {
  it.each(CASES)('$name', async (one) => {
    expect(await observed(realKubelet(one), one)).toEqual(one.expected);
  });
});

describe('the simulated kubelet', () => {
  it.each(CASES)('$name', async (one) => {
    expect(await observed(new WholeSimulation(one), one)).toEqual(one.expected);
  });
});
