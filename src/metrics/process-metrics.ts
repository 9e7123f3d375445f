import { readdirSync, readFileSync, statSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import type { MetricSpec, MetricType } from '../model/metric.ts';
import { labelText } from './labels.ts';
import type { SeriesPage } from './series-page.ts';

/** The agent as a process, under the names that all exporters use. Threads of probes are included where the kernel counts them. */
export const processMetrics = {
  cpuUser: metric('counter', 'process_cpu_user_seconds_total', 'User CPU time spent.', 'getrusage'),
  cpuSystem: metric('counter', 'process_cpu_system_seconds_total', 'System CPU time spent.', 'getrusage'),
  cpu: metric('counter', 'process_cpu_seconds_total', 'User and system CPU time spent.', 'getrusage'),
  start: metric('gauge', 'process_start_time_seconds', 'When the process started, since 1970.', 'Node.js'),
  resident: metric('gauge', 'process_resident_memory_bytes', 'Resident memory.', '/proc/self/status'),
  virtual: metric('gauge', 'process_virtual_memory_bytes', 'Virtual memory.', '/proc/self/status'),
  openFds: metric('gauge', 'process_open_fds', 'Open file descriptors.', '/proc/self/fd'),
  maxFds: metric('gauge', 'process_max_fds', 'Largest number of open file descriptors.', '/proc/self/limits'),
  heapTotal: metric('gauge', 'nodejs_heap_size_total_bytes', 'Heap of the main thread.', 'V8'),
  heapUsed: metric('gauge', 'nodejs_heap_size_used_bytes', 'Heap of the main thread in use.', 'V8'),
  external: metric('gauge', 'nodejs_external_memory_bytes', 'Memory of objects outside the heap of the main thread.', 'V8'),
  loopActive: metric(
    'counter',
    'nodejs_eventloop_active_seconds_total',
    'Time in which the event loop of the main thread was at work.',
    'performance.eventLoopUtilization',
  ),
  version: metric('gauge', 'nodejs_version_info', 'Version of Node.js; always 1.', 'Node.js', ['version']),
} as const satisfies Readonly<Record<string, MetricSpec>>;

export function addProcess(page: SeriesPage): void {
  const cpu = process.cpuUsage();
  page.add(processMetrics.cpuUser, '', cpu.user / 1e6);
  page.add(processMetrics.cpuSystem, '', cpu.system / 1e6);
  page.add(processMetrics.cpu, '', (cpu.user + cpu.system) / 1e6);
  page.add(processMetrics.start, '', Math.round(performance.timeOrigin) / 1_000);
  page.add(processMetrics.loopActive, '', performance.eventLoopUtilization().active / 1_000);
  page.add(processMetrics.version, labelText({ version: process.version }), 1);
  addMemory(page);
  addDescriptors(page);
}

/** Without `process.memoryUsage`, which opens a file and throws where no descriptor is left. */
function addMemory(page: SeriesPage): void {
  const heap = getHeapStatistics();
  page.add(processMetrics.heapTotal, '', heap.total_heap_size);
  page.add(processMetrics.heapUsed, '', heap.used_heap_size);
  page.add(processMetrics.external, '', heap.external_memory);
  const status = ownFile('status');
  for (const [metric, name] of [[processMetrics.resident, 'VmRSS'] as const, [processMetrics.virtual, 'VmSize'] as const]) {
    const kibibytes = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1];
    if (kibibytes !== undefined) page.add(metric, '', Number(kibibytes) * 1_024);
  }
}

function addDescriptors(page: SeriesPage): void {
  const limit = /^Max open files\s+(\d+)/m.exec(ownFile('limits'))?.[1];
  if (limit !== undefined) page.add(processMetrics.maxFds, '', Number(limit));
  const open = openDescriptors();
  if (open !== undefined) page.add(processMetrics.openFds, '', open);
}

/** Undefined where there is no procfs. */
function openDescriptors(): number | undefined {
  try {
    // From Linux 6.2 on the size of the directory is their number. Before, it is 0, and listing thousands takes milliseconds.
    const { size } = statSync('/proc/self/fd');
    // One of those listed is the descriptor that lists the directory.
    return size > 0 ? size : readdirSync('/proc/self/fd').length - 1;
  } catch {
    return undefined;
  }
}

/** The process's own files, which are always in `/proc` and never hang; empty where there is no procfs. */
function ownFile(name: string): string {
  try {
    return readFileSync(`/proc/self/${name}`, 'utf8');
  } catch {
    return '';
  }
}

function metric(type: MetricType, name: string, help: string, source: string, labels: readonly string[] = []): MetricSpec {
  return { name, type, help, labels, source };
}
