import { execFileSync } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';
import { XMLParser } from 'fast-xml-parser';

const TIMEOUT_MS = 60_000;
const MOST_BYTES = 64 * 2 ** 20;

/** A GPU of `nvidia-smi -q -x`: texts by their paths. */
export interface PrintedGpu {
  readonly uuid: string;
  readonly texts: ReadonlyMap<string, string>;
  /** Absent when the program prints none, because the board or the driver has no such list. */
  readonly processes: readonly { readonly pid: number; readonly memory: string }[] | undefined;
  /** Instances are printed without their UUIDs: by the ids of their GPU instance and compute instance. */
  readonly instances: readonly ReadonlyMap<string, string>[];
}

export interface Printed {
  readonly driver: string;
  readonly cuda: string;
  readonly gpus: readonly PrintedGpu[];
}

/** The program of the driver. Each method starts it once. */
export class Smi {
  readonly #program: string;

  constructor(program: string) {
    this.#program = program;
  }

  run(...words: readonly string[]): string {
    return execFileSync(this.#program, words, {
      encoding: 'utf8',
      timeout: TIMEOUT_MS,
      maxBuffer: MOST_BYTES,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  }

  document(): Printed {
    return parseDocument(this.run('-q', '-x'));
  }

  /** Texts of the fields for each GPU, and the fields that this program does not know. */
  query(fields: readonly string[]): { readonly rows: readonly ReadonlyMap<string, string>[]; readonly unknown: readonly string[] } {
    const unknown: string[] = [];
    for (;;) {
      const asked = fields.filter((field) => !unknown.includes(field));
      try {
        const rows = this.run(`--query-gpu=${asked.join(',')}`, '--format=csv,noheader,nounits')
          .trim()
          .split('\n');
        return { rows: rows.map((row) => new Map(row.split(', ').map((text, at) => [asked[at] ?? '', text.trim()]))), unknown };
      } catch (error) {
        const refused = /Field "([^"]+)" is not a valid field/.exec(textOf(error))?.[1];
        if (refused === undefined || !asked.includes(refused)) throw error;
        unknown.push(refused);
      }
    }
  }

  /** One row of `dmon` for each GPU, by the names of its columns. `-` is absent. */
  dmon(): readonly ReadonlyMap<string, string>[] {
    const lines = this.run('dmon', '-c', '1', '-s', 'pucme').trim().split('\n');
    const [head = ''] = lines.filter((line) => /^#\s*gpu/i.test(line));
    const names = head.replace(/^#\s*/, '').trim().split(/\s+/);
    return lines
      .filter((line) => !line.startsWith('#'))
      .map(
        (line) =>
          new Map(
            line
              .trim()
              .split(/\s+/)
              .map((text, at) => [names[at] ?? '', text]),
          ),
      );
  }

  /** Cells of `topo -m` between GPUs, by their indexes, such as `NV18` or `SYS`; and the NUMA node of each. */
  topology(): { readonly cells: readonly (readonly string[])[]; readonly numaNodes: readonly string[] } {
    // The program underlines its head for a terminal.
    const lines = stripVTControlCharacters(this.run('topo', '-m')).split('\n');
    const head = (lines[0] ?? '').split('\t').map((word) => word.trim());
    const gpus = head.filter((name) => /^GPU\d+$/.test(name)).length;
    const numa = head.indexOf('NUMA Affinity');
    const rows = lines.filter((line) => /^GPU\d+\t/.test(line)).map((line) => line.split('\t').map((word) => word.trim()));
    return { cells: rows.map((row) => row.slice(1, 1 + gpus)), numaNodes: rows.map((row) => (numa < 0 ? '' : (row[numa] ?? ''))) };
  }
}

const textOf = (error: unknown): string => {
  const { stdout = '', stderr = '', message = '' } = error as { stdout?: string; stderr?: string; message?: string };
  return `${stdout}${stderr}${message}`;
};

type Node = Readonly<Record<string, unknown>>;
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value);
const listOf = (value: unknown): readonly Node[] => (Array.isArray(value) ? value : [value]).filter(isNode);

/** Lists of a GPU that are not figures: they are read by themselves, or are long tables of what could be set. */
const LISTS = new Set(['processes', 'mig_devices', 'supported_clocks', 'accounted_processes']);

/** Another parser than the agent's, with nothing but the tree. */
function parseDocument(text: string): Printed {
  const parser = new XMLParser({ ignoreAttributes: false, attributeNamePrefix: '@', parseTagValue: false, trimValues: true });
  // The program prints names of processes as they are, also those that break the document.
  const log: Node = parser.parse(text.replaceAll(/<process_name>.*?<\/process_name>/gs, '')).nvidia_smi_log ?? {};
  const word = (...names: readonly string[]): string =>
    String(names.map((name) => log[name]).find((value) => value !== undefined && value !== 'N/A') ?? '');
  return {
    driver: word('driver_version', 'kmd_version'),
    cuda: word('cuda_version', 'cuda_umd_version'),
    gpus: listOf(log.gpu).map((gpu): PrintedGpu => {
      const { processes } = gpu;
      const isList = processes === '' || isNode(processes);
      const instances = isNode(gpu.mig_devices) ? listOf(gpu.mig_devices.mig_device) : [];
      return {
        uuid: String(gpu.uuid),
        texts: leavesOf(gpu),
        processes: isList
          ? listOf(isNode(processes) ? processes.process_info : []).map(({ pid, used_memory }) => ({
              pid: Number(pid),
              memory: String(used_memory),
            }))
          : undefined,
        instances: instances.map(leavesOf),
      };
    }),
  };
}

function leavesOf(node: Node): ReadonlyMap<string, string> {
  const leaves = new Map<string, string>();
  const walk = (at: Node, path: string): void => {
    for (const [name, value] of Object.entries(at)) {
      if (name.startsWith('@') || (path === '' && LISTS.has(name))) continue;
      const place = path === '' ? name : `${path}/${name}`;
      const listed = Array.isArray(value) ? value.entries() : undefined;
      for (const [index, each] of listed ?? []) {
        if (isNode(each)) walk(each, `${place}[${index}]`);
        else leaves.set(`${place}[${index}]`, String(each));
      }
      if (listed !== undefined) continue;
      if (isNode(value)) walk(value, place);
      else leaves.set(place, String(value));
    }
  };
  walk(node, '');
  return leaves;
}
