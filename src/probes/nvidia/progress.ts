import type { ByteSource, ProgressSpec } from '../../model/declaration.ts';
import type { SeriesChoice } from '../../model/metric.ts';
import { metrics } from './metrics.ts';

const counters = [metrics.receivedBytes.name, metrics.transmittedBytes.name];
const link = (name: string): ByteSource => ({
  name,
  counters: { metrics: counters, port: name },
  rates: { metric: metrics.traffic.name, labels: { link: name } },
});

const unit = (name: string): SeriesChoice => ({ metric: metrics.activity.name, labels: { unit: name } });
const engine = (name: string): SeriesChoice => ({ metric: metrics.utilization.name, labels: { engine: name } });

/**
 * A kernel that waits for another GPU spins: the driver calls the GPU busy. On an H200 and an H100 such kernels left tensor units and FP32 at 0 and the
 * memory below 0.01 %, at 18 to 21 % of the power limit. FP32 in registers on the H100: FP32 at 86 %, all else at 0, 51 % of the limit.
 * The loop of a spinning kernel compares and counts, so a tenth of the integer pipe is no work. Copy engines show in memory and PCIe.
 * The limit is that of the board, not one that an operator lowered: the power of a spinning kernel does not fall with it. The PCIe throughput of the last 20 ms is
 * no mean, so it does not count.
 */
export const progress: ProgressSpec = {
  engine: 'gpu',
  pipes: [
    ...['tensor', 'fp16', 'fp32', 'fp64'].map(unit),
    { ...unit('integer'), weight: 0.1 },
    { metric: metrics.memoryBandwidth.name },
    ...['encoder', 'decoder', 'jpeg', 'ofa'].map(engine),
  ],
  power: { sensors: ['gpu_average', 'gpu'], limits: ['default', 'enforced'] },
  bytes: [link('nvlink'), link('pcie')],
};
