import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isInstalled } from '../support/prometheus.ts';

const installed = isInstalled('promtool');
const skipped = installed ? '' : ' (skipped: promtool is not installed)';
const promtool = (...words: string[]): string => execFileSync('promtool', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

describe('alert rules', () => {
  it('ask for metrics that exist', () => {
    const documented = new Set(readFileSync('docs/metrics.md', 'utf8').match(/(?<=`)\w+(?=`)/g));
    const named = readFileSync('deploy/alerts.yaml', 'utf8').match(/\bdevice_[a-z_]+/g) ?? [];
    expect(named.length).toBeGreaterThan(6);
    expect(named.filter((name) => !documented.has(name))).toEqual([]);
  });

  it.skipIf(!installed)(`are accepted by Prometheus${skipped}`, () => {
    expect(promtool('check', 'rules', 'deploy/alerts.yaml')).toContain('SUCCESS: 8 rules found');
  });

  it.skipIf(!installed)(`begin when they should, and not before${skipped}`, () => {
    expect(promtool('test', 'rules', 'test/deploy/alerts.yaml')).toContain('SUCCESS');
  });
});
