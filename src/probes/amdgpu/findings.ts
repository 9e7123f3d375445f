import type { Finding } from '../../model/health.ts';
import { overTemperature } from '../kit/drm/temperature.ts';
import { pcieErrorFindings, pcieFindings } from '../kit/pcie/health.ts';
import type { AwakeSample, CardSample } from './card.ts';
import { conditions } from './conditions.ts';
import type { AmdgpuOptions } from './options.ts';
import type { BadPages, BlockErrors, RasEvents } from './ras.ts';
import type { RasSample } from './ras-reader.ts';
import type { RasBlocks } from './topology.ts';

/** All findings of one sample of a card. Pure. */
export function findingsOf(sample: CardSample): Finding[] {
  switch (sample.state) {
    case 'asleep':
      return [{ type: conditions.Resetting.type, status: false, reason: 'Asleep', message: 'the card sleeps' }];
    case 'gone':
      return pcieErrorFindings({ aer: { errors: [], totals: {} }, answers: false });
    case 'hung':
      return [];
    case 'awake':
      return awakeFindings(sample);
  }
}

function awakeFindings(sample: AwakeSample): Finding[] {
  return [
    ...(sample.isRefused === undefined ? [] : [resetting(sample.isRefused)]),
    ...(sample.monitor?.temperatures ?? []).map(overTemperature),
    ...rasFindings(sample.ras),
    ...linkFindings(sample),
    ...(sample.pcie === undefined ? [] : pcieFindings(sample.pcie)),
  ];
}

function resetting(isRefused: boolean): Finding {
  const message = isRefused ? 'the driver refuses reads of the awake card' : 'the driver answers reads';
  return { type: conditions.Resetting.type, status: isRefused, reason: isRefused ? 'ReadsRefused' : 'ReadsAnswered', message };
}

function rasFindings({ events, blocks, badPages }: RasSample): Finding[] {
  return [
    ...(events === undefined ? [] : events === 'unknown' ? [unreadable('RasFatal', 'event_state')] : eventFindings(events)),
    ...blocks.flatMap(({ block, errors, isUnknown }) => {
      if (errors !== undefined) return blockFindings(block, errors);
      return isUnknown ? [{ ...unreadable('RasUncorrectable', `the errors of ${block}`), instance: block }] : [];
    }),
    ...(badPages === undefined
      ? []
      : badPages === 'unknown'
        ? [unreadable('BadPagesPending', 'the list of bad pages'), unreadable('BadPagesFailed', 'the list of bad pages')]
        : badPageFindings(badPages)),
  ];
}

/**
 * Conditions of a card whose files of error handling are missing, although its driver handles errors of `blocks`. Without them, a card whose
 * fault only these files show looks healthy. Whether a kernel has `event_state`, and a card a list of bad pages, nothing else tells: these
 * two are missing only with the whole directory.
 */
export function missingRasFindings({ ras }: AwakeSample, blocks: RasBlocks, options: AmdgpuOptions): Finding[] {
  if (blocks === 'none') return [];
  const missing = options['ras-interval'] === 0 ? [] : blocks.filter((name) => !ras.blocks.some(({ block }) => block === name));
  const ofBlocks = missing.map((name) => ({ ...unreadable('RasUncorrectable', `the errors of ${name}`), instance: name }));
  if (ras.isAbsent !== true) return ofBlocks;
  const hasPages = blocks.includes('umc') && options['bad-pages-interval'] > 0;
  return [
    unreadable('RasFatal', 'event_state'),
    ...ofBlocks,
    ...(hasPages ? [unreadable('BadPagesPending', 'the list of bad pages'), unreadable('BadPagesFailed', 'the list of bad pages')] : []),
  ];
}

const unreadable = (type: 'RasFatal' | 'RasUncorrectable' | 'BadPagesPending' | 'BadPagesFailed', what: string): Finding => ({
  type,
  status: 'unknown',
  reason: 'Unreadable',
  message: `${what} cannot be read`,
});

function eventFindings({ fatal, poisonCreated, poisonConsumed }: RasEvents): Finding[] {
  const count = (type: string, what: string, value: number | bigint | undefined): Finding[] =>
    value === undefined ? [] : [{ type, reason: 'CounterGrows', message: `${what}: ${value}`, count: Number(value) }];
  const isFatal = fatal !== undefined && fatal > 0;
  const message = `${fatal} fatal errors since the driver was loaded`;
  return [
    ...(fatal === undefined
      ? []
      : [{ type: conditions.RasFatal.type, status: isFatal, reason: isFatal ? 'FatalErrors' : 'NoFatalErrors', message }]),
    ...count(conditions.PoisonConsumed.type, 'consumed poison', poisonConsumed),
    ...count(conditions.PoisonCreated.type, 'created poison', poisonCreated),
  ];
}

function blockFindings(block: string, { uncorrectable, correctable, deferred }: BlockErrors): Finding[] {
  const count = (type: string, what: string, value: number | bigint | undefined): Finding[] =>
    value === undefined
      ? []
      : [{ type, instance: block, reason: 'CounterGrows', message: `${block}: ${value} ${what}`, count: Number(value) }];
  const isBad = uncorrectable !== undefined && uncorrectable > 0;
  const found: Finding[] =
    uncorrectable === undefined
      ? []
      : [
          {
            type: conditions.RasUncorrectable.type,
            instance: block,
            status: isBad,
            reason: isBad ? 'UncorrectableErrors' : 'NoErrors',
            message: `${block}: ${uncorrectable} uncorrectable errors since the driver was loaded`,
          },
        ];
  return [
    ...found,
    ...count(conditions.RasDeferred.type, 'deferred errors', deferred),
    ...count(conditions.RasCorrectable.type, 'corrected errors', correctable),
  ];
}

function badPageFindings({ pending, failed, isWhole }: BadPages): Finding[] {
  const finding = (type: string, pages: number, what: string, bad: string, good: string): Finding => {
    const message = `${pages} pages ${what}`;
    if (pages > 0) return { type, status: true, reason: bad, message };
    return isWhole ? { type, status: false, reason: good, message } : { type, status: 'unknown', reason: 'Unreadable', message };
  };
  return [
    finding(conditions.BadPagesPending.type, pending, 'wait for a reset', 'PagesPending', 'NonePending'),
    finding(conditions.BadPagesFailed.type, failed, 'could not be retired', 'PagesFailed', 'NoneFailed'),
  ];
}

/** A link that was never up leads to no GPU on this board, which is no fault. */
function linkFindings({ table }: AwakeSample): Finding[] {
  return (table?.samples ?? []).flatMap(({ quantity, index, value }): Finding[] => {
    if (quantity !== 'xgmiStatus' || (value !== 0 && value !== 1)) return [];
    const isUp = value === 1;
    const instance = `xgmi${index}`;
    const message = `${instance} is ${isUp ? 'up' : 'down'}`;
    return [{ type: conditions.XgmiLinkDown.type, instance, reason: isUp ? 'LinkUp' : 'LinkDown', message, level: isUp }];
  });
}
