import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { manifestOf, presetFile, render, whyNoHelm } from '../support/chart.ts';
import { installBlocks, installCommands, valueBlocks, valuesOfPlatforms } from '../support/install-page.ts';

const missing = whyNoHelm();
const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };

describe.skipIf(missing !== undefined)(`the values of docs/install.md${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  it.each(valueBlocks())('are values of the chart: $heading', ({ text }) => {
    const directory = mkdtempSync(join(tmpdir(), 'device-agent-page-'));
    const file = join(directory, 'values.yaml');
    writeFileSync(file, text);
    try {
      expect(manifestOf(render('-f', file), 'DaemonSet').metadata.name).toBe('device-agent');
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

describe('docs/install.md', () => {
  it('has values for the platforms that need some', () => {
    expect(Object.keys(valuesOfPlatforms())).toEqual(expect.arrayContaining(['GKE', 'Bottlerocket', 'OpenShift', 'MicroK8s', 'k0s']));
    const manifests = installBlocks().map(({ content }) => content.kind);
    expect(manifests.filter((kind) => kind !== undefined)).toEqual(['SecurityContextConstraints', 'RuntimeClass']);
  });

  it('has the values of the preset for GKE', () => {
    expect(valuesOfPlatforms().GKE).toEqual(parse(readFileSync(presetFile('driver-root'), 'utf8')));
  });

  it('names the files of a release of this version', () => {
    for (const heading of ['Without a network', 'A machine without Kubernetes']) {
      const named = installCommands(heading).flatMap((line) => line.match(/device-agent-\d\S*?(?=-systemd\.tar\.gz|\.tgz)/g) ?? []);
      expect(named).toEqual([`device-agent-${version}`]);
    }
  });
});
