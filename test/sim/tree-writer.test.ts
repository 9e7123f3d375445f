import { closeSync, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TreeWriter } from '../../src/sim/tree-writer.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tree-'));
});
afterEach(() => rmSync(root, { recursive: true }));

const FILE = 'sys/class/card/state';
const text = (): string => readFileSync(join(root, FILE), 'utf8');

describe('a file that becomes a link, and a file again', () => {
  it('is never absent, and an open descriptor reads nothing of it any more', () => {
    const writer = new TreeWriter(root);
    writer.apply({ files: { [FILE]: 'up\n' }, links: {} });
    const open = openSync(join(root, FILE), 'r');
    writer.apply({ files: {}, links: { [FILE]: '/proc/self/mem' } });
    expect(text).toThrow('EIO');
    expect(readSync(open, Buffer.alloc(8), 0, 8, 0)).toBe(0);
    closeSync(open);
    writer.apply({ files: { [FILE]: 'down\n' }, links: {} });
    expect(text()).toBe('down\n');
    writer.apply({ files: { [FILE]: 'up\n' }, links: {} });
    expect(text(), 'it changes in place again, and never gets shorter').toBe('up\n\n\n');
  });
});
