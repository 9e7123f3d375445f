import type { Finding, Severity } from '../../model/health.ts';
import { raise } from '../kit/finding.ts';
import { pcieErrorFindings, pcieFindings } from '../kit/pcie/health.ts';
import { overTemperature } from '../kit/temperature.ts';
import type { AwakeSample, CardReadResult } from './card.ts';
import { conditions } from './conditions.ts';
import type { ThrottleSample } from './gts.ts';

/** All findings of one sample of a card. Pure. */
export function findingsOf(sample: CardReadResult): Finding[] {
  switch (sample.state) {
    case 'hung':
      return [];
    case 'asleep':
      return sample.isInSurvivability === undefined ? [] : [survivability(sample.isInSurvivability)];
    case 'gone':
      return pcieErrorFindings({ aer: { errors: [], totals: {} }, answers: false });
    case 'awake':
      return awakeFindings(sample);
  }
}

function awakeFindings({ isInSurvivability, monitor, throttle, isDowngraded, pcie }: AwakeSample): Finding[] {
  return [
    ...(isInSurvivability === undefined ? [] : [survivability(isInSurvivability)]),
    ...monitor.temperatures.map(overTemperature),
    ...(throttle === undefined ? [] : throttleFindings(throttle)),
    ...(isDowngraded === undefined ? [] : [downgraded(isDowngraded)]),
    ...(pcie === undefined ? [] : pcieFindings(pcie)),
  ];
}

function survivability(isIn: boolean): Finding {
  const message = isIn ? 'the card is in survivability mode' : 'the card is not in survivability mode';
  return raise(conditions.Survivability, isIn ? 'SurvivabilityMode' : 'NormalMode', { status: isIn, message });
}

/** Heat and faults of the power supply need a person. Limits of power are how the card works. */
const severityOf = (reason: string): Severity => (/thermal|prochot|^vr_/.test(reason) ? 'degraded' : 'info');

function throttleFindings({ reasons, unknown }: ThrottleSample): Finding[] {
  const { Throttled } = conditions;
  const held = [...reasons].flatMap(([reason, gts]): Finding[] => {
    if (gts.length === 0) return [];
    const message = `${reason} on ${gts.join(', ')}`;
    return [raise(Throttled, 'Throttled', { instance: reason, status: true, severity: severityOf(reason), message })];
  });
  if (unknown.length === 0) return [...held, raise(Throttled, 'NotThrottled', { status: false, message: 'no other reason holds' })];
  const message = `the reasons of ${unknown.join(', ')} cannot be read`;
  const others = [...reasons].filter(([, gts]) => gts.length === 0);
  return [...held, ...others.map(([instance]) => raise(Throttled, 'Unreadable', { instance, status: 'unknown', message }))];
}

function downgraded(status: boolean | 'unknown'): Finding {
  const { LinkDowngraded } = conditions;
  if (status === 'unknown') return raise(LinkDowngraded, 'Unreadable', { status, message: 'the state of the link cannot be read' });
  const message = status ? 'the card trained its link at a lower speed' : 'the card trained its link as it can';
  return raise(LinkDowngraded, status ? 'Downgraded' : 'AsTrained', { status, message });
}
