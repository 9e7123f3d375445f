import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Tree } from '../../src/host/fs/tree.ts';
import type { AerCounters, PcieLink } from '../../src/host/pci/pcie.ts';
import { pcieErrorConditions, pcieErrorFindings, pcieFindings, pcieLinkCondition } from '../../src/probes/kit/pcie/health.ts';
import { pcieLogConditions } from '../../src/probes/kit/pcie/log.ts';
import {
  type PcieSample,
  pcieErrorMetric,
  pcieErrorReadings,
  pcieMetrics,
  pcieReadings,
  readPcie,
} from '../../src/probes/kit/pcie/pcie.ts';

const NO_ERRORS: AerCounters = { errors: [], totals: {} };

function sample(part: Partial<PcieLink> = {}, aer: AerCounters = NO_ERRORS, answers?: boolean): PcieSample {
  return { link: { isAsleep: false, ...part }, aer, ...(answers === undefined ? {} : { answers }) };
}

const roots: string[] = [];
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true });
});

/** A function below a port, with these files. */
function treeWith(files: Readonly<Record<string, string | Buffer>>, port: Readonly<Record<string, string>> = {}): Tree {
  const root = mkdtempSync(join(tmpdir(), 'device-agent-pcie-'));
  roots.push(root);
  const bridge = join(root, 'devices/pci0000:3a/0000:3a:01.0');
  const folder = join(bridge, '0000:3b:00.0');
  mkdirSync(folder, { recursive: true });
  mkdirSync(join(root, 'bus/pci/devices'), { recursive: true });
  symlinkSync('../../../devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0', join(root, 'bus/pci/devices/0000:3b:00.0'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  for (const [name, content] of Object.entries(port)) writeFileSync(join(bridge, name), content);
  return new Tree(root);
}

describe('the readings of a link', () => {
  it('are width and generation, now and at most', () => {
    const link = { width: 8, widthMax: 16, generation: 3, generationMax: 5 };
    expect(pcieReadings(sample(link))).toEqual([
      { metric: 'device_pcie_link_width_lanes', value: 8 },
      { metric: 'device_pcie_link_max_width_lanes', value: 16 },
      { metric: 'device_pcie_link_generation', value: 3 },
      { metric: 'device_pcie_link_max_generation', value: 5 },
    ]);
  });

  it('use the smaller maximum of the device and its upstream port', () => {
    const link = { width: 8, widthMax: 16, upstreamWidthMax: 8, generation: 4, generationMax: 4, upstreamGenerationMax: 5 };
    const values = Object.fromEntries(pcieReadings(sample(link)).map(({ metric, value }) => [metric, value]));
    expect(values).toMatchObject({ device_pcie_link_max_width_lanes: 8, device_pcie_link_max_generation: 4 });
  });

  it('are absent when the kernel reports no link', () => {
    expect(pcieReadings(sample())).toEqual([]);
    expect(pcieReadings(sample({ widthMax: 16 })).map(({ metric }) => metric)).toEqual(['device_pcie_link_max_width_lanes']);
  });

  it('are declared', () => {
    const link = { width: 1, widthMax: 1, generation: 1, generationMax: 1 };
    const errors: AerCounters = { errors: [{ severity: 'fatal', kind: 'DLP', count: 0n }], totals: {} };
    const read = pcieReadings(sample(link, errors)).map(({ metric }) => metric);
    expect(read.sort()).toEqual(pcieMetrics.map(({ name }) => name).sort());
  });
});

describe('the judgement of a link', () => {
  it.each<[string, Partial<PcieLink>, readonly object[]]>([
    [
      'as wide and fast as can be',
      { width: 16, widthMax: 16, generation: 4, generationMax: 4 },
      [
        { instance: 'width', status: false, reason: 'AtMaximum' },
        { instance: 'speed', status: false, reason: 'AtMaximum', severity: 'info' },
      ],
    ],
    [
      'narrower than it could be',
      { width: 4, widthMax: 16 },
      [{ instance: 'width', status: true, reason: 'WidthBelowMaximum', message: 'PCIe link x4, x16 is possible' }],
    ],
    ['narrow in a narrow slot', { width: 8, widthMax: 16, upstreamWidthMax: 8 }, [{ instance: 'width', status: false }]],
    [
      'slower than it could be, for the record only',
      { generation: 1, generationMax: 4 },
      [{ instance: 'speed', status: true, reason: 'SpeedBelowMaximum', severity: 'info' }],
    ],
    ['of a slow port', { generation: 3, generationMax: 4, upstreamGenerationMax: 3 }, [{ instance: 'speed', status: false }]],
    ['of unknown width', { widthMax: 16 }, []],
    ['of unknown maximum', { width: 4 }, []],
  ])('%s', (_, link, expected) => {
    const findings = pcieFindings(sample(link));
    expect(findings).toHaveLength(expected.length);
    expect(findings).toMatchObject(expected);
    for (const { type, reason } of findings) {
      expect(type).toBe(pcieLinkCondition.type);
      expect(pcieLinkCondition.reasons).toContain(reason);
    }
  });
});

describe('the errors of a link', () => {
  const aer: AerCounters = {
    errors: [
      { severity: 'correctable', kind: 'RxErr', count: 3n },
      { severity: 'correctable', kind: 'BadTLP', count: 4n },
      { severity: 'correctable', kind: 'NonFatalErr', count: 100n },
      { severity: 'nonfatal', kind: 'UnsupReq', count: 200n },
      { severity: 'nonfatal', kind: 'CmpltTO', count: 2n },
      { severity: 'fatal', kind: 'MalfTLP', count: 1n },
    ],
    totals: { correctable: 7n, nonfatal: 202n, fatal: 1n },
  };

  it('are one series per kind, with the kernel names of the kinds', () => {
    const readings = pcieErrorReadings(sample({}, aer));
    expect(readings).toHaveLength(6);
    expect(readings[3]).toEqual({ metric: pcieErrorMetric.name, labels: { severity: 'nonfatal', kind: 'UnsupReq' }, value: 200 });
  });

  it('keep every digit beyond 2^53', () => {
    const huge: AerCounters = { errors: [{ severity: 'fatal', kind: 'DLP', count: 2n ** 53n + 1n }], totals: {} };
    expect(pcieErrorReadings(sample({}, huge))[0]?.value).toBe(9_007_199_254_740_993n);
  });

  it('are judged without the errors that harmless probing causes', () => {
    expect(pcieErrorFindings(sample({}, aer)).map(({ type, count }) => [type, count])).toEqual([
      ['AerFatal', 1],
      ['AerNonfatal', 2],
      ['AerCorrectable', 7],
    ]);
  });

  it('are judged by the port above, too, because below a link that failed the kernel counts nothing', () => {
    const above: AerCounters = { errors: [], totals: { fatal: 0n }, rootPort: { address: '0000:3a:01.0', fatal: 2n } };
    expect(pcieErrorFindings(sample({}, above)).map(({ type, instance, count }) => [type, instance, count])).toEqual([
      ['AerFatal', undefined, 0],
      ['AerFatal', '0000:3a:01.0', 2],
    ]);
    expect(pcieErrorReadings(sample({}, above))).toEqual([
      { metric: pcieErrorMetric.name, labels: { severity: 'fatal', kind: 'RootPort' }, value: 2 },
    ]);
  });

  it('are not judged when the kernel counts no error, or only harmless errors', () => {
    expect(pcieErrorFindings(sample())).toEqual([]);
    const harmless: AerCounters = { errors: [{ severity: 'nonfatal', kind: 'UnsupReq', count: 9n }], totals: { nonfatal: 9n } };
    expect(pcieErrorFindings(sample({}, harmless))).toEqual([]);
  });

  it.each([
    [true, false, 'Answers'],
    [false, true, 'ConfigurationAllOnes'],
  ])('say that the card is gone when it does not answer: %s', (answers, status, reason) => {
    expect(pcieErrorFindings(sample({}, NO_ERRORS, answers))).toMatchObject([{ type: 'PciFunctionGone', status, reason }]);
  });

  it('are declared, with every reason', () => {
    const findings = [...pcieErrorFindings(sample({}, aer, true)), ...pcieErrorFindings(sample({}, aer, false))];
    // The others are those of the kernel log.
    const declared = pcieErrorConditions.filter((spec) => !pcieLogConditions.includes(spec));
    expect(new Set(findings.map(({ type }) => type))).toEqual(new Set(declared.map(({ type }) => type)));
    for (const { type, reason } of findings) expect(pcieErrorConditions.find((spec) => spec.type === type)?.reasons).toContain(reason);
  });
});

describe('one read of a function', () => {
  it('reads link, errors and presence', () => {
    const files = {
      power_state: 'D0\n',
      current_link_width: '8\n',
      max_link_width: '16\n',
      current_link_speed: '8.0 GT/s PCIe\n',
      max_link_speed: '16.0 GT/s PCIe\n',
      aer_dev_fatal: 'MalfTLP 2\nTOTAL_ERR_FATAL 2\n',
      config: Buffer.alloc(64, 0x10),
    };
    const sys = treeWith(files, { max_link_width: '16\n', max_link_speed: '8.0 GT/s PCIe\n' });
    const { link, aer, answers } = readPcie(sys, '0000:3b:00.0');
    expect(link).toMatchObject({ width: 8, widthMax: 16, upstreamWidthMax: 16, generation: 3, generationMax: 4, upstreamGenerationMax: 3 });
    expect(aer).toEqual({ errors: [{ severity: 'fatal', kind: 'MalfTLP', count: 2n }], totals: { fatal: 2n } });
    expect(answers).toBe(true);
  });

  it.each([
    ['reads the fatal errors of the port directly above', '12\n', {}, { address: '0000:3a:01.0', fatal: 12n }],
    ['takes no count from garbage', 'many\n', {}, undefined],
    ['leaves the port above to the physical function', '12\n', { physfn: '' }, undefined],
  ])('%s', (_, text, files, expected) => {
    const sys = treeWith({ aer_dev_fatal: 'MalfTLP 0\nTOTAL_ERR_FATAL 0\n' }, { aer_rootport_total_err_fatal: text });
    if ('physfn' in files) symlinkSync('../0000:3b:00.1', join(sys.path('devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0'), 'physfn'));
    expect(readPcie(sys, '0000:3b:00.0').aer.rootPort).toEqual(expected);
  });

  it('detects a card that left the bus by reads of all ones', () => {
    const gone = { config: Buffer.alloc(256, 0xff), current_link_width: '63\n', current_link_speed: 'Unknown\n' };
    const look = readPcie(treeWith(gone), '0000:3b:00.0');
    expect(look.answers).toBe(false);
    expect(pcieReadings(look)).toEqual([]);
  });

  it('does not access a sleeping function', () => {
    const look = readPcie(
      treeWith({ power_state: 'D3cold\n', config: Buffer.alloc(64, 0xff), current_link_width: '16\n' }),
      '0000:3b:00.0',
    );
    expect(look.answers).toBeUndefined();
    expect(pcieReadings(look)).toEqual([]);
    expect(pcieErrorFindings(look)).toEqual([]);
  });

  it('is empty where there is no function', () => {
    expect(readPcie(treeWith({}), '0000:99:00.0')).toEqual({ link: { isAsleep: false }, aer: NO_ERRORS });
  });
});
