import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { familyDirectory } from '../../../src/config/families/early-directory.ts';
import { readFamilyDirectory, withDeclared } from '../../../src/config/families/family-directory.ts';
import { loadFamilies } from '../../../src/config/sections.ts';
import { type DeclaredFamily, familyOf, refusedParts } from '../../../src/probes/declared/family.ts';
import { familyLoaders } from '../../../src/probes/families.ts';
import { ACME, lookAt } from '../../probes/declared/support.ts';
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
    const originOf = async (): Promise<unknown> => (await read(deep)).map(({ origin, weakness }) => [origin, weakness]);
    expect(await originOf()).toEqual([['administrator', undefined]]);
    for (const [path, mode] of [
      [file, 0o644],
      [deep, 0o755],
      [join(directory, 'a'), 0o755],
    ] as const) {
      chmodSync(path, mode | 0o020);
      expect(await originOf()).toEqual([['others', `${basename(path)} can be written by others`]]);
      chmodSync(path, mode);
    }
    if (process.getuid?.() !== 0) return;
    chownSync(join(directory, 'a'), STRANGER, STRANGER);
    expect(await originOf()).toEqual([['others', `a belongs to user ${STRANGER}`]]);
  });
});

describe.skipIf(!isRoot)(`declarations of others${unless(isRoot, 'it needs root')}`, () => {
  const strange = (name: string, text: string): void => chownSync(put(name, text), STRANGER, STRANGER);
  const named = (family: string): string =>
    ACME.replace('family: acme', `family: ${family}`).replaceAll('device_acme_', `device_${family}_`);

  it('do not replace a shipped family, a family of the code, or the family of a file of root', async () => {
    strange('1.yaml', named('gaudi'));
    strange('2.yaml', named('nvidia'));
    strange('3.yaml', ACME);
    put('4.yaml', ACME);
    const { families, leftOut } = await readAll();
    expect(families.map(({ declaration, origin }) => [declaration.family, origin])).toEqual([['acme', 'administrator']]);
    expect(leftOut.map(({ message }) => message.split(directory).at(-1))).toEqual(
      ['1.yaml "gaudi"', '2.yaml "nvidia"', '3.yaml "acme"'].map((text) => {
        const [file = '', family = ''] = text.split(' ');
        return `/${file} cannot be used: there is another family ${family}, and others can change this file: ${file} belongs to user ${STRANGER}`;
      }),
    );
    const known = await loadFamilies(familyLoaders);
    const names = withDeclared(known, families, directory).map(({ name, summary }) => [name, summary]);
    expect(names).toContainEqual(['gaudi', 'Intel Gaudi accelerators']);
  });

  it('do not end the start when they are wrong, and at most eight are read', async () => {
    strange('a.yaml', 'family: [');
    strange('b.yaml', 'family: b1\n');
    strange('c.yaml', `${ACME}#${'x'.repeat(262_144)}`);
    put('d.yaml', ACME);
    const first = await readAll();
    expect(first.families.map(({ declaration }) => declaration.family)).toEqual(['acme']);
    expect(first.leftOut.map(({ code }) => code)).toEqual(['family-file-invalid', 'family-file-invalid', 'family-file-unreadable']);
    for (let n = 0; n < 12; n += 1) strange(`s${n}.yaml`, named(`s${n}`));
    const full = await readAll();
    expect(full.families).toHaveLength(1 + 8);
    expect(full.leftOut.at(-1)?.message).toContain('has more than 8 files that others can change');
    chownSync(directory, STRANGER, STRANGER);
    for (let n = 12; n < 200; n += 1) strange(`s${n}.yaml`, named(`s${n}`));
    symlinkSync('/etc/passwd', join(directory, '0.yaml'));
    const open = await readAll();
    expect(open.families.length).toBeLessThanOrEqual(8);
    expect(open.leftOut.at(-1)?.message).toContain('has more than 8 files that others can change');
  });

  it('get no program, device node, resource and place in the plugin, whatever the options say', async () => {
    const marker = join(directory, 'ran');
    const program = join(directory, 'tool');
    writeFileSync(program, `#!/bin/sh\ntouch ${marker}\necho '[]'\n`, { mode: 0o755 });
    mkdirSync(join(directory, 'sys/class/tool/tool0'), { recursive: true });
    const text = `family: tool
summary: Devices of a tool
commands: { ls: { path: ${program}, format: json }, more: { path: ${program}, args: [x], format: json, optional: true } }
devices:
  - { kind: card, find: { command: ls }, id: { command: ls, pointer: /id } }
  - { kind: disk, find: { sysfs: 'class/tool/tool#' }, id: '{name}', nodes: [/dev/sda, /dev/mem] }
resources:
  - { resource: nvidia.com/gpu, ids: ['{id}'] }
`;
    const look = async (): Promise<unknown> => {
      const [declared] = await read();
      const family = familyOf(declared as DeclaredFamily);
      const { reports, problems, listing } = await lookAt(family, directory, { 'ls-path': program });
      const nodes = reports.map(({ device }) => device.characterDevices);
      return {
        nodes,
        listing,
        codes: problems.map(({ code }) => code),
        has: [family.resolve, family.access].map((one) => one !== undefined),
      };
    };
    put('tool.yaml', text);
    expect(await look()).toMatchObject({ nodes: [['/dev/sda', '/dev/mem']], has: [true, true], codes: [] });
    execFileSync('test', ['-e', marker]);
    rmSync(marker);
    strange('tool.yaml', text);
    expect(await look()).toEqual({
      nodes: [undefined],
      listing: 'partial',
      codes: Array(5).fill('declaration-refused'),
      has: [false, false],
    });
    expect(() => execFileSync('test', ['-e', marker])).toThrow();
    const [declared] = await read();
    expect(refusedParts(declared as DeclaredFamily)).toContain(
      `the device node /dev/mem is given to no container, because others can change it: tool.yaml belongs to user ${STRANGER}`,
    );
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
