import type { LedgerEntry } from '../../src/accounting/ledger.ts';
import { type UsageReport, UsageReporter } from '../../src/accounting/report.ts';

export const HOUR_MS = 3_600_000;
export const HOUR = 3_600;
/** 12:00 UTC. */
export const START_MS = Date.parse('2026-11-23T12:00:00Z');

/** An account that held one device from `sinceHours` on, of which the given hours passed at `atHours`. */
export function containerEntry(atHours: number, part: Partial<LedgerEntry> = {}): LedgerEntry {
  return {
    atMs: START_MS + atHours * HOUR_MS,
    namespace: 'ml',
    pod: 'train-0',
    container: 'main',
    resource: 'example.com/toy',
    device: 'toy/toy-0',
    sinceMs: START_MS,
    allocatedSeconds: atHours * HOUR,
    shareSeconds: atHours * HOUR,
    idleSeconds: 0,
    unobservedSeconds: 0,
    busySeconds: {},
    ...part,
  };
}

/** The report of entries that are all at hand. */
export function usageReport(entries: Iterable<LedgerEntry>, span: ConstructorParameters<typeof UsageReporter>[0]): UsageReport {
  const reporter = new UsageReporter(span);
  for (const entry of entries) reporter.add(entry);
  return reporter.report();
}
