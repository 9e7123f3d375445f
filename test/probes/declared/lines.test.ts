import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkDeclaration } from '../../../src/config/families/family-file.ts';
import { acmeFiles, declaredFamily, probeOn, ACME_WITH_LINES as TEXT } from './support.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lines-'));
  const { files, links } = acmeFiles(2);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  for (const [path, target] of Object.entries(links)) {
    mkdirSync(join(root, path, '..'), { recursive: true });
    symlinkSync(target, join(root, path));
  }
  mkdirSync(join(root, 'dev'), { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

async function told(...records: readonly string[]) {
  writeFileSync(join(root, 'dev/kmsg'), ['6,0,0,-;Linux version 7.0\n', ...records].join(''));
  const probe = probeOn(await declaredFamily(TEXT), root);
  const { reports } = await probe.collect();
  await probe.close?.();
  return reports.map(({ outOfBand, faults = [] }) => [
    ...(outOfBand?.findings ?? []).map(({ type, status, count, message }) => `${type} ${status ?? count} ${message}`),
    ...faults.map(({ code, process }) => `${code} of ${process?.pid}`),
  ]);
}

const of = (seq: number, card: number, text: string): string =>
  `3,${seq},${seq},-;acme acme${card}: ${text}\n SUBSYSTEM=acme\n DEVICE=+acme:acme${card}\n`;

const WELL = ['FirmwareDead false the kernel log has no such line since the machine booted', 'QueueTimeouts 0 queue timeout: 0'];

describe('declared lines of the kernel log', () => {
  it('raise and end a condition of the device that the kernel named', async () => {
    const dead = of(1, 0, 'firmware dead, code 0x7: halted');
    expect(await told(dead)).toEqual([['FirmwareDead true the firmware stopped with code 0x7', WELL[1]], WELL]);
    expect(await told(dead, of(2, 0, 'ready, version 1.2'))).toEqual([['FirmwareDead false the driver started', WELL[1]], WELL]);
    expect(await told(dead.replace('3,1', '11,1'), dead.replace('DEVICE=+acme:acme0', 'DEVICE=+acme:acme1').replace('3,1', '3,2'))).toEqual(
      [WELL, WELL],
    );
  });

  it('count, and are faults with their process, also where the driver prints no device', async () => {
    const line = '3,1,1,-;acme_drv warns: acme1 queue 3 timed out (pid 77)\n';
    expect(await told(line)).toEqual([WELL, [WELL[0], 'QueueTimeouts 1 queue timeout: 1', 'queue-timeout of 77']]);
  });

  it.each([
    ['condition: FirmwareDead', 'condition: FirmwareDed', /no condition "FirmwareDed" with "log".*FirmwareDead/],
    ['acme_drv warns: {card}', 'acme: {card}', /begins with 16 fixed characters/],
    ['code {code}*', 'code {code}{more}', /two wildcards need a text/],
    ['with code {code}', 'with code {other}', /\{other\} has no value here/],
    ['event: started', 'event: dead', /declared twice/],
    ['ends: [FirmwareDead]', 'ends: [QueueTimeouts]', /time ends the condition/],
    ['log: {} }', 'log: { above: 1 } }', /both "above" and "within"/],
    ['log: {} }', 'file: state, log: {} }', /no other source/],
  ])('with %s → %s are refused', async (text, wrong, message) => {
    expect(TEXT).toContain(text);
    const { problems = [] } = await checkDeclaration(TEXT.replace(text, wrong));
    expect(problems.map((problem) => problem.message).join('\n')).toMatch(message);
  });
});
