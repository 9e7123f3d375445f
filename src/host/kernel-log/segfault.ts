import { defined } from '../../model/defined.ts';
import type { KmsgRecord } from './record.ts';

/** A program that crashed because of a wrong memory access. */
export interface Segfault {
  /** Of the thread that crashed, in the host's PID namespace. The PID of its process when the main thread crashed. */
  readonly pid: number;
  /** Name of that thread. The program chooses it. */
  readonly name: string;
  /** Name of the mapped file whose code crashed; absent when the code is in no file. */
  readonly file?: string;
}

/**
 * `name[pid]: segfault at … ip … sp … error … in file[start+size]`, from show_signal_msg and print_vma_addr of the kernel, x86 only. A name
 * has 15 bytes at most, which are too few to imitate the numbers after it, so the PID is that of the kernel.
 */
const SEGFAULT =
  /^(.{0,15})\[(\d{1,10})\]: segfault at [0-9a-f]{1,16} ip [0-9a-f]{1,16} sp [0-9a-f]{1,16} error [0-9a-f]{1,8}(?: in ([^[\]]{1,255})\[(?:[0-9a-f]{1,16},)?[0-9a-f]{1,16}\+[0-9a-f]{1,16}\])?(?: likely on CPU \d{1,5} \(core \d{1,5}, socket \d{1,5}\))?\s*$/;

/** Parses one record. Undefined for another record, and for one that a program wrote. */
export function parseSegfault({ origin, text }: Pick<KmsgRecord, 'origin' | 'text'>): Segfault | undefined {
  const match = origin === 'about-process' ? SEGFAULT.exec(text) : null;
  if (match === null) return undefined;
  const [, name = '', pid, file] = match;
  return { pid: Number(pid), name, ...defined({ file }) };
}
