import type { Reading, Value } from '../../model/metric.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { parseCount, plainText } from '../kit/text.ts';
import { metrics } from './metrics.ts';

/** Share of the card that a function gets. Zero means no limit. */
export interface VfProfile {
  readonly quantumSeconds?: number;
  readonly preemptionSeconds?: number;
  readonly priority?: Priority;
  /** Bytes of the memory of the card; absent without a quota. */
  readonly memoryBytes?: Value;
}

type Priority = (typeof PRIORITIES)[number];
const PRIORITIES = ['low', 'normal', 'high'] as const;

/** Parses `[low] normal high`, where the present one is in brackets; undefined for other text. */
export function parsePriority(text: string): Priority | undefined {
  const present = plainText(text)
    .split(/\s+/)
    .flatMap((word) => /^\[(\w{1,16})\]$/.exec(word)?.[1] ?? []);
  return present.length === 1 ? PRIORITIES.find((priority) => priority === present[0]) : undefined;
}

/** Reads the profile of a function. A value that differs between the tiles cannot be read, and is absent. */
export function readProfile(files: DeviceFiles, directory: string): VfProfile | undefined {
  const has = new Set(files.names(directory));
  if (has.size === 0) return undefined;
  const count = (file: string): Value | undefined => (has.has(file) ? files.once(`${directory}/${file}`, parseCount).value : undefined);
  const [quantum, preemption, quota] = ['exec_quantum_ms', 'preempt_timeout_us', 'vram_quota'].map(count);
  const priority = has.has('sched_priority') ? files.once(`${directory}/sched_priority`, parsePriority).value : undefined;
  return {
    ...(quantum !== undefined && { quantumSeconds: Number(quantum) / 1e3 }),
    ...(preemption !== undefined && { preemptionSeconds: Number(preemption) / 1e6 }),
    ...(priority !== undefined && { priority }),
    ...(quota !== undefined && quota > 0 && { memoryBytes: quota }),
  };
}

export function profileReadings({ quantumSeconds, preemptionSeconds, priority, memoryBytes }: VfProfile): readonly Reading[] {
  const value = ({ name }: { readonly name: string }, of: Value | undefined): Reading[] =>
    of === undefined ? [] : [{ metric: name, value: of }];
  return [
    ...value(metrics.quantum, quantumSeconds),
    ...value(metrics.preemption, preemptionSeconds),
    ...value(metrics.memoryTotal, memoryBytes),
    ...(priority === undefined
      ? []
      : PRIORITIES.map((each) => ({ metric: metrics.priority.name, labels: { priority: each }, value: each === priority ? 1 : 0 }))),
  ];
}
