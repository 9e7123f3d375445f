import { writeSync } from 'node:fs';
import { createHealthEngine } from '../../src/health/engine/engine.ts';
import { createJournal } from '../../src/health/journal/journal.ts';
import { createStateFile } from '../../src/health/journal/state-file.ts';
import { createPolicy } from '../../src/health/policy/policy.ts';
import type { ConditionSpec, Finding } from '../../src/model/health.ts';

/**
 * A program that judges one device without pause, to be killed at any moment. The condition `Latched` is seen only in the first turn of
 * the first run; another condition changes repeatedly. Prints each event to standard output.
 */
const [path = '', bootId = ''] = process.argv.slice(2);
const base = { severity: 'fatal', reasons: ['Because'], meaning: '', remedy: 'reset', source: '' } as const;
const specs: readonly ConditionSpec[] = [
  { ...base, type: 'Latched', class: 'latched' },
  { ...base, type: 'Comes', class: 'self-clearing', severity: 'degraded' },
];
const finding = (type: string, status = true): Finding => ({ type, reason: 'Because', message: 'x'.repeat(2_000), status });
const device = { family: 'test', id: 'one', kind: 'card', aliases: [] };

const file = createStateFile({ path, bootId });
const { state, ignored } = await file.read();
writeSync(1, `start ${ignored ?? 'restored'}\n`);
const engine = createHealthEngine({ policy: createPolicy({ specs: { test: specs } }).policy, ...(state === undefined ? {} : { state }) });
const journal = createJournal({
  engine,
  file,
  announced: ({ id, transition, condition, to }) => writeSync(1, `tell ${id} ${transition} ${condition ?? ''} ${to ?? ''}\n`),
});
for (let turn = 0; ; turn += 1) {
  const nowMs = Date.now();
  // Only the first run sees the latched fault; later runs must remember it.
  const findings = [...(state === undefined ? [finding('Latched')] : []), finding('Comes', turn % 2 === 0)];
  const judgement = engine.judge({ devices: [{ key: 'test/one', device, read: { findings, readAtMs: nowMs }, holders: [] }] }, nowMs);
  await journal.record(judgement, nowMs);
}
