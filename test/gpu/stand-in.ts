import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { documentOf, topologyOf } from '../probes/nvidia/scripted-document.ts';
import { hopper, MIB, type ScriptedGpu, type ScriptedNode, scriptOf } from '../probes/nvidia/scripted-script.ts';
import { compiledLibrary } from '../support/compiled-library.ts';

/** What the stand-in of `nvidia-smi` prints. A test may change a text. */
export interface Prints {
  readonly document: string;
  readonly query: string;
  readonly dmon: string;
  readonly topology: string;
}

const PROGRAM = `#!/bin/sh
cd "$(dirname "$0")"
case "$1" in
  -q) cat document ;;
  dmon) cat dmon ;;
  topo) cat topology ;;
  --gpu-reset) echo "Resetting GPU is not supported"; exit 3 ;;
  --query-gpu=*)
    for field in $(echo "\${1#--query-gpu=}" | tr ',' ' '); do
      grep -q "^$field=" query || { echo "Field \\"$field\\" is not a valid field to query."; exit 2; }
    done
    for gpu in 0 1; do
      row=
      for field in $(echo "\${1#--query-gpu=}" | tr ',' ' '); do row="$row, $(grep "^$field=" query | cut -d= -f2- | cut -d'|' -f$((gpu + 1)))"; done
      echo "\${row#, }"
    done ;;
  *) exit 1 ;;
esac
`;

const LINKS = Object.fromEntries(Array.from({ length: 18 }, (_, link) => [`link.${link}`, 1]));
const SWITCHED = Object.fromEntries(Array.from({ length: 18 }, (_, link) => [`link.${link}.type`, 2]));
const boards: readonly ScriptedGpu[] = [hopper(0, { ...LINKS, ...SWITCHED }), hopper(1, { ...LINKS, ...SWITCHED })].map((gpu) => ({
  ...gpu,
  processes: [],
}));

const BOOT = 'proc/sys/kernel/random';

/** A machine of two GPUs without hardware: the stand-in library of the tests, and a program in the place of `nvidia-smi`, in agreement. */
export class StandIn {
  readonly root = mkdtempSync(join(tmpdir(), 'device-agent-stand-in-'));
  readonly library = join(this.root, 'libnvidia-ml.so.1');
  readonly program = join(this.root, 'nvidia-smi');
  readonly #loadFile = join(this.root, 'load');
  readonly #change: (prints: Prints) => Prints;
  readonly #watch: NodeJS.Timeout;
  #loaded = '';
  #writes = 0;

  constructor(change: (prints: Prints) => Prints = (prints) => prints) {
    this.#change = change;
    copyFileSync(compiledLibrary('test/probes/nvidia/stub/nvml.c'), this.library);
    copyFileSync(compiledLibrary('test/gpu/cuda.c'), join(this.root, 'libcuda.so.1'));
    for (const folder of ['dev', BOOT]) mkdirSync(join(this.root, folder), { recursive: true });
    writeFileSync(join(this.root, BOOT, 'boot_id'), 'b0070000-0000-4000-8000-000000000001\n');
    writeFileSync(join(this.root, 'dev/kmsg'), '');
    for (const { values } of boards) {
      const pci = join(this.root, 'sys/bus/pci/devices', String(values.bus_id).slice(4).toLowerCase());
      mkdirSync(pci, { recursive: true });
      for (const [file, text] of Object.entries({ vendor: '0x10de', class: '0x030200', numa_node: '0' }))
        writeFileSync(join(pci, file), `${text}\n`);
    }
    writeFileSync(this.program, PROGRAM);
    chmodSync(this.program, 0o755);
    this.#write({ gpus: boards });
    // The process that the stand-in for CUDA starts is told here, as a driver would tell it.
    this.#watch = setInterval(() => this.#look(), 50);
  }

  /** Words for the program: this machine in the place of a real one. */
  words(out: string, stages: string): string[] {
    const options = [
      `--path.sysfs=${this.root}/sys`,
      `--path.procfs=${this.root}/proc`,
      `--path.dev=${this.root}/dev`,
      `--probe.nvidia.nvml-library=${this.library}`,
    ];
    return [
      `--out=${out}`,
      `--smi=${this.program}`,
      `--procfs=${this.root}/proc`,
      `--stages=${stages}`,
      ...options.map((option) => `--agent=${option}`),
    ];
  }

  /** Environment in which a program finds the stand-in for CUDA. */
  get environment(): Readonly<Record<string, string>> {
    return { LD_LIBRARY_PATH: this.root, STAND_IN_LOAD: this.#loadFile };
  }

  remove(): void {
    clearInterval(this.#watch);
    rmSync(this.root, { recursive: true, force: true });
  }

  #look(): void {
    const told = existsSync(this.#loadFile) ? readFileSync(this.#loadFile, 'utf8').trim() : '';
    const [pid = '', bytes = ''] = told.split(' ');
    const isAlive = bytes !== '' && existsSync(`/proc/${pid}`);
    const loaded = isAlive ? told : '';
    if (loaded === this.#loaded) return;
    this.#loaded = loaded;
    const [first, ...others] = boards;
    if (first === undefined) return;
    const busy: ScriptedGpu = {
      ...first,
      values: { ...first.values, util_gpu: 98, memory_used: Number(first.values.memory_used) + Number(bytes) },
      fields: { ...first.fields, '186 0': 480_000 },
      processes: [`C ${pid} ${bytes}`],
    };
    this.#write({ gpus: [isAlive ? busy : first, ...others] });
  }

  #write(node: ScriptedNode): void {
    this.#writes += 1;
    // Each version has another length, so that a coarse clock cannot hide the change.
    this.#place(`${this.library}.script`, `${scriptOf(node)}# ${'x'.repeat(this.#writes)}\n`);
    const prints = this.#change({ document: documentOf(node), query: queryOf(node), dmon: dmonOf(node), topology: topologyOf(node) });
    for (const [name, text] of Object.entries(prints)) this.#place(join(this.root, name), text);
  }

  /** A reader sees the old text or the new one. */
  #place(file: string, text: string): void {
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
  }
}

type Print = (gpu: ScriptedGpu, index: number) => string | number;
const value =
  (name: string, divisor = 1): Print =>
  ({ values }) =>
    values[name] === undefined ? '[N/A]' : Number(values[name]) / divisor;
const text =
  (name: string): Print =>
  ({ values }) =>
    values[name] ?? '[N/A]';
const field =
  (id: string, divisor = 1): Print =>
  ({ fields = {} }) =>
    fields[id] === undefined ? '[N/A]' : Number(fields[id]) / divisor;
const flag =
  (name: string): Print =>
  ({ values }) =>
    Number(values[name]) === 0 ? 'Disabled' : 'Enabled';
const reason =
  (bit: number): Print =>
  ({ values }) =>
    (Number(values.reasons) & bit) === 0 ? 'Not Active' : 'Active';

/** Fields of `--query-gpu`, without those of a newer program: they must be left out, and not end the query. */
const QUERIED: Readonly<Record<string, Print>> = {
  uuid: text('uuid'),
  name: text('name'),
  serial: text('serial'),
  vbios_version: text('vbios'),
  driver_version: () => '590.44.01',
  compute_mode: () => 'Default',
  index: (_, index) => index,
  'temperature.gpu': value('temperature'),
  'temperature.memory': field('82 0'),
  'utilization.gpu': value('util_gpu'),
  'utilization.memory': value('util_memory'),
  'memory.total': value('memory_total', MIB),
  'memory.used': value('memory_used', MIB),
  'memory.reserved': value('memory_reserved', MIB),
  'power.draw.instant': field('186 0', 1_000),
  'power.draw.average': field('185 0', 1_000),
  'enforced.power.limit': value('limit_enforced', 1_000),
  'power.limit': value('limit_requested', 1_000),
  'power.default_limit': value('limit_default', 1_000),
  'power.min_limit': value('limit_minimum', 1_000),
  'power.max_limit': value('limit_maximum', 1_000),
  'clocks.gr': value('clock_graphics'),
  'clocks.sm': value('clock_sm'),
  'clocks.mem': value('clock_memory'),
  'clocks.video': value('clock_video'),
  'clocks.max.gr': value('max_clock_graphics'),
  'clocks.max.sm': value('max_clock_sm'),
  'clocks.max.mem': value('max_clock_memory'),
  'fan.speed': value('fan'),
  pstate: ({ values }) => `P${values.pstate}`,
  persistence_mode: flag('persistence'),
  'pcie.link.gen.gpucurrent': value('pcie_generation'),
  'pcie.link.gen.max': value('pcie_generation_max'),
  'pcie.link.width.current': value('pcie_width'),
  'pcie.link.width.max': value('pcie_width_max'),
  'ecc.mode.current': flag('ecc_current'),
  'ecc.mode.pending': flag('ecc_pending'),
  'ecc.errors.corrected.volatile.total': ({ values }) => Number(values['ecc.0.0.7']) + Number(values['ecc.0.0.2']),
  'ecc.errors.uncorrected.volatile.total': ({ values }) => Number(values['ecc.1.0.7']) + Number(values['ecc.1.0.2']),
  'mig.mode.current': flag('mig_current'),
  'mig.mode.pending': flag('mig_pending'),
  'clocks_event_reasons.gpu_idle': reason(0x1),
  'clocks_event_reasons.sw_power_cap': reason(0x4),
  'clocks_event_reasons.hw_slowdown': reason(0x8),
  'clocks_event_reasons.hw_thermal_slowdown': reason(0x40),
};

/** A line for each field, with the texts of the GPUs between `|`. */
const queryOf = ({ gpus }: ScriptedNode): string =>
  Object.entries(QUERIED)
    .map(([name, print]) => `${name}=${gpus.map(print).join('|')}\n`)
    .join('');

const MONITORED: Readonly<Record<string, Print>> = {
  gpu: (_, index) => index,
  pwr: (gpu) => Math.round(Number(gpu.fields?.['186 0']) / 1_000),
  gtemp: value('temperature'),
  mtemp: field('82 0'),
  sm: value('util_gpu'),
  mem: value('util_memory'),
  enc: value('util_encoder'),
  dec: value('util_decoder'),
  jpg: value('util_jpeg'),
  ofa: value('util_ofa'),
  mclk: value('clock_memory'),
  pclk: value('clock_sm'),
  fb: value('memory_used', MIB),
  bar1: value('bar1_used', MIB),
  ccpm: () => 0,
  sbecc: () => 2,
  dbecc: () => 0,
};

function dmonOf({ gpus }: ScriptedNode): string {
  const names = Object.keys(MONITORED).map((name) => name.padStart(6));
  const rows = gpus.map((gpu, index) =>
    Object.values(MONITORED)
      .map((print) => String(print(gpu, index)).padStart(6))
      .join(' '),
  );
  return `# ${names.join(' ')}\n# ${names.map(() => '-'.padStart(6)).join(' ')}\n${rows.join('\n')}\n`;
}
