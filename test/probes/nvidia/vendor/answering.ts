import type { Handle, Library, NvmlFunction } from '../../../../src/probes/nvidia/nvml/library.ts';
import { Memory } from '../../../../src/probes/nvidia/nvml/library.ts';

/** One call of the agent: its function, its numbers in order, without handles and pointers, and the first pointer. */
export interface AskedCall {
  readonly symbol: string;
  readonly numbers: readonly number[];
  readonly pointer: number;
}

/** Returns the return code of a call; undefined means not supported. It may write an answer. */
export type Answerer = (call: AskedCall, library: LibraryOfTest) => number | undefined;

const NOT_SUPPORTED = 3;
/** Addresses at which nothing is: they only tell one memory from another. */
const FIRST_ADDRESS = 0x1000;
const SCRATCH_BYTES = 4_096;

/** A library whose answers a test decides, so that it sees what the agent asks, and as what it takes an answer. */
export class LibraryOfTest implements Library {
  readonly path = '';
  readonly scratch: Memory;
  readonly calls: AskedCall[] = [];
  /** What it answers from now on. */
  answer: Answerer;
  readonly #memories: Memory[] = [];
  #nextAddress = FIRST_ADDRESS;

  constructor(answer: Answerer) {
    this.answer = answer;
    this.scratch = this.memory(SCRATCH_BYTES);
  }

  bind(symbol: string, types: string): NvmlFunction {
    return (...values) => this.call(symbol, types, ...values);
  }

  call(symbol: string, types: string, ...values: Handle[]): number {
    const numbers = values.filter((_, at) => 'uiq'.includes(types[at] as string)).map(Number);
    const call = { symbol, numbers, pointer: Number(values[types.indexOf('p')] ?? 0) };
    this.calls.push(call);
    return this.answer(call, this) ?? NOT_SUPPORTED;
  }

  unload(): void {}

  memory(size: number): Memory {
    const address = this.#nextAddress;
    this.#nextAddress += size + FIRST_ADDRESS;
    const memory = new Memory(size, () => BigInt(address));
    this.#memories.push(memory);
    return memory;
  }

  read(address: number, bytes: number): Buffer {
    const found = this.#memories.map((memory) => memory.copyFrom(address)).find((each) => each !== undefined);
    return (found ?? Buffer.alloc(bytes)).subarray(0, bytes);
  }

  write(address: number, bytes: Uint8Array): void {
    this.#memories.some((memory) => memory.writeAt(address, bytes));
  }

  u32(address: number): number {
    return this.read(address, 4).readUInt32LE();
  }

  setU32(address: number, value: number): void {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(value);
    this.write(address, bytes);
  }

  setU64(address: number, value: bigint): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(value);
    this.write(address, bytes);
  }
}
