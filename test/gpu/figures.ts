import { VALUES } from '../../src/probes/nvidia/values.ts';
import type { Page } from './page.ts';
import type { Line } from './report.ts';
import type { Printed, PrintedGpu } from './smi.ts';

/** What the page must have for one printed text. */
type Expected =
  | { readonly metric: string; readonly labels: Readonly<Record<string, string>>; readonly tolerance: Tolerance }
  | { readonly metric: string; readonly labels: Readonly<Record<string, string>>; readonly label: string };

/** How far two readings of one moment may be apart: the larger of a number and a share. */
interface Tolerance {
  readonly by: number;
  readonly share?: number;
}

/** One printed figure. */
export interface Figure {
  readonly section: string;
  readonly gpu?: string;
  readonly what: string;
  readonly text: string;
  /** Number of the text in the unit of the page; undefined when the program offers none, or for a text. */
  readonly number?: number | undefined;
  /** Absent when the agent has no such figure. */
  readonly expected?: Expected | undefined;
  /** Why the agent may have no such figure, although it knows what it is. */
  readonly mayBeMissing?: string | undefined;
}

/** Values that the agent does not ask the library for. */
const NOT_BY_LIBRARY: Partial<Readonly<Record<keyof typeof VALUES, string>>> = {
  targetCelsius: 'only by the command',
  graphicsVolts: 'only by the command',
  pcieTransmitBytesPerSecond: 'only by the command: the call of the library blocks for 20 ms',
  pcieReceiveBytesPerSecond: 'only by the command: the call of the library blocks for 20 ms',
};

const EXACT: Tolerance = { by: 0 };
/** The program prints whole MiB. */
const [MIB, ROUNDED] = [2 ** 20, 1e-6];
const TOLERANCES: Readonly<Record<string, Tolerance>> = {
  device_memory_used_bytes: { by: 2 * MIB, share: 0.005 },
  device_nvidia_bar1_memory_used_bytes: { by: 2 * MIB },
  device_temperature_celsius: { by: 1 },
  device_nvidia_temperature_margin_celsius: { by: 1 },
  device_power_watts: { by: 3, share: 0.05 },
  device_power_limit_watts: { by: 0.01 },
  device_utilization_ratio: { by: 0.06 },
  device_clock_hertz: { by: 15e6, share: 0.03 },
  device_fan_speed_ratio: { by: 0.02 },
  device_voltage_volts: { by: 0.02 },
  device_throttled_seconds_total: { by: 0.001 },
  device_nvidia_pcie_throughput_bytes_per_second: { by: 1e6, share: 1 },
};
const toleranceOf = (metric: string): Tolerance => TOLERANCES[metric] ?? (metric.endsWith('_bytes') ? { by: MIB } : EXACT);

const NOTHING =
  /^(?:\[?(?:N\/A|Not Supported|Not Available|Unknown Error|Insufficient Permissions|GPU requires reset|GPU is lost)\]?|None|-|)$/;
const WORDS: Readonly<Record<string, number>> = {
  Active: 1,
  'Not Active': 0,
  Enabled: 1,
  Disabled: 0,
  Yes: 1,
  No: 0,
};
/** Factors to the units of the page. */
const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  x: 1,
  C: 1,
  W: 1,
  V: 1,
  mV: 1e-3,
  '%': 0.01,
  MiB: MIB,
  MHz: 1e6,
  us: 1e-6,
  'KB/s': 1e3,
  'bank(s)': 1,
};

/** Number of a printed text. A text without a unit gets that of its column. */
export function numberOf(text: string, unit = ''): number | undefined {
  if (WORDS[text] !== undefined) return WORDS[text];
  const [, digits, printed] = /^P?(-?\d+(?:\.\d+)?) ?(\S*)$/.exec(text) ?? [];
  const factor = UNITS[printed === undefined || printed === '' ? unit : printed];
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor;
}

/** Every text of `nvidia-smi -q -x`. */
export function documentFigures({ driver, cuda, gpus }: Printed): readonly Figure[] {
  return gpus.flatMap((gpu) => [
    ...nodeFigures(gpu, driver, cuda),
    ...eccFigures(gpu),
    ...[...gpu.texts].filter(([path]) => !COUNTED.test(path)).map(([path, text]) => leafFigure(gpu, path, text)),
    ...processCount(gpu),
  ]);
}

const SECTION = 'nvidia-smi -q -x';
const of = ({ uuid }: PrintedGpu, what: string) => ({ section: SECTION, gpu: uuid, what });
const device = (gpu: string): Readonly<Record<string, string>> => ({ device: gpu });

function processCount(gpu: PrintedGpu): readonly Figure[] {
  if (gpu.processes === undefined) return [];
  const number = new Set(gpu.processes.map(({ pid }) => pid)).size;
  const expected = { metric: 'device_nvidia_processes', labels: device(gpu.uuid), tolerance: EXACT };
  return [{ ...of(gpu, 'processes'), text: String(number), number, expected }];
}

function nodeFigures(gpu: PrintedGpu, driver: string, cuda: string): readonly Figure[] {
  const label = (what: string, text: string, metric: string, name: string): Figure => ({
    ...of(gpu, what),
    text,
    expected: { metric, labels: device(gpu.uuid), label: name },
  });
  return [
    label('driver_version', driver, 'device_info', 'driver_version'),
    label('cuda_version', cuda, 'device_nvidia_info', 'cuda_version'),
  ];
}

/** Labels of the page by paths of the document. */
const LABELS: Readonly<Record<string, readonly [metric: string, label: string]>> = {
  uuid: ['device_info', 'uuid'],
  product_name: ['device_info', 'model'],
  serial: ['device_info', 'serial'],
  vbios_version: ['device_info', 'firmware'],
  minor_number: ['device_nvidia_info', 'minor'],
  product_brand: ['device_nvidia_info', 'brand'],
  product_architecture: ['device_nvidia_info', 'architecture'],
  board_part_number: ['device_nvidia_info', 'board_part'],
  gpu_part_number: ['device_nvidia_info', 'gpu_part'],
  compute_mode: ['device_nvidia_info', 'compute_mode'],
  gsp_firmware_version: ['device_nvidia_info', 'gsp_firmware'],
};
/** Labels that the library has no call for. */
const LABELS_NOT_BY_LIBRARY: Readonly<Record<string, string>> = { gpu_part_number: 'only by the command: the library has no call for it' };
/** Words of the document that are label values of a series: the value of the label in small letters with `_`. */
const STATES: Readonly<Record<string, readonly [metric: string, label: string]>> = {
  gpu_recovery_action: ['device_nvidia_recovery_action', 'action'],
  'fabric/state': ['device_nvidia_fabric_state', 'state'],
  'fabric/health/summary': ['device_nvidia_fabric_health', 'state'],
};
/** A word that is a state although it looks like none. */
const STATE_OF_NOTHING: Readonly<Record<string, string>> = { gpu_recovery_action: 'None' };

/** Keys of the values of the agent by the path that this document has for them: the newest that holds a figure. */
function keyAt(gpu: PrintedGpu, path: string): keyof typeof VALUES | undefined {
  const holds = (each: string): boolean => numberOf(gpu.texts.get(each) ?? '') !== undefined;
  return (Object.keys(VALUES) as (keyof typeof VALUES)[]).find((key) => {
    const { paths } = VALUES[key];
    return (paths.find(holds) ?? paths.find((each) => gpu.texts.has(each))) === path;
  });
}

function leafFigure(gpu: PrintedGpu, path: string, text: string): Figure {
  const [metric = '', label = ''] = LABELS[path] ?? [];
  if (label !== '')
    return {
      ...of(gpu, path),
      text,
      expected: { metric, labels: device(gpu.uuid), label },
      mayBeMissing: LABELS_NOT_BY_LIBRARY[path],
    };
  const [stateMetric = '', stateLabel = ''] = STATES[path] ?? [];
  if (stateLabel !== '') {
    const isState = text === STATE_OF_NOTHING[path] || !NOTHING.test(text);
    const wanted = text.toLowerCase().replaceAll(' ', '_');
    return {
      ...of(gpu, path),
      text: isState ? wanted : text,
      expected: { metric: stateMetric, labels: device(gpu.uuid), label: stateLabel },
    };
  }
  if (path === 'pci/pci_bus_id') {
    // The program prints eight digits of the domain, the kernel four.
    const address = text.toLowerCase().replace(/^0{4}(?=[\da-f]{4}:)/, '');
    return { ...of(gpu, path), text: address, expected: { metric: 'device_info', labels: device(gpu.uuid), label: 'pci_address' } };
  }
  const key = keyAt(gpu, path);
  if (key === undefined) return { ...of(gpu, path), text };
  const { metric: value, labels = {} } = VALUES[key];
  return {
    ...of(gpu, path),
    text,
    number: numberOf(text),
    expected: { metric: value.name, labels: { ...device(gpu.uuid), ...labels }, tolerance: toleranceOf(value.name) },
    mayBeMissing: NOT_BY_LIBRARY[key],
  };
}

/** Elements of one severity and memory below a period. Boards up to Volta count single and double bit errors instead. */
const COUNTED = /^ecc_errors\/(volatile|aggregate)\/(?:([sd]ram)_((?:un)?correctable)|(single|double)_bit\/(?!total)(\w+))/;

/** Newer documents split uncorrectable errors of SRAM by how they were found; the page has their sum. */
function eccFigures(gpu: PrintedGpu): readonly Figure[] {
  const sums = new Map<string, number | undefined>();
  const add = (name: string, number: number | undefined): void => {
    const known = sums.get(name);
    sums.set(name, number === undefined ? known : (known ?? 0) + number);
  };
  for (const [path, text] of gpu.texts) {
    const [, period, memory, severity, bits, place = ''] = COUNTED.exec(path) ?? [];
    if (period === undefined) continue;
    const ours = severity ?? (bits === 'single' ? 'correctable' : 'uncorrectable');
    add(period === 'volatile' ? `volatile ${ours} of all memories` : `aggregate ${ours} ${memory ?? place}`, numberOf(text));
  }
  return [...sums].map(([name, number]): Figure => {
    const [period, severity = '', location = ''] = name.split(' ');
    const labels =
      period === 'volatile'
        ? { metric: 'device_errors_total', labels: { ...device(gpu.uuid), kind: `ecc_${severity}` } }
        : { metric: 'device_nvidia_ecc_errors_total', labels: { ...device(gpu.uuid), severity, location } };
    const text = number === undefined ? 'N/A' : String(number);
    return { ...of(gpu, `ecc_errors: ${name}`), text, number, expected: { ...labels, tolerance: EXACT } };
  });
}

/** Memory and multiprocessors of MIG instances. `idOf` gives the device of an instance by the ids of its GPU and compute instance. */
export function instanceFigures(gpu: PrintedGpu, idOf: (gi: string, ci: string) => string | undefined): readonly Figure[] {
  const idsOf = (texts: ReadonlyMap<string, string>): string[] => ['gpu', 'compute'].map((kind) => texts.get(`${kind}_instance_id`) ?? '');
  return gpu.instances.flatMap((texts) => {
    const [gi = '', ci = ''] = idsOf(texts);
    const isShared = gpu.instances.filter((other) => idsOf(other)[0] === gi).length > 1;
    const memory = isShared ? 'device_nvidia_gpu_instance_memory' : 'device_memory';
    const series: Readonly<Record<string, string>> = {
      'fb_memory_usage/total': `${memory}_total_bytes`,
      'fb_memory_usage/used': `${memory}_used_bytes`,
      'device_attributes/shared/multiprocessor_count': 'device_nvidia_mig_multiprocessors',
    };
    return [...texts].map(([path, text]): Figure => {
      const metric = series[path];
      const figure = { ...of(gpu, `instance ${gi}/${ci}: ${path}`), text };
      if (metric === undefined) return figure;
      const labels = device(idOf(gi, ci) ?? `none of ${gi}/${ci}`);
      return { ...figure, number: numberOf(text), expected: { metric, labels, tolerance: toleranceOf(metric) } };
    });
  });
}

/** A column of a table: its unit and its series. */
type Column = readonly [unit: string, metric: string, labels?: Readonly<Record<string, string>>];
const power = (limit: string): Column => ['W', 'device_power_limit_watts', { limit }];
const clock = (name: string): Column => ['MHz', 'device_clock_hertz', { clock: name }];
const maximum = (name: string): Column => ['MHz', 'device_clock_max_hertz', { clock: name }];
const engine = (name: string): Column => ['%', 'device_utilization_ratio', { engine: name }];
const reason = (name: string): Column => ['', 'device_throttled', { reason: name }];

/** Fields of `--query-gpu` with numbers. */
export const QUERIED: Readonly<Record<string, Column>> = {
  'temperature.gpu': ['C', 'device_temperature_celsius', { sensor: 'gpu' }],
  'temperature.memory': ['C', 'device_temperature_celsius', { sensor: 'memory' }],
  'utilization.gpu': engine('gpu'),
  'utilization.memory': engine('memory'),
  'memory.total': ['MiB', 'device_memory_total_bytes'],
  'memory.used': ['MiB', 'device_memory_used_bytes'],
  'memory.reserved': ['MiB', 'device_memory_reserved_bytes'],
  'power.draw.instant': ['W', 'device_power_watts', { sensor: 'gpu' }],
  'power.draw.average': ['W', 'device_power_watts', { sensor: 'gpu_average' }],
  'enforced.power.limit': power('enforced'),
  'power.limit': power('requested'),
  'power.default_limit': power('default'),
  'power.min_limit': power('minimum'),
  'power.max_limit': power('maximum'),
  'clocks.gr': clock('graphics'),
  'clocks.sm': clock('sm'),
  'clocks.mem': clock('memory'),
  'clocks.video': clock('video'),
  'clocks.max.gr': maximum('graphics'),
  'clocks.max.sm': maximum('sm'),
  'clocks.max.mem': maximum('memory'),
  'fan.speed': ['%', 'device_fan_speed_ratio', { fan: '0' }],
  pstate: ['', 'device_nvidia_performance_state'],
  persistence_mode: ['', 'device_nvidia_persistence_mode_enabled'],
  'pcie.link.gen.gpucurrent': ['', 'device_pcie_link_generation'],
  'pcie.link.gen.max': ['', 'device_pcie_link_max_generation'],
  'pcie.link.width.current': ['', 'device_pcie_link_width_lanes'],
  'pcie.link.width.max': ['', 'device_pcie_link_max_width_lanes'],
  'ecc.mode.current': ['', 'device_nvidia_ecc_mode_enabled', { when: 'now' }],
  'ecc.mode.pending': ['', 'device_nvidia_ecc_mode_enabled', { when: 'pending' }],
  'ecc.errors.corrected.volatile.total': ['', 'device_errors_total', { kind: 'ecc_correctable' }],
  'ecc.errors.uncorrected.volatile.total': ['', 'device_errors_total', { kind: 'ecc_uncorrectable' }],
  'mig.mode.current': ['', 'device_nvidia_mig_mode_enabled', { when: 'now' }],
  'mig.mode.pending': ['', 'device_nvidia_mig_mode_enabled', { when: 'pending' }],
  'encoder.stats.sessionCount': ['', 'device_nvidia_encoder_sessions'],
  'clocks_event_reasons.gpu_idle': reason('gpu_idle'),
  'clocks_event_reasons.sw_power_cap': reason('sw_power_cap'),
  'clocks_event_reasons.hw_slowdown': reason('hw_slowdown'),
  'clocks_event_reasons.hw_thermal_slowdown': reason('hw_thermal_slowdown'),
  'clocks_event_reasons.sw_thermal_slowdown': reason('sw_thermal_slowdown'),
};
/** Fields with texts. */
export const QUERIED_LABELS: Readonly<Record<string, readonly [metric: string, label: string]>> = {
  uuid: ['device_info', 'uuid'],
  name: ['device_info', 'model'],
  serial: ['device_info', 'serial'],
  vbios_version: ['device_info', 'firmware'],
  driver_version: ['device_info', 'driver_version'],
  compute_mode: ['device_nvidia_info', 'compute_mode'],
  index: ['device_nvidia_info', 'index'],
};
/** Columns of `dmon`. Its utilization is that of another moment than the page's. */
const MONITORED: Readonly<Record<string, Column>> = {
  pwr: ['W', 'device_power_watts', { sensor: 'gpu' }],
  gtemp: ['C', 'device_temperature_celsius', { sensor: 'gpu' }],
  mtemp: ['C', 'device_temperature_celsius', { sensor: 'memory' }],
  sm: engine('gpu'),
  mem: engine('memory'),
  enc: engine('encoder'),
  dec: engine('decoder'),
  jpg: engine('jpeg'),
  ofa: engine('ofa'),
  mclk: clock('memory'),
  pclk: clock('sm'),
  fb: ['MiB', 'device_memory_used_bytes'],
  bar1: ['MiB', 'device_nvidia_bar1_memory_used_bytes'],
};
/** `dmon` prints whole watts and percents, of its own second. */
const LOOSE: Readonly<Record<string, Tolerance>> = {
  device_power_watts: { by: 5, share: 0.1 },
  device_utilization_ratio: { by: 0.1 },
};

const rowFigures = (
  section: string,
  gpu: string,
  row: ReadonlyMap<string, string>,
  columns: Readonly<Record<string, Column>>,
  tolerances: Readonly<Record<string, Tolerance>> = {},
): readonly Figure[] =>
  [...row].map(([what, text]) => {
    const [unit, metric, labels] = columns[what] ?? [];
    if (metric === undefined) return { section, gpu, what, text };
    const tolerance = tolerances[metric] ?? toleranceOf(metric);
    return {
      section,
      gpu,
      what,
      text,
      number: numberOf(text, unit),
      expected: { metric, labels: { ...device(gpu), ...labels }, tolerance },
    };
  });

/** Figures of `--query-gpu`: rows with at least the UUID. */
export function queryFigures(rows: readonly ReadonlyMap<string, string>[]): readonly Figure[] {
  const section = 'nvidia-smi --query-gpu';
  return rows.flatMap((row) => {
    const gpu = row.get('uuid') ?? '';
    return [
      ...Object.entries(QUERIED_LABELS).flatMap(([what, [metric, label]]): Figure[] =>
        row.has(what) ? [{ section, gpu, what, text: row.get(what) ?? '', expected: { metric, labels: device(gpu), label } }] : [],
      ),
      ...rowFigures(section, gpu, new Map([...row].filter(([what]) => QUERIED_LABELS[what] === undefined)), QUERIED),
    ];
  });
}

/** Figures of `dmon`, whose rows are in the order of the GPUs. */
export const monitorFigures = (rows: readonly ReadonlyMap<string, string>[], uuids: readonly string[]): readonly Figure[] =>
  rows.flatMap((row) => {
    const gpu = uuids[Number(row.get('gpu'))] ?? '';
    return rowFigures('nvidia-smi dmon', gpu, new Map([...row].filter(([what]) => what !== 'gpu')), MONITORED, LOOSE);
  });

/** Compares a figure with the pages before and after it was printed: what moves in between may be anything from one to the other. */
export function compared({ section, gpu, what, text, number, expected, mayBeMissing }: Figure, before: Page, after: Page): Line {
  const line = { section, gpu, what, expected: text };
  if (expected === undefined) return { ...line, agent: '', verdict: 'not offered', note: 'the page has no such series' };
  if ('label' in expected) {
    const agent = after.label(expected.metric, expected.label, expected.labels) ?? '';
    if (agent === '' && NOTHING.test(text)) return { ...line, agent, verdict: 'not offered' };
    if (agent === '' && mayBeMissing !== undefined) return { ...line, agent, verdict: 'not offered', note: mayBeMissing };
    return { ...line, agent, verdict: agent === text ? 'equal' : 'different' };
  }
  const values = [before, after].flatMap((page) => page.value(expected.metric, expected.labels) ?? []);
  const agent = [...new Set(values)].join(' to ');
  if (number === undefined) {
    if (values.length > 0) return { ...line, agent, verdict: 'different', note: 'nvidia-smi offers none' };
    return { ...line, agent, verdict: 'not offered' };
  }
  if (values.length === 0 && mayBeMissing !== undefined) return { ...line, agent, verdict: 'not offered', note: mayBeMissing };
  const { by, share = 0 } = expected.tolerance;
  const allowed = Math.max(by, share * Math.abs(number), ROUNDED * Math.abs(number));
  const isNear = values.length > 0 && number >= Math.min(...values) - allowed && number <= Math.max(...values) + allowed;
  return { ...line, agent, verdict: isNear ? 'equal' : 'different' };
}
