import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isInstalled } from './installed.ts';
import { unless } from './skipped.ts';

/** A program of Prometheus in one of the versions that the tests take. */
export interface Versioned {
  readonly program: string;
  readonly isThere: boolean;
  /** End of the name of a test that is left out without it. */
  readonly skipped: string;
}

/** The names end in `-3` for version 3, which `.ci/run` builds from Prometheus' Go module. Debian has version 2. */
const versionsOf = (name: string): readonly [Versioned, Versioned] => [versioned(name), versioned(`${name}-3`)];

function versioned(program: string): Versioned {
  const isThere = isInstalled(program);
  return { program, isThere, skipped: unless(isThere, `${program} is not installed`) };
}

/** Version 2 and version 3. Their PromQL differs: a range of version 3 does not have the sample at its start. */
export const PROMTOOLS = versionsOf('promtool');
export const PROMETHEUSES = versionsOf('prometheus');

/** What promtool prints, on both of its outputs when it fails. */
export function promtool(program: string, words: readonly string[], { cwd = '.', input = '' } = {}): string {
  try {
    return execFileSync(program, words, { cwd, input, encoding: 'utf8', stdio: 'pipe' });
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    return stdout + stderr;
  }
}

/** What promtool says of a test of rules, in its own form. `files`: text of the rule files that the test does not name by an absolute path. */
export function testRules(program: string, test: object, files: Readonly<Record<string, string>> = {}): string {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-test-rules-'));
  for (const [name, text] of Object.entries({ ...files, 'test.yaml': JSON.stringify(test) })) writeFileSync(join(directory, name), text);
  try {
    return promtool(program, ['test', 'rules', 'test.yaml'], { cwd: directory });
  } finally {
    rmSync(directory, { recursive: true });
  }
}
