import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled } from '../support/installed.ts';

const missing = ['promtool', 'cc'].filter((program) => !isInstalled(program));
const skipped = missing.length === 0 ? '' : ` (skipped: ${missing.join(', ')} not installed)`;

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'device-agent-fleet-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

const run = (program: string, ...words: string[]): string => execFileSync(program, words, { encoding: 'utf8' });

describe.skipIf(missing.length > 0)(`the benchmark of a fleet${skipped}`, () => {
  it('writes nodes that Prometheus takes for two nodes', () => {
    const text = join(directory, 'fleet.om');
    run('node', 'bench/fleet.mjs', '--nodes=2', '--minutes=4', '--pages=4', `--write=${text}`);
    const data = join(directory, 'data');
    run('promtool', 'tsdb', 'create-blocks-from', 'openmetrics', text, data);
    // Without it promtool takes the directory for no database.
    mkdirSync(join(data, 'wal'));
    const series = run('promtool', 'tsdb', 'dump', '--match={__name__=~"device_info|container_device_allocation"}', data);
    const identities = [...new Set(series.match(/\{[^}]*\}/g))];
    const has = (...parts: string[]): number => identities.filter((labels) => parts.every((part) => labels.includes(part))).length;
    for (const node of ['node="node-00000"', 'node="node-00001"']) {
      expect(has('__name__="device_info"', 'family="nvidia"', node)).toBe(8);
      expect(has('__name__="device_info"', 'family="infiniband"', node)).toBe(8);
      expect(has('__name__="container_device_allocation"', node)).toBeGreaterThanOrEqual(16);
    }
    const uuids = new Set(series.match(/uuid="GPU-[^"]+"/g));
    expect(uuids.size).toBe(16);
  });
});
