import type { Finding, Severity } from '../../model/health.ts';
import { overTemperature } from '../kit/drm/temperature.ts';
import { pcieErrorFindings, pcieFindings } from '../kit/pcie/health.ts';
import type { AwakeSample, CardSample } from './card.ts';
import { conditions } from './conditions.ts';
import type { ThrottleSample } from './gts.ts';

/** All findings of one sample of a card. Pure. */
export function findingsOf(sample: CardSample): Finding[] {
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
  return { type: conditions.Survivability.type, status: isIn, reason: isIn ? 'SurvivabilityMode' : 'NormalMode', message };
}

/** Heat and faults of the power supply need a person. Limits of power are how the card works. */
const severityOf = (reason: string): Severity => (/thermal|prochot|^vr_/.test(reason) ? 'degraded' : 'info');

function throttleFindings({ reasons, unknown }: ThrottleSample): Finding[] {
  const { type } = conditions.Throttled;
  const held = [...reasons].flatMap(([reason, gts]): Finding[] =>
    gts.length === 0
      ? []
      : [
          {
            type,
            instance: reason,
            status: true,
            reason: 'Throttled',
            severity: severityOf(reason),
            message: `${reason} on ${gts.join(', ')}`,
          },
        ],
  );
  if (unknown.length === 0) return [...held, { type, status: false, reason: 'NotThrottled', message: 'no other reason holds' }];
  const message = `the reasons of ${unknown.join(', ')} cannot be read`;
  const others = [...reasons].flatMap(([reason, gts]): Finding[] =>
    gts.length > 0 ? [] : [{ type, instance: reason, status: 'unknown', reason: 'Unreadable', message }],
  );
  return [...held, ...others];
}

function downgraded(isDowngraded: boolean | 'unknown'): Finding {
  const { type } = conditions.LinkDowngraded;
  if (isDowngraded === 'unknown') return { type, status: 'unknown', reason: 'Unreadable', message: 'the state of the link cannot be read' };
  const message = isDowngraded ? 'the card trained its link at a lower speed' : 'the card trained its link as it can';
  return { type, status: isDowngraded, reason: isDowngraded ? 'Downgraded' : 'AsTrained', message };
}
