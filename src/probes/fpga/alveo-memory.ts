import type { DeviceFiles } from '../kit/device-files.ts';
import { raiseGrowth } from '../kit/finding.ts';
import { conditions } from './conditions.ts';
import { metrics } from './metrics.ts';
import { numbered } from './name-order.ts';
import type { ReportBuilder } from './report-builder.ts';
import { parseCount, parseFlag, parseRegister } from './values.ts';

/** Bit 0 of `ecc_status` means uncorrectable, bit 1 correctable. Source: XRT, subdev/mig.c. */
const UNCORRECTABLE = 1n;

/**
 * Adds the error counters of the memory banks. `side` is the user function (`u`) or the management function (`m`). Values of `u` come
 * from a cache of the driver, which the probe does not refresh. A bank without ECC has no counters.
 */
export function addMemoryBanks(builder: ReportBuilder, files: DeviceFiles, side: 'u' | 'm'): void {
  const names = new Set<string>();
  for (const directory of numbered(files, new RegExp(`^mig\\.${side}\\.\\d+$`))) {
    const bank = files.below(directory);
    if (bank.value('ecc_enabled', parseFlag) !== true) continue;
    const label = bank.text('name');
    const name = label === undefined || names.has(label) ? directory.slice('mig.u.'.length) : label;
    names.add(name);
    addBank(builder, name, bank);
  }
}

function addBank(builder: ReportBuilder, name: string, bank: DeviceFiles): void {
  const correctable = bank.value('ecc_ce_cnt', parseCount);
  const uncorrectable = bank.value('ecc_ue_cnt', parseCount);
  builder.add(metrics.errors, correctable, { kind: 'ecc_correctable', bank: name });
  builder.add(metrics.errors, uncorrectable, { kind: 'ecc_uncorrectable', bank: name });
  builder.findings.push(...raiseGrowth(conditions.EccCorrectable, correctable, `${name}: ecc_ce_cnt ${correctable}`, name));
  const status = bank.once('ecc_status', parseRegister);
  const message = `${name}: ecc_ue_cnt ${uncorrectable ?? 'unknown'}`;
  const instance = { instance: name };
  if (status.isUnknown) builder.find('EccUncorrectable', 'unknown', 'StatusSet', `${name}: ecc_status cannot be read`, instance);
  else if (status.value !== undefined) {
    const isSet = (status.value & UNCORRECTABLE) !== 0n;
    builder.find('EccUncorrectable', isSet, isSet ? 'StatusSet' : 'Clear', message, instance);
  }
  if (uncorrectable === undefined) return;
  // Errors before the first read may be old, so only further errors count. Flag and counter are separate instances.
  const counted = { type: 'EccUncorrectable', instance: `${name}/count`, reason: 'CounterGrew', message };
  builder.findings.push({ ...counted, level: -Number(uncorrectable) });
}
