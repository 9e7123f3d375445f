import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { areThere, CAPTURES, skipped } from '../support/captures.ts';
import { goldenPage } from '../support/golden-samples.ts';
import { buildMachine, readMachine } from '../support/machine.ts';
import { PROGRAM } from '../support/program.ts';
import { compared, documentFigures } from './figures.ts';
import { Page } from './page.ts';
import { Smi } from './smi.ts';

// Real documents of nine boards, which the agent reads by the command: the comparison must find no difference on any of them, or it would
// tell of differences on real hardware that are its own.

const DOCUMENTS = join(CAPTURES, 'nvidia-smi');
const root = mkdtempSync(join(tmpdir(), 'device-agent-gpu-figures-'));
afterAll(() => rmSync(root, { recursive: true }));
for (const folder of ['sys', 'proc', 'dev']) mkdirSync(join(root, folder));

/** The page of the built agent on a machine whose `nvidia-smi` prints this document. */
function pageOf(program: string): Page {
  const paths = ['sys', 'proc', 'dev'].map((name) => `--path.${name === 'dev' ? 'dev' : `${name}fs`}=${join(root, name)}`);
  const words = [PROGRAM, 'list', '--read', '-o', 'prom', ...paths, '--probe.nvidia.source=smi', `--probe.nvidia.smi-path=${program}`];
  return new Page(execFileSync(process.execPath, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }));
}

describe.skipIf(!areThere).each(areThere ? readdirSync(DOCUMENTS) : [''])(`the document %s${skipped}`, (file) => {
  it('is equal to the page that the agent makes of it', () => {
    const program = join(root, file.replace('.xml', ''));
    writeFileSync(program, `#!/bin/sh\n[ "$*" = "-q -x" ] && exec cat '${join(DOCUMENTS, file)}'\nexit 6\n`);
    chmodSync(program, 0o755);
    const page = pageOf(program);
    const lines = documentFigures(new Smi(program).document()).map((figure) => compared(figure, page, page));
    // Who gave the capture has replaced these texts.
    expect(lines.filter(({ verdict, expected }) => verdict === 'different' && !/REDACTED/.test(expected))).toEqual([]);
    expect(lines.filter(({ verdict }) => verdict === 'equal').length).toBeGreaterThan(25);
  });
});

const MACHINES = [
  'ampere-ecc-of-driver-565',
  'eight-hoppers-on-switches',
  'hopper-average-memory-power',
  'hopper-hot-and-braked',
  'hopper-that-tells-everything',
  'mig-with-two-in-one-gpu-instance',
  'pascal-with-few-retired-pages',
  'renamed-elements-of-driver-615',
  'reset-flags-and-fabric-failing',
  'time-sliced-processes',
  'volta-counts-bits-and-retires-pages',
  'xids-in-the-kernel-log',
];

describe.each(MACHINES)('the document of the machine %s', (name) => {
  it('is equal to its golden page', () => {
    const folder = join('test/probes/nvidia', name);
    const machine = buildMachine(readMachine(join(folder, 'machine.yaml'))).root;
    try {
      const page = new Page(goldenPage(join(folder, 'expected.txt')));
      const lines = documentFigures(new Smi(join(machine, 'bin/nvidia-smi')).document()).map((figure) => compared(figure, page, page));
      expect(lines.filter(({ verdict }) => verdict === 'different')).toEqual([]);
      expect(lines.filter(({ verdict }) => verdict === 'equal').length).toBeGreaterThan(3);
    } finally {
      rmSync(machine, { recursive: true });
    }
  });
});
