import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, lchownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { familyDirectory } from '../../../src/config/families/early-directory.ts';
import { readFamilyDirectory, withDeclared } from '../../../src/config/families/family-directory.ts';
import { loadFamilies } from '../../../src/config/sections.ts';
import { familyLoaders } from '../../../src/probes/families.ts';
import { ACME } from '../../probes/declared/support.ts';
import { unless } from '../../support/skipped.ts';

/** Any user but root. */
const STRANGER = 4_711;
const isRoot = process.getuid?.() === 0;

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'device-agent-families-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const readAll = (path = directory) => readFamilyDirectory({ path, isGiven: true });
const read = async (path = directory) => (await readAll(path)).families;
const put = (name: string, text = ACME): string => {
  const file = join(directory, name);
  writeFileSync(file, text, { mode: 0o644 });
  return file;
};

describe('the directory of declarations', () => {
  it('gives its families, without hidden and other files', async () => {
    put('acme.yaml');
    put('b.yml', ACME.replace('family: acme', 'family: zeta').replaceAll('device_acme_', 'device_zeta_'));
    put('.hidden.yaml', 'wrong');
    put('README.md', 'wrong');
    const families = withDeclared(await loadFamilies(familyLoaders), await read(), directory).map(({ name }) => name);
    expect(families).toEqual([...Object.keys(familyLoaders), 'acme', 'zeta'].sort());
  });

  it('may be absent by default, and must exist when it is given', async () => {
    const absent = join(directory, 'none');
    expect(await readFamilyDirectory({ path: absent, isGiven: false })).toEqual({ families: [], leftOut: [] });
    await expect(read(absent)).rejects.toMatchObject({ code: 'family-dir-invalid', exit: 2 });
    expect(await read('')).toEqual([]);
  });

  it('may be a ConfigMap, whose files are links inside of the mount', async () => {
    mkdirSync(join(directory, '..2026'));
    writeFileSync(join(directory, '..2026/acme.yaml'), ACME);
    symlinkSync('..2026', join(directory, '..data'));
    symlinkSync('..data/acme.yaml', join(directory, 'acme.yaml'));
    expect((await read()).map(({ declaration }) => declaration.family)).toEqual(['acme']);
  });

  it('refuses a link to another directory, a pipe and a large file, without reading them', async () => {
    const other = mkdtempSync(join(tmpdir(), 'device-agent-other-'));
    writeFileSync(join(other, 'acme.yaml'), ACME);
    symlinkSync(join(other, 'acme.yaml'), join(directory, 'acme.yaml'));
    await expect(read()).rejects.toThrow(/acme\.yaml cannot be used: it is a link to another directory/);
    rmSync(join(directory, 'acme.yaml'));
    rmSync(other, { recursive: true });
    execFileSync('mkfifo', [join(directory, 'pipe.yaml')]);
    await expect(read()).rejects.toThrow(/pipe\.yaml cannot be used: not a regular file/);
    rmSync(join(directory, 'pipe.yaml'));
    put('large.yaml', `${ACME}#${'x'.repeat(262_144)}`);
    await expect(read()).rejects.toThrow(/large\.yaml cannot be used: larger than 262144 bytes/);
  });

  it('refuses a family twice and a family of the code, and replaces a shipped declaration', async () => {
    const known = await loadFamilies(familyLoaders);
    put('acme.yaml');
    put('again.yaml');
    await expect(read()).rejects.toThrow(/again\.yaml cannot be used: another file declares the family "acme"/);
    rmSync(join(directory, 'again.yaml'));
    put('acme.yaml', ACME.replace('family: acme', 'family: nvidia').replaceAll('device_acme_', 'device_nvidia_'));
    const asCode = await read();
    expect(() => withDeclared(known, asCode, directory)).toThrow(/"nvidia", which the agent has as code/);
    put('acme.yaml', ACME.replace('family: acme', 'family: neuron').replaceAll('device_acme_', 'device_neuron_'));
    const replaced = withDeclared(known, await read(), directory);
    expect(replaced.filter(({ name }) => name === 'neuron').map(({ summary }) => summary)).toEqual(['Acme X1 accelerators']);
    expect(replaced).toHaveLength(known.length);
  });

  it('says who can change a file: the file, its directory and every directory above count', async () => {
    const deep = join(directory, 'a/b');
    mkdirSync(deep, { recursive: true, mode: 0o755 });
    const file = put('a/b/acme.yaml');
    const lookInto = async (): Promise<unknown> => {
      const { families, leftOut } = await readAll(deep);
      return [families.length, leftOut.map(({ code, message }) => [code, message.split(': ').at(-1)])];
    };
    expect(await lookInto()).toEqual([1, []]);
    for (const [path, mode] of [
      [file, 0o644],
      [deep, 0o755],
      [join(directory, 'a'), 0o755],
    ] as const) {
      chmodSync(path, mode | 0o020);
      expect(await lookInto()).toEqual([0, [['family-file-untrusted', `${basename(path)} can be written by others`]]]);
      chmodSync(path, mode);
    }
    if (process.getuid?.() !== 0) return;
    chownSync(join(directory, 'a'), STRANGER, STRANGER);
    expect(await lookInto()).toEqual([0, [['family-file-untrusted', `a belongs to user ${STRANGER}`]]]);
  });
});

describe.skipIf(!isRoot)(`declarations of others${unless(isRoot, 'it needs root')}`, () => {
  const strange = (name: string, text: string): void => chownSync(put(name, text), STRANGER, STRANGER);

  it('are left out as a whole, and do not end the start when they are wrong', async () => {
    strange('a.yaml', 'family: [');
    strange('b.yaml', ACME);
    strange('c.yaml', `${ACME}#${'x'.repeat(262_144)}`);
    symlinkSync('/etc/passwd', join(directory, 'd.yaml'));
    lchownSync(join(directory, 'd.yaml'), STRANGER, STRANGER);
    put('e.yaml', ACME);
    const { families, leftOut } = await readAll();
    expect(families.map(({ declaration, origin }) => [declaration.family, origin])).toEqual([['acme', 'administrator']]);
    expect(leftOut.map(({ code }) => code)).toEqual([
      'family-file-untrusted',
      'family-file-untrusted',
      'family-file-unreadable',
      'family-file-unreadable',
    ]);
    expect(leftOut[1]?.message).toContain(`b.yaml belongs to user ${STRANGER}`);
    expect(leftOut[1]?.remedy).toMatch(/^Make root \(or the user of the agent\) the owner/);
  });

  it('are not read at all in a directory that others own, however many there are', async () => {
    put('acme.yaml', ACME);
    chownSync(directory, STRANGER, STRANGER);
    for (let n = 0; n < 200; n += 1) strange(`s${n}.yaml`, ACME);
    const { families, leftOut } = await readAll();
    expect([families, leftOut.map(({ code }) => code)]).toEqual([[], ['family-file-untrusted']]);
  });
});

describe('the name of the directory', () => {
  it('comes from the flag, the environment, the file or the default, in this order', async () => {
    const config = put('config.txt', 'family: { dir: /from/file }\n');
    const of = async (args: readonly string[], environment = {}): Promise<unknown> => await familyDirectory(args, environment);
    const inFile = `--config.file=${config}`;
    expect(await of(['serve'])).toEqual({ path: '/etc/device-agent/families.d', isGiven: false });
    expect(await of(['serve', inFile])).toEqual({ path: '/from/file', isGiven: true });
    expect(await of(['serve', '--config.file', config])).toEqual({ path: '/from/file', isGiven: true });
    expect(await of(['serve', inFile], { DEVICE_AGENT_FAMILY_DIR: '/from/environment' })).toEqual({
      path: '/from/environment',
      isGiven: true,
    });
    expect(await of(['--family.dir=/from/flag', inFile], { DEVICE_AGENT_FAMILY_DIR: '/x' })).toEqual({ path: '/from/flag', isGiven: true });
    expect(await of(['--family.dir=/etc/device-agent/families.d'])).toMatchObject({ isGiven: false });
    expect(await of(['--family.dir='])).toEqual({ path: '', isGiven: true });
  });
});
