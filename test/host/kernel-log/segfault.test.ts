import { describe, expect, it } from 'vitest';
import { parseKmsgRecord } from '../../../src/host/kernel-log/record.ts';
import { parseSegfault, type Segfault } from '../../../src/host/kernel-log/segfault.ts';

const parse = (text: string, priority = 6): Segfault | undefined => {
  const record = parseKmsgRecord(`${priority},1,2,-;${text}`);
  return record === undefined ? undefined : parseSegfault(record);
};
const NUMBERS = 'segfault at 10 ip 00007f3a1c2b3d4e sp 00007ffd0e1f2a30 error 4';

describe('a line about a segmentation fault', () => {
  it.each<[string, Segfault]>([
    [`python[4711]: ${NUMBERS} in libnccl.so.2.18.5[7f3a1c000000+5e00000]`, { pid: 4711, name: 'python', file: 'libnccl.so.2.18.5' }],
    [
      `pt_nccl_watchdg[4711]: ${NUMBERS} in libnccl.so.2[33d4e,7f3a1c000000+5e00000] likely on CPU 3 (core 3, socket 0)`,
      { pid: 4711, name: 'pt_nccl_watchdg', file: 'libnccl.so.2' },
    ],
    [`train[9]: ${NUMBERS}`, { pid: 9, name: 'train' }],
    [`a b: [x][12]: ${NUMBERS} in train[400000+1000]`, { pid: 12, name: 'a b: [x]', file: 'train' }],
    [`[9]: ${NUMBERS}`, { pid: 9, name: '' }],
    [`x\\x0a\\x1b[31m[9]: ${NUMBERS}`, { pid: 9, name: 'x [31m' }],
  ])('is parsed: %s', (text, expected) => {
    expect(parse(text)).toEqual(expected);
  });

  it.each([
    `a[1]: segfault[4711]: ${NUMBERS} in libc.so.6[1000+1000]`,
    `[1]: segfault a[4711]: ${NUMBERS}`,
    `x\\x0a[1]: seg[4711]: ${NUMBERS}`,
  ])('has the PID of the kernel, whatever the name of the program is: %s', (text) => {
    expect(parse(text)?.pid).toBe(4711);
  });

  it.each([
    `a name of more than 15[4711]: ${NUMBERS}`,
    `python[4711]: segfault at zz ip 1 sp 1 error 4 in libnccl.so.2[1+1]`,
    `python[4711]: segfault at 10 ip 1 sp 1`,
    `python[4711]: ${NUMBERS} in libnccl.so.2`,
    `python[4711]: ${NUMBERS} in libnccl.so.2[1+1] and more`,
    `python[4711]: ${NUMBERS} in a[1]: ${NUMBERS} in libnccl.so.2[1+1]`,
    `traps: python[4711] general protection fault ip:1 sp:1 error:0 in libnccl.so.2[1+1]`,
    `audit: type=1701 python[4711]: ${NUMBERS} in libnccl.so.2[1+1]`,
    '',
  ])('is not taken from another line: %s', (text) => {
    expect(parse(text)).toBeUndefined();
  });

  it('is not taken from a record that a program wrote', () => {
    expect(parse(`python[4711]: ${NUMBERS}`, 14)).toBeUndefined();
  });
});
