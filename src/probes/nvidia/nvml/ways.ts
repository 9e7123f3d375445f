import type { Getter, Way } from './getter.ts';
import { MEMORY } from './layouts.ts';
import type { Memory } from './memory.ts';
import type { Values } from './sheet.ts';

/** What the tables of getters are made of: functions that give a number, a text or several, and their units. */

export type Convert = (value: number) => string | number | undefined;
export const same: Convert = (value) => value;
export const percent: Convert = (value) => value / 100;
export const megahertz: Convert = (value) => value * 1e6;
export const milliwatts: Convert = (value) => value / 1_000;
export const digits: Convert = (value) => String(value);
export const flag: Convert = (value) => (value === 0 ? 0 : 1);

export const u32 = (symbol: string, path: string, convert: Convert = same, before: readonly number[] = []): Way => ({
  symbol,
  before,
  tell: (out, values) => {
    values[path] = convert(out.u32(0));
  },
});
export const u64 = (symbol: string, path: string, before: readonly number[] = []): Way => ({
  symbol,
  before,
  tell: (out, values) => {
    values[path] = out.u64(0);
  },
});
export const text = (symbol: string, path: string, length: number): Way => ({
  symbol,
  after: [length],
  tell: (out, values) => {
    values[path] = out.text(0, length);
  },
});
export const one = (path: string, ...ways: [Way, ...Way[]]): Getter => ({ ways, paths: [path] });
/** Several answers of 32 bits each. */
export const several = (symbol: string, paths: readonly string[], convert: Convert = same): Getter => ({
  paths,
  ways: [
    {
      symbol,
      outs: paths.length,
      tell: (out, values) => {
        for (const [index, path] of paths.entries()) values[path] = convert(out.u32(index * 8));
      },
    },
  ],
});

/** Of a `nvmlMemory_t`. */
export function usage(out: Memory, values: Values, path: string): void {
  values[`${path}/total`] = out.u64(MEMORY.total);
  values[`${path}/used`] = out.u64(MEMORY.used);
}

/** By kind of clock. */
export const CLOCKS = ['graphics_clock', 'sm_clock', 'mem_clock', 'video_clock'];

export const clock = (name: string, prefix: string, symbol: string): Getter =>
  one(`${prefix}/${name}`, u32(symbol, `${prefix}/${name}`, megahertz, [CLOCKS.indexOf(name)]));

export const LINK_GENERATION = 'pci/pci_gpu_link_info/pcie_gen';
export const LINK_WIDTH = 'pci/pci_gpu_link_info/link_widths';
