import type { Finding, Severity } from '../../model/health.ts';
import { type GpuSample, type MigSample, totalOf } from './sample.ts';
import { VALUES, type ValueKey, type Values } from './values.ts';

/** Returns the memory findings of one GPU sample. */
export function memoryFindings(gpu: GpuSample): readonly Finding[] {
  const { values = {} } = gpu;
  return [...ecc(gpu), ...rows(values), ...pages(values), ...repairs(values)];
}

/** Returns the findings of a MIG instance. MIG boards remap rows, so an error affects only the instance in which it occurred. */
export function instanceFindings({ ecc: { volatile } = {} }: MigSample): readonly Finding[] {
  const count = totalOf(volatile, 'uncorrectable');
  if (count === undefined) return [];
  const reason = count > 0n ? 'UncorrectableErrors' : 'NoErrors';
  const message = `${count} uncorrectable SRAM errors in this instance since the driver was loaded`;
  return [{ type: 'UncorrectableEcc', status: count > 0n, reason, message, severity: 'degraded' }];
}

function ecc({ ecc: { volatile } = {}, values = {}, recovery }: GpuSample): readonly Finding[] {
  const uncorrectable = totalOf(volatile, 'uncorrectable');
  const correctable = totalOf(volatile, 'correctable');
  const findings: Finding[] = [];
  if (uncorrectable !== undefined) {
    const status = uncorrectable > 0n;
    // Boards that remap rows contain such errors, and their driver reports when a reset is needed, also when MIG hides the
    // rows. On older boards the next program may get the same memory cell.
    const isContained = values.uncorrectableRows !== undefined || recovery !== undefined;
    const severity: Severity = isContained ? 'degraded' : 'fatal';
    const message = `${uncorrectable} uncorrectable memory errors since the driver was loaded`;
    findings.push({ type: 'UncorrectableEcc', status, reason: status ? 'UncorrectableErrors' : 'NoErrors', message, severity });
  }
  if (correctable !== undefined) {
    const message = `${correctable} corrected memory errors since the driver was loaded`;
    findings.push({ type: 'CorrectableEccRate', reason: 'CounterGrows', message, count: Number(correctable) });
  }
  return [...findings, ...flagged(values, 'isSramThresholdExceeded', 'SramThresholdExceeded', 'ThresholdExceeded', 'BelowThreshold')];
}

function rows(values: Values): readonly Finding[] {
  const [none, low] = [Number(values.banksWithoutSpareRows ?? 0), Number(values.banksWithFewSpareRows ?? 0)];
  const spare: Finding = {
    type: 'SpareRowsLow',
    status: none + low > 0,
    reason: none > 0 ? 'BanksWithoutSpareRows' : low > 0 ? 'BanksWithFewSpareRows' : 'Enough',
    message: `${none} banks have no spare rows left, ${low} few`,
    severity: none > 0 ? 'degraded' : 'info',
  };
  return [
    ...flagged(values, 'isRemapPending', 'RowRemapPending', 'RemapPending', 'NonePending'),
    ...flagged(values, 'isRemapFailed', 'RowRemapFailure', 'RemapFailed', 'NoneFailed'),
    ...(values.banksWithMaxSpareRows === undefined ? [] : [spare]),
  ];
}

/** With this number of retired pages, the board cannot retire more pages. */
const MAX_RETIRED_PAGES = 63;

function pages({ singleBitPages, doubleBitPages, arePagesPending }: Values): readonly Finding[] {
  if (singleBitPages === undefined && doubleBitPages === undefined && arePagesPending === undefined) return [];
  const total = Number(singleBitPages ?? 0) + Number(doubleBitPages ?? 0);
  const isFull = total >= MAX_RETIRED_PAGES;
  return [
    {
      type: 'RetiredPages',
      status: isFull || arePagesPending === true,
      reason: isFull ? 'PagesUsedUp' : arePagesPending === true ? 'RetirementPending' : 'Few',
      message: `${total} pages retired${arePagesPending === true ? ', more wait for a reset' : ''}`,
      ...(isFull ? { severity: 'fatal', remedy: 'replace' } : {}),
    },
  ];
}

const repairs = (values: Values): readonly Finding[] => [
  ...flagged(values, 'isChannelRepairPending', 'MemoryRepairPending', 'ChannelRepairPending', 'NonePending', 'channel'),
  ...flagged(values, 'isTpcRepairPending', 'MemoryRepairPending', 'TpcRepairPending', 'NonePending', 'tpc'),
  ...flagged(values, 'isMemoryUnrepairable', 'MemoryUnrepairable', 'Unrepairable', 'Repairable'),
];

function flagged(values: Values, key: ValueKey, type: string, yes: string, no: string, instance?: string): readonly Finding[] {
  const status = values[key];
  if (typeof status !== 'boolean') return [];
  const name = VALUES[key].paths[0]?.split('/').at(-1);
  const finding = { type, status, reason: status ? yes : no, message: `${name}: ${status ? 'yes' : 'no'}` };
  return [instance === undefined ? finding : { ...finding, instance }];
}
