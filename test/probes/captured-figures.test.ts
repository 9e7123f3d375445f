import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { areThere, CAPTURES, skipped } from '../support/captures.ts';
import { CAPTURED } from './captured-figures.ts';

const FOLDERS = ['amdgpu', 'edac', 'fdinfo', 'gaudi', 'hwloc', 'intel-gpu', 'neuron', 'nvme', 'pci', 'sriov'];

/** Entries below a directory for which the table has no entry of their own. */
function unlisted(path: string): readonly string[] {
  return readdirSync(join(CAPTURES, path), { withFileTypes: true }).flatMap((entry) => {
    const inside = `${path}/${entry.name}`;
    if (Object.hasOwn(CAPTURED, inside) || entry.name === 'SOURCES.md') return [];
    const isSplit = Object.keys(CAPTURED).some((listed) => listed.startsWith(`${inside}/`));
    return entry.isDirectory() && isSplit ? unlisted(inside) : [inside];
  });
}

describe('every capture', () => {
  it('has a test that names it, or a reason why its figures are no series', () => {
    for (const [path, { test, without = {} }] of Object.entries(CAPTURED)) {
      expect(test !== undefined || Object.keys(without).length > 0, `${path} has a test or a reason`).toBe(true);
      expect(Object.values(without).filter((reason) => reason.length < 15)).toEqual([]);
      if (test === undefined) continue;
      const text = readFileSync(join('test/probes', test), 'utf8');
      const name = basename(path).replace(/\.tar\.bz2$|(-float|-string)?\.json$/, '');
      expect(text.includes(name), `${test} names ${name}`).toBe(true);
    }
  });

  it.skipIf(!areThere)(`of the folder is in the table, and the table has no other${skipped}`, () => {
    expect(FOLDERS.flatMap(unlisted)).toEqual([]);
    expect(Object.keys(CAPTURED).filter((path) => !existsSync(join(CAPTURES, path)))).toEqual([]);
  });
});
