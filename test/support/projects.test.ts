import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { filesOf, type Project, projectOf } from './projects.ts';

/** The project of a file with that text. `helper`: the text of a file that it imports. */
function sorted(text: string, helper = ''): Project {
  const root = mkdtempSync(join(tmpdir(), 'device-agent-projects-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, 'test/support'), { recursive: true });
  writeFileSync(join(root, 'test/support/helper.ts'), helper);
  writeFileSync(join(root, 'test/some.test.ts'), `import { one } from './support/helper.ts';\n${text}`);
  return projectOf(relative('.', join(root, 'test/some.test.ts')));
}

describe('the project of a file', () => {
  it.each([
    ["import { readFileSync } from 'node:fs';", 'pure'],
    ["import { execFileSync } from 'node:child_process';", 'pure'],
    ["import { type ChildProcess, execFileSync } from 'node:child_process';", 'pure'],
    ["import { execFileSync, spawn } from 'node:child_process';", 'tests'],
    ["import { Worker } from 'node:worker_threads';", 'tests'],
    ["import type { Server } from 'node:net';", 'pure'],
    ["import { createServer } from 'node:net';", 'tests'],
    ["vi.mock('./x.ts');", 'tests'],
    ['vi.useFakeTimers();', 'tests'],
    ["process.env.HOME = '/';", 'tests'],
    ["const isCi = process.env.CI === '1';", 'pure'],
    ["process.chdir('/');", 'tests'],
    ["expect(page).toContain('process_open_fds 3');", 'tests'],
    ["import { PROGRAM } from './program.ts';", 'programs'],
    ["import { repetitions } from './repetitions.ts';", 'programs'],
    ['const prometheus = await startPrometheus({});', 'programs'],
    ["describe.skipIf(!isInstalled('promtool'))('rules', () => {});", 'programs'],
  ])('%s: %s', (text, project) => {
    expect(sorted(text)).toBe(project);
    expect(sorted('', text), 'said by a helper').toBe(project);
  });

  it('is one of its folder where the folder has one', () => {
    expect(projectOf('test/node/any.test.ts')).toBe('node');
    expect(projectOf('test/floors.test.ts')).toBe('floors');
  });

  it('is one in which most files need no process of their own', () => {
    expect(filesOf('pure').length).toBeGreaterThan(filesOf('tests').length);
    expect(filesOf('programs')).toEqual(expect.arrayContaining(['test/deploy/chart.test.ts', 'test/probes/nvme/oracle.test.ts']));
    expect(filesOf('tests')).toContain('test/e2e/journey.test.ts');
  });
});
