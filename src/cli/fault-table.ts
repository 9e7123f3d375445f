import type { ListedFault } from '../incidents/by-device.ts';
import { textTable } from './text-table.ts';

/** The table of faults below that of the incidents; empty without faults. */
export function faultTable(faults: readonly ListedFault[]): string {
  if (faults.length === 0) return '';
  const rows = faults.map(({ time, last, count, device, fault, remedy, blame, holders }) => [
    time,
    device,
    fault,
    last === undefined ? '1' : `${count} until ${last}`,
    remedy,
    `${blame === 'one-of' ? 'one of ' : ''}${holders.join(', ')}`,
  ]);
  return `\n${textTable([['FAULT AT', 'DEVICE', 'FAULT', 'TIMES', 'REMEDY', 'HELD BY'], ...rows])}`;
}

/** The faults in an answer of the API. None when an older agent answered. */
export function faultsIn(body: unknown): readonly ListedFault[] {
  const list = (body as { readonly faults?: unknown } | undefined | null)?.faults;
  const isListed = (one: Partial<ListedFault>): boolean =>
    [one.id, one.time, one.device, one.fault, one.remedy].every((text) => typeof text === 'string') && Array.isArray(one.holders);
  return Array.isArray(list) && list.every(isListed) ? list : [];
}
