import { join } from 'node:path';
import { until } from '../../../support/until.ts';
import type { AnyKubelet, Case, Stage } from './any-kubelet.ts';
import { VendorPlugin } from './vendor-plugin.ts';
import { closing } from './watched-node.ts';

/** What a kubelet that has just started makes of a case. It is closed after the test. */
export async function observed(kubelet: AnyKubelet, { observe }: Case): Promise<unknown> {
  closing(kubelet);
  await kubelet.start();
  const stage: Stage = {
    kubelet,
    until: (what, holds) => until(holds, what),
    plugin: (settings) => closing(new VendorPlugin(kubelet.pluginDirectory, settings)),
    watched: (settings, folder = '') => closing(new VendorPlugin(join(kubelet.registry, folder), settings)),
  };
  return observe(stage);
}
