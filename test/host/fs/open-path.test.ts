import {
  chmodSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type OpenedPath, openEntry, openPath, RefusedLink } from '../../../src/host/fs/open-path.ts';
import { readUntrustedFile } from '../../../src/host/fs/untrusted-file.ts';
import { unless } from '../../support/skipped.ts';

const isRoot = process.getuid?.() === 0;
const root = mkdtempSync(join(tmpdir(), 'open-path-'));
afterAll(() => rmSync(root, { recursive: true }));

/** A directory as the kubelet fills it for a ConfigMap. */
function configMap(name: string): string {
  const directory = join(root, name);
  mkdirSync(join(directory, '..2026_01_01'), { recursive: true });
  writeFileSync(join(directory, '..2026_01_01/file.yaml'), 'text');
  symlinkSync('..2026_01_01', join(directory, '..data'));
  symlinkSync('..data/file.yaml', join(directory, 'file.yaml'));
  return directory;
}

async function opened(path: string): Promise<Pick<OpenedPath, 'untrusted'> & { readonly size: number }> {
  const { handle, stats, untrusted } = await openPath(path);
  await handle.close();
  return { size: stats.size, ...(untrusted === undefined ? {} : { untrusted }) };
}

describe('a path that is opened step by step', () => {
  it('follows the links of a ConfigMap, relative and absolute ones, and a link to a directory', async () => {
    const directory = configMap('followed');
    symlinkSync(join(directory, 'file.yaml'), join(root, 'absolute'));
    symlinkSync('followed/../followed/.', join(root, 'directory'));
    for (const path of [join(directory, 'file.yaml'), join(root, 'absolute'), join(root, 'directory/file.yaml')])
      expect(await opened(path)).toEqual({ size: 4 });
  });

  it('trusts a directory like /tmp only as far as its entries belong to root or the user', async () => {
    const directory = configMap('sticky');
    chmodSync(directory, 0o1777);
    expect(await opened(join(directory, 'file.yaml'))).toEqual({ size: 4 });
  });

  it('refuses a link in a directory that others can write, and tells that others can change a file there', async () => {
    const directory = configMap('open');
    writeFileSync(join(directory, 'plain'), 'text');
    chmodSync(directory, 0o777);
    await expect(opened(join(directory, 'file.yaml'))).rejects.toThrow(RefusedLink);
    expect(await opened(join(directory, 'plain'))).toEqual({ size: 4, untrusted: 'open can be written by others' });
    expect(await readUntrustedFile(join(directory, 'plain'), 100)).toEqual({ text: 'text', untrusted: 'open can be written by others' });
    expect(await readUntrustedFile(join(directory, 'file.yaml'), 100)).toMatchObject({
      problem: 'not-a-file',
      reason: 'it leads over the symbolic link file.yaml: open can be written by others',
    });
  });

  it('tells a file that its group can write', async () => {
    const path = join(root, 'group');
    writeFileSync(path, '');
    chmodSync(path, 0o664);
    expect(await opened(path)).toEqual({ size: 0, untrusted: 'group can be written by others' });
  });

  it.skipIf(!isRoot)(
    `tells an owner anywhere above the file, and refuses a link of another owner${unless(isRoot, 'it needs root')}`,
    async () => {
      const directory = configMap('owned/by/other');
      lchownSync(join(root, 'owned'), 4_711, 4_711);
      expect(await opened(join(directory, '..2026_01_01/file.yaml'))).toEqual({ size: 4, untrusted: 'owned belongs to user 4711' });
      await expect(opened(join(directory, 'file.yaml'))).rejects.toThrow('owned belongs to user 4711');
      const link = join(root, 'link');
      symlinkSync('group', link);
      lchownSync(link, 4_711, 4_711);
      await expect(opened(link)).rejects.toThrow('link belongs to user 4711');
    },
  );

  it('follows no link of a directory of strangers, and stays in it when the name is replaced', async () => {
    const directory = join(root, 'strangers');
    mkdirSync(directory);
    writeFileSync(join(directory, 'document'), 'text');
    const held = await openPath(directory);
    renameSync(directory, join(root, 'moved'));
    symlinkSync('/etc', directory);
    const entry = await openEntry(held, 'document');
    expect(entry.stats.size).toBe(4);
    await entry.handle.close();
    unlinkSync(join(root, 'moved/document'));
    symlinkSync('/etc/passwd', join(root, 'moved/document'));
    await expect(openEntry(held, 'document')).rejects.toThrow(RefusedLink);
    await held.handle.close();
  });

  it('leaves no descriptor behind', async () => {
    const directory = configMap('descriptors');
    const count = (): number => readdirSync('/proc/self/fd').length;
    await opened(join(directory, 'file.yaml'));
    const before = count();
    for (let n = 0; n < 50; n += 1) {
      await opened(join(directory, 'file.yaml'));
      await opened(join(directory, 'absent/file')).catch(() => undefined);
      await opened(join(root, 'open/file.yaml')).catch(() => undefined);
    }
    expect(count()).toBeLessThanOrEqual(before + 3);
  });
});
