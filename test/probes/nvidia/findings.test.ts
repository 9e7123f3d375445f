import { describe, expect, it } from 'vitest';
import type { CountFinding, Finding, LevelFinding, StatusFinding } from '../../../src/model/health.ts';
import { conditions } from '../../../src/probes/nvidia/conditions.ts';
import { gpuFindings, instanceFindings } from '../../../src/probes/nvidia/findings.ts';
import type { Element } from '../../../src/probes/nvidia/smi/document.ts';
import { gpuSampleOf } from '../../../src/probes/nvidia/smi/sample.ts';
import { gpuElement, nested } from './harness.ts';

/** A `<gpu>` element from pairs of path and text. */
function gpu(...facts: readonly (readonly [string, string])[]): Element {
  return gpuElement(contentOf(facts.map(([path, text]) => [path.split('/'), text])));
}

function contentOf(facts: readonly (readonly [readonly string[], string])[]): string {
  const names = new Set(facts.map(([[first = '']]) => first));
  return [...names]
    .map((name) => {
      const inner = facts.filter(([[first]]) => first === name).map(([[, ...rest], text]) => [rest, text] as const);
      const leaf = inner.find(([rest]) => rest.length === 0);
      return `<${name}>${leaf === undefined ? contentOf(inner) : leaf[1]}</${name}>`;
    })
    .join('');
}

function find(element: Element, type: string, instance?: string): Finding | undefined {
  const found = gpuFindings(gpuSampleOf(element)).filter((finding) => finding.type === type && finding.instance === instance);
  expect(found.length, `${type} once`).toBeLessThan(2);
  return found[0];
}

const EVENT = 'clocks_event_reasons/clocks_event_reason_';
const OLD_EVENT = 'clocks_throttle_reasons/clocks_throttle_reason_';
const VOLATILE = 'ecc_errors/volatile';
const ROWS = 'remapped_rows';
const HISTOGRAM = `${ROWS}/row_remapper_histogram/row_remapper_histogram_`;
const MANY: readonly (readonly [string, string])[] = [[`${HISTOGRAM}max`, '600 bank(s)']];

/** The retired pages of a GPU, as the driver prints them. */
const pages = (single: string, double: string, pending: string): Element =>
  gpu(
    ['retired_pages/multiple_single_bit_retirement/retired_count', single],
    ['retired_pages/double_bit_retirement/retired_count', double],
    ['retired_pages/pending_retirement', pending],
  );

type Expected = Partial<StatusFinding> | Partial<CountFinding> | Partial<LevelFinding>;
type Row = readonly [string, Element, Expected];
const yes = (reason: string, more: Partial<StatusFinding> = {}): Expected => ({ status: true, reason, ...more });
const no = (reason: string): Expected => ({ status: false, reason });

const ROWS_OF_TABLE: readonly Row[] = [
  ['GpuLost', gpu(['temperature/gpu_temp', 'GPU is lost']), yes('GpuIsLost', { message: 'temperature/gpu_temp: GPU is lost' })],
  ['GpuLost', gpu(['remapped_rows', 'GPU is lost'], ['fan_speed', '30 %']), yes('GpuIsLost')],
  ['GpuLost', gpu(['temperature/gpu_temp', '40 C']), no('Answers')],
  ['GpuLost', gpu(['temperature/gpu_temp', 'Unknown Error'], ['fan_speed', 'ERR!']), { status: 'unknown', reason: 'ValuesUnreadable' }],
  ['GpuLost', gpu(['temperature/gpu_temp', 'Unknown Error'], ['fan_speed', '30 %']), no('Answers')],
  ['RecoveryAction', gpu(['gpu_recovery_action', 'None']), no('None')],
  ['RecoveryAction', gpu(['gpu_recovery_action', 'Reset']), yes('GpuReset', { severity: 'fatal', remedy: 'reset' })],
  ['RecoveryAction', gpu(['gpu_recovery_action', 'GPU Reset']), yes('GpuReset')],
  ['RecoveryAction', gpu(['gpu_recovery_action', 'Reboot']), yes('NodeReboot', { remedy: 'reboot' })],
  ['RecoveryAction', gpu(['gpu_recovery_action', 'Node Reboot']), yes('NodeReboot', { severity: 'fatal' })],
  ['RecoveryAction', gpu(['gpu_recovery_action', 'Drain P2P']), yes('DrainP2p', { severity: 'degraded' })],
  ['RecoveryAction', gpu(['gpu_recovery_action', 'Drain and Reset']), yes('DrainAndReset', { severity: 'fatal' })],
  ['RecoveryAction', gpu(['gpu_recovery_action', 'IMEX Domain Recovery']), yes('RecoverImexDomain')],
  ['RecoveryAction', gpu(['gpu_reset_status/reset_required', 'Yes']), yes('GpuReset')],
  ['RecoveryAction', gpu(['gpu_reset_status/drain_and_reset_recommended', 'Yes']), yes('DrainAndReset')],
  ['RecoveryAction', gpu(['gpu_reset_status/reset_required', 'No']), no('None')],
  ['RecoveryAction', gpu(['gpu_recovery_action', 'None'], ['gpu_reset_status/reset_required', 'Yes']), yes('GpuReset')],
  ['RecoveryAction', gpu(['gpu_recovery_action', 'Node Reboot'], ['gpu_reset_status/reset_required', 'Yes']), yes('NodeReboot')],
  ['RetiredPages', pages('61', 'N/A', 'Yes'), yes('RetirementPending', { message: 'at least 61 pages retired, more wait for a reset' })],
  ['RetiredPages', pages('N/A', '63', 'Unknown Error'), yes('PagesUsedUp', { severity: 'fatal' })],
  ['RetiredPages', pages('2', 'Unknown Error', 'No'), { status: 'unknown', message: 'at least 2 pages retired' }],
  ['RetiredPages', pages('2', '1', 'ERR!'), { status: 'unknown', message: '3 pages retired' }],
  ['RetiredPages', pages('N/A', '0', '-1'), { status: 'unknown' }],
  [
    'UncorrectableEcc',
    gpu([`${VOLATILE}/dram_uncorrectable`, '2'], [`${VOLATILE}/sram_uncorrectable`, '1'], [`${ROWS}/remapped_row_unc`, '0']),
    yes('UncorrectableErrors', { severity: 'degraded', message: '3 uncorrectable memory errors since the driver was loaded' }),
  ],
  ['UncorrectableEcc', gpu([`${VOLATILE}/double_bit/l2_cache`, '1']), yes('UncorrectableErrors', { severity: 'fatal' })],
  [
    'UncorrectableEcc',
    gpu([`${VOLATILE}/dram_uncorrectable`, '1'], [ROWS, 'N/A'], ['gpu_recovery_action', 'None']),
    yes('UncorrectableErrors', { severity: 'degraded' }),
  ],
  ['UncorrectableEcc', gpu([`${VOLATILE}/dram_uncorrectable`, '0']), no('NoErrors')],
  ['CorrectableEccRate', gpu([`${VOLATILE}/sram_correctable`, '4'], [`${VOLATILE}/dram_correctable`, '5']), { count: 9 }],
  ['SramThresholdExceeded', gpu(['ecc_errors/aggregate/sram_threshold_exceeded', 'Yes']), yes('ThresholdExceeded')],
  ['SramThresholdExceeded', gpu(['ecc_errors/aggregate/sram_threshold_exceeded', 'No']), no('BelowThreshold')],
  ['RowRemapPending', gpu([`${ROWS}/remapped_row_pending`, 'Yes']), yes('RemapPending')],
  ['RowRemapPending', gpu([ROWS, 'N/A'], ['remapped_banks/bank_remapper_pending', 'Yes']), yes('RemapPending')],
  ['RowRemapPending', gpu([`${ROWS}/remapped_row_pending`, 'No']), no('NonePending')],
  ['RowRemapFailure', gpu([`${ROWS}/remapped_row_failure`, 'Yes']), yes('RemapFailed')],
  ['RowRemapFailure', gpu([`${ROWS}/remapped_row_failure`, 'No']), no('NoneFailed')],
  ['SpareRowsLow', gpu(...MANY, [`${HISTOGRAM}none`, '1 bank(s)']), yes('BanksWithoutSpareRows', { severity: 'degraded' })],
  ['SpareRowsLow', gpu(...MANY, [`${HISTOGRAM}low`, '3 bank(s)']), yes('BanksWithFewSpareRows', { severity: 'info' })],
  ['SpareRowsLow', gpu(...MANY, [`${HISTOGRAM}partial`, '9 bank(s)']), no('Enough')],
  ['RetiredPages', gpu(['retired_pages/pending_retirement', 'Yes']), yes('RetirementPending')],
  ['RetiredPages', gpu(['retired_pages/pending_blacklist', 'Yes']), yes('RetirementPending')],
  ['RetiredPages', pages('60', '3', 'No'), yes('PagesUsedUp', { severity: 'fatal', remedy: 'replace', message: '63 pages retired' })],
  ['RetiredPages', pages('59', '3', 'No'), no('Few')],
  ['MemoryUnrepairable', gpu(['ecc_errors/unrepairable_memory', 'Yes']), yes('Unrepairable')],
  ['MemoryUnrepairable', gpu(['ecc_errors/unrepairable_memory', 'No']), no('Repairable')],
  ['ThermalSlowdown', gpu([`${EVENT}hw_thermal_slowdown`, 'Active']), yes('HardwareThermalSlowdown')],
  ['ThermalSlowdown', gpu([`${OLD_EVENT}hw_thermal_slowdown`, 'Active']), yes('HardwareThermalSlowdown')],
  ['ThermalSlowdown', gpu([`${EVENT}hw_thermal_slowdown`, 'Not Active']), no('NotThrottled')],
  ['PowerBrake', gpu([`${EVENT}hw_power_brake_slowdown`, 'Active']), yes('HardwarePowerBrake')],
  ['PowerBrake', gpu([`${OLD_EVENT}hw_power_brake_slowdown`, 'Not Active']), no('NotThrottled')],
  ['HardwareSlowdown', gpu([`${EVENT}hw_slowdown`, 'Active']), yes('UnknownCause', { message: 'hw_slowdown: active' })],
  [
    'HardwareSlowdown',
    gpu(
      [`${EVENT}hw_slowdown`, 'Active'],
      [`${EVENT}hw_thermal_slowdown`, 'Not Active'],
      [`${EVENT}hw_power_brake_slowdown`, 'Not Active'],
    ),
    yes('UnknownCause', { message: 'hw_slowdown: active, without heat and power brake' }),
  ],
  [
    'HardwareSlowdown',
    gpu(
      [`${EVENT}hw_slowdown`, 'Active'],
      ['gpu_power_readings/instant_power_draw', '701.00 W'],
      ['gpu_power_readings/current_power_limit', '700.00 W'],
    ),
    yes('AbovePowerLimit', { remedy: 'check-power' }),
  ],
  [
    'HardwareSlowdown',
    gpu([`${OLD_EVENT}hw_slowdown`, 'Active'], ['temperature/gpu_temp', '89 C'], ['temperature/gpu_temp_slow_threshold', '89 C']),
    yes('AtSlowdownTemperature', { remedy: 'check-cooling' }),
  ],
  ['HardwareSlowdown', gpu([`${EVENT}hw_slowdown`, 'Active'], [`${EVENT}hw_thermal_slowdown`, 'Active']), no('NotThrottled')],
  ['HardwareSlowdown', gpu([`${EVENT}hw_slowdown`, 'Active'], [`${EVENT}hw_power_brake_slowdown`, 'Active']), no('NotThrottled')],
  ['HardwareSlowdown', gpu([`${EVENT}hw_slowdown`, 'Not Active']), no('NotThrottled')],
  ['OverTemperature', gpu(['temperature/gpu_temp', '89 C'], ['temperature/gpu_temp_slow_threshold', '89 C']), yes('AtSlowdownTemperature')],
  ['OverTemperature', gpu(['temperature/gpu_temp', '88 C'], ['temperature/gpu_temp_slow_threshold', '89 C']), no('BelowLimit')],
  [
    'OverTemperature',
    gpu(['temperature/gpu_temp', '88 C'], ['temperature/gpu_temp_tlimit', '-2 C'], ['temperature/gpu_temp_slow_tlimit_threshold', '-2 C']),
    yes('AtSlowdownTemperature'),
  ],
  [
    'OverTemperature',
    gpu(['temperature/gpu_temp', '88 C'], ['temperature/gpu_temp_tlimit', '-1 C'], ['temperature/gpu_temp_slow_tlimit_threshold', '-2 C']),
    no('BelowLimit'),
  ],
  ['FabricNotReady', gpu(['fabric/state', 'Not Started']), yes('NotStarted')],
  ['FabricNotReady', gpu(['fabric/state', 'In Progress']), yes('InProgress')],
  ['FabricNotReady', gpu(['fabric/state', 'Completed'], ['fabric/status', 'Success']), no('Ready')],
  ['FabricNotReady', gpu(['fabric/state', 'Completed'], ['fabric/status', 'N/A']), no('Ready')],
  ['FabricNotReady', gpu(['fabric/state', 'Completed'], ['fabric/status', 'Invalid State']), yes('RegistrationFailed')],
  ['FabricUnhealthy', gpu(['fabric/health/summary', 'Unhealthy']), yes('Unhealthy', { severity: 'fatal' })],
  ['FabricUnhealthy', gpu(['fabric/health/summary', 'Limited Capacity']), yes('LimitedCapacity', { severity: 'degraded' })],
  ['FabricUnhealthy', gpu(['fabric/health/summary', 'Healthy']), no('Healthy')],
];

describe('the health findings of a GPU', () => {
  it('include a reset that is printed in place of values; readable values end only that finding', () => {
    const asking = gpu(['gpu_recovery_action', 'N/A'], ['temperature/gpu_temp', '[GPU requires reset]']);
    expect(find(asking, 'RecoveryAction', 'values')).toMatchObject(yes('GpuReset'));
    expect(find(asking, 'RecoveryAction')).toBeUndefined();
    const answering = gpu(['gpu_recovery_action', 'N/A'], ['temperature/gpu_temp', '40 C']);
    expect(find(answering, 'RecoveryAction', 'values')).toMatchObject(no('None'));
    expect(find(answering, 'RecoveryAction')).toBeUndefined();
    const worded = gpu(['gpu_recovery_action', 'None'], ['temperature/gpu_temp', '40 C']);
    expect(find(worded, 'RecoveryAction', 'values')).toBeUndefined();
  });

  const RESET = 'gpu_reset_status/reset_required';
  const DRAIN = 'gpu_reset_status/drain_and_reset_recommended';

  it.each([
    [gpu([RESET, 'Unknown Error'], [DRAIN, 'No']), [RESET]],
    [gpu([RESET, 'No'], [DRAIN, 'ERR!']), [DRAIN]],
    [gpu(['gpu_recovery_action', 'None'], [RESET, 'Unknown Error'], [DRAIN, 'No']), [RESET]],
    [gpu(['gpu_recovery_action', 'Unknown Error'], [RESET, 'No'], [DRAIN, 'No']), ['gpu_recovery_action']],
  ])('do not say that the driver asks for nothing while a flag cannot be read (%#)', (element, failed) => {
    const sample = gpuSampleOf(element);
    expect(gpuFindings(sample).filter(({ type, status }) => type === 'RecoveryAction' && status === false)).toEqual([]);
    expect(sample.unread?.filter(({ value }) => value === 'recovery').map(({ name }) => name)).toEqual(failed);
  });

  it.each([
    [gpu([RESET, 'GPU requires reset'], [DRAIN, 'No']), 'GpuReset'],
    [gpu([RESET, 'No'], [DRAIN, 'GPU requires reset']), 'GpuReset'],
    [gpu(['gpu_recovery_action', 'GPU requires reset']), 'GpuReset'],
    [gpu([RESET, 'Yes'], [DRAIN, 'Unknown Error']), 'GpuReset'],
    [gpu([RESET, 'Unknown Error'], [DRAIN, 'Yes']), 'DrainAndReset'],
  ])('have an action that one flag asks for, whatever the other one says (%#)', (element, reason) => {
    expect(find(element, 'RecoveryAction')).toMatchObject(yes(reason));
  });

  it.each(ROWS_OF_TABLE)('%s (row %#)', (type, element, expected) => {
    expect(find(element, type)).toMatchObject(expected);
  });

  it('distinguish repairs of channels and of processing clusters', () => {
    const element = gpu(['ecc_errors/channel_repair_pending', 'Yes'], ['ecc_errors/tpc_repair_pending', 'No']);
    expect(find(element, 'MemoryRepairPending', 'channel')).toMatchObject(yes('ChannelRepairPending'));
    expect(find(element, 'MemoryRepairPending', 'tpc')).toMatchObject(no('NonePending'));
  });

  it('are absent for values that the board does not provide', () => {
    const nothing = ['N/A', '[Not Supported]', 'Insufficient Permissions', 'None', ''];
    const paths = new Set(ROWS_OF_TABLE.flatMap(([, element]) => pathsOf(element)).filter((path) => path !== 'gpu_recovery_action'));
    for (const text of nothing) {
      // None is no value of a number or a flag. Of the fabric, it would be a state.
      const told = [...paths]
        .filter((path) => text !== 'None' || !path.startsWith('fabric/'))
        .flatMap((path) => gpuFindings(gpuSampleOf(gpuElement(nested(path, text)))))
        .filter(({ type }) => type !== 'GpuLost' && type !== 'NotInitialized');
      expect(told, text).toEqual([]);
    }
  });

  it('are unknown for an unknown text of an action, a fabric state or a fabric health', () => {
    const element = gpu(['gpu_recovery_action', 'constructor'], ['fabric/state', 'toString'], ['fabric/health/summary', 'Splendid']);
    const told = gpuFindings(gpuSampleOf(element)).map(({ type, status }) => [type, status]);
    expect(told).toEqual(['RecoveryAction', 'FabricNotReady', 'FabricUnhealthy'].map((type) => [type, 'unknown']));
  });

  it.each([
    ['gpu_recovery_action', 'RecoveryAction'],
    [RESET, 'RecoveryAction'],
    ['ecc_errors/aggregate/sram_threshold_exceeded', 'SramThresholdExceeded'],
    [`${ROWS}/remapped_row_pending`, 'RowRemapPending'],
    [`${ROWS}/remapped_row_failure`, 'RowRemapFailure'],
    ['retired_pages/pending_retirement', 'RetiredPages'],
    ['ecc_errors/channel_repair_pending', 'MemoryRepairPending', 'channel'],
    ['ecc_errors/tpc_repair_pending', 'MemoryRepairPending', 'tpc'],
    ['ecc_errors/unrepairable_memory', 'MemoryUnrepairable'],
    [`${EVENT}hw_slowdown`, 'HardwareSlowdown'],
    ['fabric/state', 'FabricNotReady'],
    ['fabric/health/summary', 'FabricUnhealthy'],
  ])('are unknown while %s fails: %s', (path, type, instance?: string) => {
    for (const text of ['Unknown Error', 'GPU requires reset', 'Unknown']) {
      if (text === 'GPU requires reset' && type === 'RecoveryAction') continue;
      const told = find(gpu([path, text], ['temperature/gpu_temp', '40 C']), type, instance);
      expect(told, text).toMatchObject({ status: 'unknown', message: expect.stringContaining(text) });
    }
    expect(find(gpu([path, 'GPU is lost']), type, instance)).toBeUndefined();
  });

  it('contain no total when one of the counts could not be read', () => {
    const element = gpu([`${VOLATILE}/sram_uncorrectable`, '0'], [`${VOLATILE}/dram_uncorrectable`, 'Unknown Error']);
    expect(find(element, 'UncorrectableEcc')).toMatchObject({ status: 'unknown' });
  });
});

describe('every condition of the table', () => {
  const raised = new Set(ROWS_OF_TABLE.filter(([, , { status, count }]) => status === true || count !== undefined).map(([type]) => type));
  const links = [
    'FabricCliqueChanged',
    'FabricCliqueDiffers',
    'NvLinkDown',
    'NvLinkErrorRate',
    'NvLinkErrors',
    'NvLinkPeerLost',
    'NvLinkRecoveries',
    'NvLinkSlow',
  ];
  const elsewhere = [
    ...links,
    'DriverReleased',
    'VgpuUnlicensed',
    'DriverUnusable',
    'InforomCorrupted',
    'NotInitialized',
    'PcieLinkDegraded',
    'MemoryRepairPending',
    'StuckProcess',
  ];

  it('is raised by a row, or by the probe', () => {
    expect([...raised, ...elsewhere].sort()).toEqual(Object.keys(conditions).sort());
  });

  it('declares each reason that a row gives', () => {
    for (const [type, element] of ROWS_OF_TABLE) {
      const spec = Object.values(conditions).find((condition) => condition.type === type);
      expect(spec?.reasons).toContain(find(element, type)?.reason);
    }
  });
});

describe('the health findings of a MIG instance', () => {
  const told = (content: string): readonly Finding[] => {
    const instance = `<gpu_instance_id>7</gpu_instance_id><compute_instance_id>0</compute_instance_id>${content}`;
    const { instances = [] } = gpuSampleOf(gpuElement(nested('mig_devices/mig_device', instance)));
    expect(instances).toHaveLength(1);
    return instances.flatMap(instanceFindings);
  };
  const counting = (text: string): readonly Finding[] => told(nested('ecc_error_count/volatile_count/sram_uncorrectable', text));

  it.each([
    ['2', true],
    ['0', false],
  ])('%s errors', (text, status) => {
    expect(counting(text)).toMatchObject([{ type: 'UncorrectableEcc', status, severity: 'degraded' }]);
  });

  it('are absent when nothing is counted', () => {
    expect(counting('N/A')).toEqual([]);
    expect(counting('Unknown Error')).toMatchObject([{ type: 'UncorrectableEcc', status: 'unknown' }]);
    expect(told('')).toEqual([]);
  });
});

describe('the width of a link', () => {
  const wide = (text: string): Element => gpu(['pci/pci_gpu_link_info/link_widths/current_link_width', text]);

  it('is a level that is compared with its own highest value', () => {
    expect(find(wide('8x'), 'PcieLinkDegraded')).toEqual({
      type: 'PcieLinkDegraded',
      reason: 'NarrowerThanBefore',
      message: 'PCIe link x8',
      level: 8,
      tellsHighest: true,
    });
  });

  it.each(['N/A', 'GPU is lost', '0x', 'wide', ''])('is nothing where it is %j', (text) => {
    expect(find(wide(text), 'PcieLinkDegraded')).toBeUndefined();
  });
});

function pathsOf(element: Element, prefix = ''): string[] {
  return Object.entries(element).flatMap(([name, child]) => {
    if (name.startsWith('@')) return [];
    const path = prefix === '' ? name : `${prefix}/${name}`;
    return typeof child === 'object' && !Array.isArray(child) ? pathsOf(child as Element, path) : [path];
  });
}
