import type { MetricSpec } from '../../model/metric.ts';
import type { ContainerWaiting } from '../../model/usage.ts';
import type { Page } from '../page/page.ts';
import type { HolderText } from './container-metrics.ts';

const HOLDER = ['namespace', 'pod', 'container'] as const;

/** One series for each container that holds GPUs. The label lists are complete: no `device` is added. */
export const waitingMetrics = {
  waiting: gauge(
    'container_device_waiting',
    '1 while the GPUs of a container are busy and nothing moves, 0 while it does not wait.',
    'Utilization, activity or power, and the bytes over all links of its devices, for `stall.after`. Absent while something that the answer needs was not read.',
  ),
  lastProgress: gauge(
    'container_device_last_progress_timestamp_seconds',
    'When a read last showed work of a container: active engines, or the bytes that it usually moves.',
    'As `container_device_waiting`. Absent before the first.',
  ),
  step: gauge(
    'container_device_step_seconds',
    'Estimated period of the steps of a container. Steps shorter than three reads can show as a multiple of it.',
    'Autocorrelation of the bytes over all links, or of the power. Absent while there is none; `stall.sample` shows short steps.',
  ),
} as const satisfies Readonly<Record<string, MetricSpec>>;

export function addWaiting(page: Page, waiting: readonly ContainerWaiting[], holderText: HolderText): void {
  for (const one of waiting) {
    const labels = holderText(one);
    const { state, lastProgressMs, stepSeconds } = one;
    if (state !== 'unknown') page.add(waitingMetrics.waiting, labels, state === 'not-waiting' ? 0 : 1);
    if (lastProgressMs !== undefined) page.add(waitingMetrics.lastProgress, labels, lastProgressMs / 1_000);
    if (stepSeconds !== undefined) page.add(waitingMetrics.step, labels, stepSeconds);
  }
}

function gauge(name: string, help: string, source: string): MetricSpec {
  return { name, type: 'gauge', help, labels: HOLDER, source };
}
