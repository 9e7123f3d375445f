import type { ByteSource, ProgressSpec } from '../../model/progress.ts';
import { metrics } from './metrics.ts';

const counters = [metrics.receivedBytes.name, metrics.transmittedBytes.name];
const link = (name: string): ByteSource => ({
  name,
  counters: { metrics: counters, port: name },
  rates: { metric: metrics.traffic.name, labels: { link: name } },
});

/**
 * A kernel that waits for another GPU spins: the driver calls the GPU busy. On an H200 such kernels left tensor units at 0 and the memory below 0.01 %,
 * at 18 to 21 % of the power limit. The PCIe throughput of the last 20 ms is no mean, so it does not count.
 */
export const progress: ProgressSpec = {
  engine: 'gpu',
  activity: [{ metric: metrics.activity.name, labels: { unit: 'tensor' } }, { metric: metrics.memoryBandwidth.name }],
  power: { sensors: ['gpu_average', 'gpu'], limit: 'enforced' },
  bytes: [link('nvlink'), link('pcie')],
};
