import { join } from 'node:path';
import type { AnyKubelet, Case, Stage } from './any-kubelet.ts';
import { VendorPlugin } from './vendor-plugin.ts';
import { closing } from './watched-node.ts';

const LIMIT_MS = 15_000;

async function until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + LIMIT_MS; !(await isTrue()); ) {
    if (performance.now() > end) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** What a kubelet that has just started makes of a case. It is closed after the test. */
export async function observed(kubelet: AnyKubelet, { observe }: Case): Promise<unknown> {
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
