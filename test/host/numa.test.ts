import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readCpuNodes } from '../../src/host/facts.ts';
import { Tree } from '../../src/host/fs/tree.ts';

describe('the NUMA node of each CPU', () => {
  const read = (lists: Readonly<Record<string, string>>): object => {
    const root = mkdtempSync(join(tmpdir(), 'device-agent-numa-'));
    for (const [node, list] of Object.entries(lists)) {
      mkdirSync(join(root, 'devices/system/node', node), { recursive: true });
      writeFileSync(join(root, 'devices/system/node', node, 'cpulist'), list);
    }
    const nodes = Object.fromEntries(readCpuNodes(new Tree(root)));
    rmSync(root, { recursive: true });
    return nodes;
  };

  it('is in the list of CPUs of each node', () => {
    expect(read({ node0: '0-1,4\n', node1: '2-3,5-5\n' })).toEqual({ 0: 0, 1: 0, 2: 1, 3: 1, 4: 0, 5: 1 });
  });

  it('is unknown for a node without CPUs, a kernel without nodes, and text of another form', () => {
    expect(read({ node0: '0\n', node250: '\n', power: '7\n' })).toEqual({ 0: 0 });
    expect(read({})).toEqual({});
    for (const list of ['0-x,2', '3-1,2', '99999,2', '9000,2', '2,', '1-3,2-4', '2,1']) {
      expect(read({ node0: `${list}\n`, node1: '7\n' }), list).toEqual({ 7: 1 });
    }
  });

  it('takes no more CPUs from a long list than a kernel can have', () => {
    expect(
      Object.keys(
        read({
          node0: Array.from({ length: 8_000 }, () => '0-8191')
            .join(',')
            .slice(0, 63_000),
        }),
      ),
    ).toHaveLength(0);
    expect(Object.keys(read({ node0: '0-8191\n' }))).toHaveLength(8_192);
  });
});
