import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DirectoryListing } from '../../src/host/directory-listing.ts';
import { Tree } from '../../src/host/fs/tree.ts';
import { nativeFiles } from '../../src/host/native-files.ts';
import { canLimitDescriptors, withDescriptors } from '../support/descriptor-limit.ts';
import { unless } from '../support/skipped.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-listing-'));
  mkdirSync(join(root, 'place'));
  writeFileSync(join(root, 'place/a'), '');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Long enough for what was just made to count as having been there for a while. */
const growOld = (): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);

const noLimits = unless(canLimitDescriptors(), 'no prlimit');

describe('the listing of a directory', () => {
  it('is the same object until a name comes or goes, or the directory does', () => {
    const listing = new DirectoryListing(new Tree(root), 'place');
    growOld();
    const first = listing.list();
    expect(listing.list()).toBe(first);
    writeFileSync(join(root, 'place/b'), '');
    expect(listing.list().names).toEqual(['a', 'b']);
    rmSync(join(root, 'place'), { recursive: true });
    expect(listing.list().error).toBe('ENOENT');
    mkdirSync(join(root, 'place'));
    expect(listing.list().names).toEqual([]);
  });

  it('shows what came before it was first looked at directly', () => {
    const listing = new DirectoryListing(new Tree(root), 'place');
    growOld();
    expect(listing.list().names).toEqual(['a']);
    writeFileSync(join(root, 'place/b'), '');
    growOld();
    expect(listing.list(nativeFiles()).names).toEqual(['a', 'b']);
  });

  it.skipIf(!canLimitDescriptors())(`comes back when descriptors do, though nothing changed in it${noLimits}`, () => {
    const listing = new DirectoryListing(new Tree(root), 'place');
    growOld();
    expect(withDescriptors(0, () => listing.list().error)).toBe('EMFILE');
    expect(listing.list().names).toEqual(['a']);
  });
});
