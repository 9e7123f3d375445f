import { readdirSync, statSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import type { MetricSpec, MetricType } from '../model/metric.ts';
import { labelText } from './labels.ts';
import type { ProcessFiles } from './process-files.ts';
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

export function addProcess(page: SeriesPage, files: ProcessFiles): void {
  const cpu = process.cpuUsage();
  page.add(processMetrics.cpuUser, '', cpu.user / 1e6);
  page.add(processMetrics.cpuSystem, '', cpu.system / 1e6);
  page.add(processMetrics.cpu, '', (cpu.user + cpu.system) / 1e6);
  page.add(processMetrics.start, '', Math.round(performance.timeOrigin) / 1_000);
  page.add(processMetrics.loopActive, '', performance.eventLoopUtilization().active / 1_000);
  page.add(processMetrics.version, labelText({ version: process.version }), 1);
  addMemory(page, files.text('status'));
  addDescriptors(page, files.text('limits'));
}

/** Without `process.memoryUsage`, which opens a file and throws where no descriptor is left. */
function addMemory(page: SeriesPage, status: string): void {
  const heap = getHeapStatistics();
  page.add(processMetrics.heapTotal, '', heap.total_heap_size);
  page.add(processMetrics.heapUsed, '', heap.used_heap_size);
  page.add(processMetrics.external, '', heap.external_memory);
  for (const [metric, name] of [[processMetrics.resident, 'VmRSS'] as const, [processMetrics.virtual, 'VmSize'] as const]) {
    const kibibytes = numberAfter(status, `\n${name}:`);
    if (kibibytes !== undefined) page.add(metric, '', kibibytes * 1_024);
  }
}

function addDescriptors(page: SeriesPage, limits: string): void {
  // The first of two numbers; where there is no limit, there is none.
  const limit = numberAfter(limits, '\nMax open files');
  if (limit !== undefined) page.add(processMetrics.maxFds, '', limit);
  const open = openDescriptors();
  if (open !== undefined) page.add(processMetrics.openFds, '', open);
}

/** The number that stands, after blanks, behind a word; undefined where there is none. */
function numberAfter(text: string, word: string): number | undefined {
  const at = text.indexOf(word);
  const number = at < 0 ? Number.NaN : Number.parseInt(text.slice(at + word.length, at + word.length + 40), 10);
  return Number.isNaN(number) ? undefined : number;
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

function metric(type: MetricType, name: string, help: string, source: string, labels: readonly string[] = []): MetricSpec {
  return { name, type, help, labels, source };
}
