import { defined } from '../../model/defined.ts';
import { parseCount } from './values.ts';

/** Use of a board by the programs of the node. */
export interface KdsUse {
  readonly outstanding?: number | bigint;
  readonly executions?: number | bigint;
  readonly clients?: number | bigint;
  /** In the host's PID namespace. */
  readonly pids: readonly number[];
}

/** Parses `kdsstat`: lines of name and number, then `client pid:` and one number per line. Undefined when no value is known. */
export function parseKdsStat(text: string): KdsUse | undefined {
  const field = (name: string): number | bigint | undefined =>
    parseCount(new RegExp(`^${name}:\\s*(\\d+)\\s*$`, 'm').exec(text)?.[1] ?? '');
  const outstanding = field('outstanding execs');
  const executions = field('total execs');
  const clients = field('contexts');
  if (outstanding === undefined && executions === undefined && clients === undefined) return undefined;
  const tail = /^client pid:[^\S\n]*\n([\s\S]*)$/m.exec(text)?.[1] ?? '';
  const pids = [...tail.matchAll(/^\s*(\d{1,10})\s*$/gm)].map((match) => Number(match[1]));
  return defined({ outstanding, executions, clients, pids: [...new Set(pids)].sort((a, b) => a - b) });
}

/** Used device memory of all banks. */
export interface MemoryUse {
  readonly bytes: number | bigint;
  readonly buffers: number;
}

/**
 * Parses `memstat_raw`: one line `bytes buffers 0` per bank, then a line of -22 (printed signed or unsigned), then lines per kind of
 * buffer. The last lines count the same bytes again, so they are ignored.
 */
export function parseMemStat(text: string): MemoryUse | undefined {
  let bytes = 0n;
  let buffers = 0;
  let banks = 0;
  for (const line of text.split('\n')) {
    const fields = line.trim().split(/\s+/);
    if (fields[1]?.startsWith('-') || fields[0]?.startsWith('-')) break;
    if (fields.length < 2 || !fields.slice(0, 2).every((field) => /^\d{1,20}$/.test(field))) continue;
    bytes += BigInt(fields[0] as string);
    buffers += Number(fields[1]);
    banks += 1;
  }
  if (banks === 0) return undefined;
  return { bytes: bytes <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(bytes) : bytes, buffers };
}

/** Parses `clock_freqs`, one line in MHz per clock. Returns hertz. 0 means that the shell lacks the clock and gives undefined. */
export function parseClocks(text: string): readonly (number | undefined)[] | undefined {
  const lines = text.trim().split('\n');
  if (!lines.every((line) => /^\s*\d{1,6}\s*$/.test(line))) return undefined;
  return lines.map((line) => (Number(line) === 0 ? undefined : Number(line) * 1_000_000));
}

/** Returns the board in the name of a shell: `u250` for `xilinx_u250_gen3x16_xdma_shell_4_1`. */
export function boardOfShell(vbnv: string): string | undefined {
  const board = vbnv.trim().split('_')[1];
  return board === undefined || board === '' ? undefined : board;
}

/** Parses `xclbinuuid`: one UUID per slot; the nil UUID is an empty slot. Undefined when nothing is loaded. */
export function parseLoaded(text: string): string | undefined {
  const ids = text.split('\n').map((line) => line.trim().toLowerCase());
  const loaded = ids.filter((id) => /^[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$/.test(id) && !/^[0-]+$/.test(id));
  return loaded.length === 0 ? undefined : loaded.join(',');
}

/** Parses `vmr_status`: `KEY:0` or `KEY:1` on each line. */
export function parseBootFlags(text: string): ReadonlyMap<string, boolean> {
  return new Map([...text.matchAll(/^\s*(\w+)\s*:\s*([01])\s*$/gm)].map((match) => [match[1] as string, match[2] === '1']));
}
