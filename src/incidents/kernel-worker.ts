import { parentPort } from 'node:worker_threads';
import { systemClock } from '../host/clock.ts';
import { Tree } from '../host/fs/tree.ts';
import { openKmsg } from '../host/kernel-log/reader.ts';
import { parseBootTimeMs } from '../host/kernel-log/record.ts';
import { crashLines } from './crash-log.ts';
import { type KernelSearch, LineCollector } from './kernel-log.ts';
import type { KernelPart } from './record.ts';

/** The lines about the devices, from the log of this boot and from what a crash left. */
function search({ path, procfs, crashes, devices }: KernelSearch): readonly KernelPart[] {
  const collector = new LineCollector(devices);
  const bootTimeMs = parseBootTimeMs(new Tree(procfs).text('stat') ?? '');
  for (const line of crashLines(crashes, bootTimeMs, systemClock.now())) collector.takeOfCrash(line);
  const reader = openKmsg({
    path,
    clock: systemClock,
    bootTimeMs,
    onRecord: (message) => collector.take(message),
  });
  reader.poll();
  const { problem } = reader.status();
  reader.close();
  return collector.parts(problem?.message);
}

parentPort?.on('message', (job: KernelSearch) => parentPort?.postMessage(search(job)));
