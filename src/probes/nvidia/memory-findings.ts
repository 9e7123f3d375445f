import type { Finding, Severity } from '../../model/health.ts';
import { asBoolean, numberValue } from './cell.ts';
import { cellAt, type Element, firstCell } from './document.ts';
import { eccCounts, totalOf } from './ecc.ts';
import { recoveryAction } from './readings.ts';

/** What one `<gpu>` element says of the GPU's memory. */
export function memoryFindings(gpu: Element): readonly Finding[] {
  return [...ecc(gpu), ...rows(gpu), ...pages(gpu), ...repairs(gpu)];
}

/** What one `<mig_device>` element says by itself. MIG boards remap rows, so an error stays with those who met it. */
export function instanceFindings(instance: Element): readonly Finding[] {
  const count = numberValue(cellAt(instance, 'ecc_error_count/volatile_count/sram_uncorrectable'), 'count');
  if (count === undefined) return [];
  const reason = count > 0 ? 'UncorrectableErrors' : 'NoErrors';
  const message = `${count} uncorrectable SRAM errors in this instance since the driver was loaded`;
  return [{ type: 'UncorrectableEcc', status: count > 0, reason, message, severity: 'degraded' }];
}

function ecc(gpu: Element): readonly Finding[] {
  const counts = eccCounts(gpu, 'volatile');
  const uncorrectable = totalOf(counts, 'uncorrectable');
  const correctable = totalOf(counts, 'correctable');
  const findings: Finding[] = [];
  if (uncorrectable !== undefined) {
    const status = uncorrectable > 0n;
    // Boards that remap rows contain such errors, and the driver says by itself when a reset is needed: its word counts, also
    // where MIG hides the rows. On older boards the next program may be given the same cell.
    const isContained = cellAt(gpu, 'remapped_rows/remapped_row_unc').kind === 'number' || recoveryAction(gpu).kind === 'text';
    const severity: Severity = isContained ? 'degraded' : 'fatal';
    const message = `${uncorrectable} uncorrectable memory errors since the driver was loaded`;
    findings.push({ type: 'UncorrectableEcc', status, reason: status ? 'UncorrectableErrors' : 'NoErrors', message, severity });
  }
  if (correctable !== undefined) {
    const message = `${correctable} corrected memory errors since the driver was loaded`;
    findings.push({ type: 'CorrectableEccRate', reason: 'CounterGrows', message, count: Number(correctable) });
  }
  return [
    ...findings,
    ...flagged(gpu, 'ecc_errors/aggregate/sram_threshold_exceeded', 'SramThresholdExceeded', ['ThresholdExceeded', 'BelowThreshold']),
  ];
}

/** Boards after Blackwell remap banks. */
const PENDING_REMAPS = ['remapped_rows/remapped_row_pending', 'remapped_banks/bank_remapper_pending'];

function rows(gpu: Element): readonly Finding[] {
  const banks = (availability: string): number => {
    const cell = cellAt(gpu, `remapped_rows/row_remapper_histogram/row_remapper_histogram_${availability}`);
    return cell.kind === 'number' ? cell.value : 0;
  };
  const hasHistogram = cellAt(gpu, 'remapped_rows/row_remapper_histogram/row_remapper_histogram_max').kind === 'number';
  const [none, low] = [banks('none'), banks('low')];
  const spare: Finding = {
    type: 'SpareRowsLow',
    status: none + low > 0,
    reason: none > 0 ? 'BanksWithoutSpareRows' : low > 0 ? 'BanksWithFewSpareRows' : 'Enough',
    message: `${none} banks have no spare rows left, ${low} few`,
    severity: none > 0 ? 'degraded' : 'info',
  };
  return [
    ...flagged(gpu, PENDING_REMAPS, 'RowRemapPending', ['RemapPending', 'NonePending']),
    ...flagged(gpu, 'remapped_rows/remapped_row_failure', 'RowRemapFailure', ['RemapFailed', 'NoneFailed']),
    ...(hasHistogram ? [spare] : []),
  ];
}

/** From here on the board has no room for further pages. */
const MOST_RETIRED_PAGES = 63;

function pages(gpu: Element): readonly Finding[] {
  const counts = ['multiple_single_bit_retirement', 'double_bit_retirement'].map((cause) =>
    cellAt(gpu, `retired_pages/${cause}/retired_count`),
  );
  const known = counts.filter((cell) => cell.kind === 'number');
  const pending = asBoolean(firstCell(gpu, ['retired_pages/pending_retirement', 'retired_pages/pending_blacklist']));
  if (known.length === 0 && pending === undefined) return [];
  const total = known.reduce((sum, cell) => sum + cell.value, 0);
  const isFull = total >= MOST_RETIRED_PAGES;
  const message = `${total} pages retired${pending === true ? ', more wait for a reset' : ''}`;
  const reason = isFull ? 'PagesUsedUp' : pending === true ? 'RetirementPending' : 'Few';
  return [
    {
      type: 'RetiredPages',
      status: isFull || pending === true,
      reason,
      message,
      ...(isFull ? { severity: 'fatal', remedy: 'replace' } : {}),
    },
  ];
}

function repairs(gpu: Element): readonly Finding[] {
  return [
    ...flagged(gpu, 'ecc_errors/channel_repair_pending', 'MemoryRepairPending', ['ChannelRepairPending', 'NonePending'], 'channel'),
    ...flagged(gpu, 'ecc_errors/tpc_repair_pending', 'MemoryRepairPending', ['TpcRepairPending', 'NonePending'], 'tpc'),
    ...flagged(gpu, 'ecc_errors/unrepairable_memory', 'MemoryUnrepairable', ['Unrepairable', 'Repairable']),
  ];
}

function flagged(
  gpu: Element,
  paths: string | readonly string[],
  type: string,
  [yes, no]: readonly [string, string],
  instance?: string,
): readonly Finding[] {
  const path = [paths].flat().find((each) => asBoolean(cellAt(gpu, each)) !== undefined);
  const status = path === undefined ? undefined : asBoolean(cellAt(gpu, path));
  if (path === undefined || status === undefined) return [];
  return [
    {
      type,
      status,
      reason: status ? yes : no,
      message: `${path.split('/').at(-1)}: ${status ? 'yes' : 'no'}`,
      ...(instance === undefined ? {} : { instance }),
    },
  ];
}
