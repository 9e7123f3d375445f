import { afterEach, expect, it } from 'vitest';
import { createHealthEngine } from '../../../src/health/engine/engine.ts';
import { createPolicy } from '../../../src/health/policy/policy.ts';
import { seconds } from '../../../src/model/duration.ts';
import { conditions } from '../../../src/probes/amdgpu/conditions.ts';
import { eventState } from '../../../src/sim/families/amdgpu/simulate.ts';
import { readAt } from '../../health/one-device.ts';
import { type ProbedMachine, reportOf, simulatedMachine } from './harness.ts';

const ID = '0020:10:00.0';
const EVENTS = `sys/devices/pci0020:00/0020:00:01.0/${ID}/ras/event_state`;
const START_MS = Date.parse('2026-05-28T08:32:00Z');

let machine: ProbedMachine;
afterEach(() => machine.end());

/** Verdict and conditions of the card after each of these texts of `event_state`, ten seconds apart; undefined is a card without the file. */
function verdicts(texts: readonly (string | undefined)[]): readonly string[] {
  machine = simulatedMachine(1);
  const { policy } = createPolicy({ specs: { amdgpu: Object.values(conditions) }, config: {} });
  const engine = createHealthEngine({ policy });
  return texts.map((text, n) => {
    if (text === undefined) machine.remove(EVENTS);
    else machine.write(EVENTS, `${text}\n`);
    machine.forward(seconds(10));
    const { device, findings } = reportOf(machine.collect(), ID);
    const nowMs = START_MS + n * seconds(10);
    const devices = [{ ...readAt(device, nowMs), read: { findings: findings.filter(({ type }) => type in conditions), readAtMs: nowMs } }];
    const [verdict] = engine.judge({ devices, monotonicMs: nowMs }, nowMs).verdicts.values();
    return [verdict?.state, ...(verdict?.conditions ?? []).map(({ type, severity }) => `${type}=${severity}`)].join(' ');
  });
}

/** ROCm/device-metrics-exporter#506: a record of 15 hours ago took a card that works, a virtual function, out of service. */
it('a fatal error from before the first read leaves the card healthy, with a trace, and a further one does not', () => {
  expect(verdicts([eventState(1), eventState(1), eventState(2), eventState(2)])).toEqual([
    'healthy FatalErrorRecorded=info',
    'healthy FatalErrorRecorded=info',
    'unhealthy RasFatal=fatal FatalErrorRecorded=info',
    'unhealthy RasFatal=fatal FatalErrorRecorded=info',
  ]);
});

it('a virtual function without the file has no such record', () => {
  expect(verdicts([undefined, undefined])).toEqual(['healthy', 'healthy']);
});
