import type { Memory } from './memory.ts';

export type Handle = number | bigint;
/** Takes handles, numbers and addresses; returns the return code. */
export type NvmlFunction = (...values: Handle[]) => number;

/** An open library. */
export interface Library {
  /** Path or name that was passed to the linker. */
  readonly path: string;
  /** Memory for answers that are read before the next call. */
  readonly scratch: Memory;
  /** Returns undefined when this driver has no such function; {@link Library.call} then returns 13. */
  bind(symbol: string, args: string): NvmlFunction | undefined;
  call(symbol: string, args: string, ...values: Handle[]): number;
  /** Unloads the library. No bound function may be called after that. */
  unload(): void;
  memory(size: number): Memory;
}
