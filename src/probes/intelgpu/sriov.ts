import type { Reading } from '../../model/metric.ts';
import type { DeviceFiles } from '../kit/device-files.ts';
import { addRows, type FileRow, listedRows } from '../kit/file-rows.ts';
import { ReadingSet } from '../kit/reading-set.ts';
import { plainText } from '../kit/text.ts';
import { metrics } from './metrics.ts';

/** Share of the card that a function gets. Zero means no limit. A value that differs between the tiles cannot be read, and is absent. */
const PROFILE: readonly FileRow[] = [
  { file: 'exec_quantum_ms', metric: metrics.quantum, scale: 1e-3 },
  { file: 'preempt_timeout_us', metric: metrics.preemption, scale: 1e-6 },
  { file: 'vram_quota', metric: metrics.memoryTotal, absent: 0 },
];

const PRIORITIES = ['low', 'normal', 'high'] as const;

/** Parses `[low] normal high`, where the present one is in brackets; undefined for other text. */
export function parsePriority(text: string): (typeof PRIORITIES)[number] | undefined {
  const present = plainText(text)
    .split(/\s+/)
    .flatMap((word) => /^\[(\w{1,16})\]$/.exec(word)?.[1] ?? []);
  return present.length === 1 ? PRIORITIES.find((priority) => priority === present[0]) : undefined;
}

/** Reads the profile of a function. */
export function readProfile(files: DeviceFiles, directory: string): readonly Reading[] {
  const readings = new ReadingSet();
  addRows(readings, files, listedRows(files, PROFILE, directory), 'once');
  const file = `${directory}/sched_priority`;
  const present = files.has(file) ? files.value(file, parsePriority) : undefined;
  if (present !== undefined) for (const priority of PRIORITIES) readings.add(metrics.priority, priority === present ? 1 : 0, { priority });
  return readings.list();
}
