import type { BoardFiles } from './board-files.ts';
import type { Facts } from './facts.ts';
import { metrics } from './metrics.ts';
import { parseCount, parseFlag, parseRegister } from './values.ts';

/** `ecc_status`: bit 0 uncorrectable, bit 1 correctable. XRT, subdev/mig.c. */
const UNCORRECTABLE = 1n;

/**
 * Error counters of the memory banks, of the user function (`u`, as old as the driver's cache, which is not made to ask anew) or of
 * the management function (`m`). A bank without ECC has none.
 */
export function addMemoryBanks(facts: Facts, files: BoardFiles, side: 'u' | 'm'): void {
  const names = new Set<string>();
  for (const directory of files.names(new RegExp(`^mig\\.${side}\\.\\d+$`))) {
    const bank = files.in(files.path(directory));
    if (bank.value('ecc_enabled', parseFlag) !== true) continue;
    const told = bank.text('name');
    const name = told === undefined || names.has(told) ? directory.slice('mig.u.'.length) : told;
    names.add(name);
    addBank(facts, name, bank);
  }
}

function addBank(facts: Facts, name: string, bank: BoardFiles): void {
  const correctable = bank.value('ecc_ce_cnt', parseCount);
  const uncorrectable = bank.value('ecc_ue_cnt', parseCount);
  facts.add(metrics.errors, correctable, { kind: 'ecc_correctable', bank: name });
  facts.add(metrics.errors, uncorrectable, { kind: 'ecc_uncorrectable', bank: name });
  if (correctable !== undefined) facts.count('EccCorrectable', `${name}: ecc_ce_cnt ${correctable}`, correctable, name);
  const status = bank.fact('ecc_status', parseRegister);
  const message = `${name}: ecc_ue_cnt ${uncorrectable ?? 'unknown'}`;
  const instance = { instance: name };
  if (status.isFailed) facts.find('EccUncorrectable', 'unknown', 'StatusSet', `${name}: ecc_status cannot be read`, instance);
  else if (status.value !== undefined) {
    const isSet = (status.value & UNCORRECTABLE) !== 0n;
    facts.find('EccUncorrectable', isSet, isSet ? 'StatusSet' : 'Clear', message, instance);
  }
  if (uncorrectable === undefined) return;
  // Errors that the bank had at first sight may be old; each one more counts. Flag and counter each tell for themselves alone.
  const counted = { type: 'EccUncorrectable', instance: `${name}/count`, reason: 'CounterGrew', message };
  facts.findings.push({ ...counted, level: -Number(uncorrectable) });
}
