import type { ConditionSpec, Finding, Severity } from '../../model/health.ts';
import { type ReasonOf, raise, raiseGrowth } from '../kit/finding.ts';
import { asOf } from '../kit/pace.ts';
import { conditions } from './conditions.ts';
import { type GpuSample, type MigSample, totalOf } from './sample.ts';
import { VALUES, type ValueKey, type Values } from './values.ts';

/** Returns the memory findings of one GPU sample. */
export function memoryFindings(gpu: GpuSample): readonly Finding[] {
  const { values = {}, times } = gpu;
  return [
    ...ecc(gpu),
    ...rows(values),
    ...asOf(
      pages(values),
      PAGES.map((key) => times?.get(key)).find((atMs) => atMs !== undefined),
    ),
    ...repairs(values),
  ];
}

/** Returns the findings of a MIG instance. MIG boards remap rows, so an error affects only the instance in which it occurred. */
export function instanceFindings({ ecc: { volatile } = {} }: MigSample): readonly Finding[] {
  const count = totalOf(volatile, 'uncorrectable');
  if (count === undefined) return [];
  const message = `${count} uncorrectable SRAM errors in this instance since the driver was loaded`;
  return [uncorrectable(count, message, 'degraded')];
}

function ecc({ ecc: { volatile } = {}, values = {}, recovery }: GpuSample): readonly Finding[] {
  const errors = totalOf(volatile, 'uncorrectable');
  const correctable = totalOf(volatile, 'correctable');
  const findings: Finding[] = [];
  if (errors !== undefined) {
    // Boards that remap rows isolate such errors, and their driver reports when a reset is needed, also when MIG hides the
    // rows. On older boards the next program may get the same memory cell.
    const isContained = values.uncorrectableRows !== undefined || recovery !== undefined;
    const severity: Severity = isContained ? 'degraded' : 'fatal';
    const message = `${errors} uncorrectable memory errors since the driver was loaded`;
    findings.push(uncorrectable(errors, message, severity));
  }
  const corrected = `${correctable} corrected memory errors since the driver was loaded`;
  return [
    ...findings,
    ...raiseGrowth(conditions.CorrectableEccRate, correctable, corrected),
    ...flagged(values, 'isSramThresholdExceeded', conditions.SramThresholdExceeded, 'ThresholdExceeded', 'BelowThreshold'),
  ];
}

const uncorrectable = (count: bigint, message: string, severity: Severity): Finding =>
  raise(conditions.UncorrectableEcc, count > 0n ? 'UncorrectableErrors' : 'NoErrors', { status: count > 0n, message, severity });

function rows(values: Values): readonly Finding[] {
  const [none, low] = [Number(values.banksWithoutSpareRows ?? 0), Number(values.banksWithFewSpareRows ?? 0)];
  const spare = raise(conditions.SpareRowsLow, none > 0 ? 'BanksWithoutSpareRows' : low > 0 ? 'BanksWithFewSpareRows' : 'Enough', {
    status: none + low > 0,
    message: `${none} banks have no spare rows left, ${low} few`,
    severity: none > 0 ? 'degraded' : 'info',
  });
  return [
    ...flagged(values, 'isRemapPending', conditions.RowRemapPending, 'RemapPending', 'NonePending'),
    ...flagged(values, 'isRemapFailed', conditions.RowRemapFailure, 'RemapFailed', 'NoneFailed'),
    ...(values.banksWithMaxSpareRows === undefined ? [] : [spare]),
  ];
}

/** Values of one call, each of which may be absent. */
const PAGES = ['singleBitPages', 'doubleBitPages', 'arePagesPending'] as const;

/** With this number of retired pages, the board cannot retire more pages. */
const MAX_RETIRED_PAGES = 63;

function pages({ singleBitPages, doubleBitPages, arePagesPending }: Values): readonly Finding[] {
  if (singleBitPages === undefined && doubleBitPages === undefined && arePagesPending === undefined) return [];
  const total = Number(singleBitPages ?? 0) + Number(doubleBitPages ?? 0);
  const isFull = total >= MAX_RETIRED_PAGES;
  return [
    raise(conditions.RetiredPages, isFull ? 'PagesUsedUp' : arePagesPending === true ? 'RetirementPending' : 'Few', {
      status: isFull || arePagesPending === true,
      message: `${total} pages retired${arePagesPending === true ? ', more wait for a reset' : ''}`,
      ...(isFull && { severity: 'fatal', remedy: 'replace' }),
    }),
  ];
}

const repairs = (values: Values): readonly Finding[] => [
  ...flagged(values, 'isChannelRepairPending', conditions.MemoryRepairPending, 'ChannelRepairPending', 'NonePending', {
    instance: 'channel',
  }),
  ...flagged(values, 'isTpcRepairPending', conditions.MemoryRepairPending, 'TpcRepairPending', 'NonePending', { instance: 'tpc' }),
  ...flagged(values, 'isMemoryUnrepairable', conditions.MemoryUnrepairable, 'Unrepairable', 'Repairable'),
];

function flagged<C extends ConditionSpec>(
  values: Values,
  key: ValueKey,
  condition: C,
  yes: ReasonOf<C>,
  no: ReasonOf<C>,
  part: { readonly instance?: string } = {},
): readonly Finding[] {
  const status = values[key];
  if (typeof status !== 'boolean') return [];
  const name = VALUES[key].paths[0]?.split('/').at(-1);
  return [raise(condition, status ? yes : no, { status, message: `${name}: ${status ? 'yes' : 'no'}`, ...part })];
}
