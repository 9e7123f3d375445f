import type { BoardFiles } from './board-files.ts';
import type { Facts } from './facts.ts';
import { metrics } from './metrics.ts';
import type { Survey } from './survey.ts';
import { parseCount, parseFlag, parseRegister } from './values.ts';

/** `ecc_status`: bit 0 uncorrectable, bit 1 correctable. XRT, subdev/mig.c. */
const UNCORRECTABLE = 1n;

/**
 * Error counters of the memory banks, of the user function (`u`, as old as the driver's cache, which is not made to ask anew) or of
 * the management function (`m`). A bank without ECC has none.
 */
export function addMemoryBanks(facts: Facts, survey: Survey, id: string, files: BoardFiles, side: 'u' | 'm'): void {
  const names = new Set<string>();
  for (const directory of files.names(new RegExp(`^mig\\.${side}\\.\\d+$`))) {
    const bank = files.in(files.path(directory));
    if (bank.value('ecc_enabled', parseFlag) !== true) continue;
    const told = bank.text('name');
    const name = told === undefined || names.has(told) ? directory.slice('mig.u.'.length) : told;
    names.add(name);
    addBank(facts, survey, `${id}/${name}`, name, bank);
  }
}

function addBank(facts: Facts, survey: Survey, key: string, name: string, bank: BoardFiles): void {
  const correctable = bank.value('ecc_ce_cnt', parseCount);
  const uncorrectable = bank.value('ecc_ue_cnt', parseCount);
  facts.add(metrics.errors, correctable, { kind: 'ecc_correctable', bank: name });
  facts.add(metrics.errors, uncorrectable, { kind: 'ecc_uncorrectable', bank: name });
  if (correctable !== undefined) facts.count('EccCorrectable', `${name}: ecc_ce_cnt ${correctable}`, correctable, name);
  const status = bank.value('ecc_status', parseRegister);
  if (status === undefined && uncorrectable === undefined) return;
  const isSet = status !== undefined && (status & UNCORRECTABLE) !== 0n;
  const hasGrown = uncorrectable !== undefined && survey.memory.hasGrown(`${key}/ue`, Number(uncorrectable));
  const reason = isSet ? 'StatusSet' : hasGrown ? 'CounterGrew' : 'Clear';
  facts.find('EccUncorrectable', isSet || hasGrown, reason, `${name}: ecc_ue_cnt ${uncorrectable ?? 'unknown'}`, { instance: name });
}
