import { nameWithInstance } from '../../board/condition-text.ts';
import { appearanceOf, appearedAt, conditionsOf, type DeviceView } from '../../board/device-view.ts';
import { unfoundText } from '../../board/explain.ts';
import { type Html, html } from '../../board/html.ts';
import { byAttention } from '../../board/order.ts';
import { incidentPath } from '../../board/paths.ts';
import { clock } from '../../board/state-html.ts';
import { faultPhrase } from '../../board/summary.ts';
import { timeText } from '../../board/units.ts';
import { wayText } from '../../board/ways.ts';
import { STATE_NAMES } from '../../board/words.ts';
import type { ContainerLocality } from '../../model/container-locality.ts';
import { durationText } from '../../model/duration.ts';
import { comparePaths } from '../../model/locality.ts';
import type { ContainerUsage, ContainerWaiting } from '../../model/usage.ts';

interface PodFacts {
  readonly rows: readonly DeviceView[];
  /** How many of its ids lead to no device. */
  readonly unfound: number;
  readonly waiting: readonly ContainerWaiting[];
  readonly localities: readonly ContainerLocality[];
  readonly usage: readonly ContainerUsage[];
  /** What hit it, the newest first. */
  readonly incidents: readonly HitRecord[];
}

/** The record of a fault: the name of the device, and its conditions. */
export interface HitRecord {
  readonly id: string;
  readonly name: string;
  readonly conditions: readonly string[];
}

/** The four questions of the team that owns a pod. What was not read has no answer. */
export const podAnswers = (facts: PodFacts, nowMs: number): Html =>
  html`<div class="answers">${[wellAnswer(facts, nowMs), moveAnswer(facts, nowMs), nearAnswer(facts), usedAnswer(facts.usage)]}</div>`;

type Mood = 'ok' | 'mind' | 'bad' | '';

const answer = (question: string, mood: Mood, words: Html | string, proof: Html | string | undefined): Html =>
  html`<section class="card answer ${mood}"><h2>${question}</h2><strong>${words}</strong>${proof && html`<p class="soft">${proof}</p>`}</section>`;

function wellAnswer({ rows, unfound, usage, incidents }: PodFacts, nowMs: number): Html {
  const question = 'Are its devices well?';
  const [worst] = rows.toSorted(byAttention);
  if (worst === undefined) {
    if (unfound > 0) return answer(question, '', 'Not known', 'No device of it was found so far.');
    const endedAtMs = Math.max(...usage.map((one) => one.endedAtMs ?? Number.POSITIVE_INFINITY));
    const ended = Number.isFinite(endedAtMs) ? html`Ended ${clock(timeText(endedAtMs), nowMs)}` : undefined;
    return incidents.length === 0
      ? answer(question, '', ended ?? 'It holds none now', ended && 'No record tells of a fault that hit it.')
      : answer(question, 'bad', html`${ended ?? 'It holds none now'}, hit by:`, hitLinks(incidents));
  }
  const state = appearanceOf(worst);
  const since = appearedAt(worst);
  const age = since === undefined ? '' : ` for ${durationText(nowMs - Date.parse(since))}`;
  if (state === 'healthy' && unfound > 0)
    return answer(question, '', 'Not known', `${unfoundText(unfound, rows.length)}; the rest is healthy`);
  if (state === 'healthy')
    return answer(
      question,
      'ok',
      rows.length === 1 ? 'Yes' : rows.length === 2 ? 'Yes, both' : `Yes, all ${rows.length}`,
      `Healthy${age}, no condition pending`,
    );
  const [condition] = conditionsOf(worst);
  const why = condition === undefined ? '' : `: ${nameWithInstance(condition)}, ${condition.message}`;
  return answer(
    question,
    state === 'unhealthy' || state === 'missing' ? 'bad' : 'mind',
    `No: ${worst.name} is ${state}`,
    `${STATE_NAMES[state]}${age}${why}`,
  );
}

const MOST_HITS = 4;

/** `GPU 3 is lost`, as links to the records. */
function hitLinks(incidents: readonly HitRecord[]): Html {
  const links = incidents
    .slice(0, MOST_HITS)
    .map(
      ({ id, name, conditions }, at) =>
        html`${at === 0 ? undefined : ', '}<a href="${incidentPath(id)}">${name} ${faultPhrase(conditions)}</a>`,
    );
  return html`${links}${incidents.length > MOST_HITS ? `, and ${incidents.length - MOST_HITS} more` : undefined}`;
}

/** The proof of an answer about a pod that has ended or gave its devices back. */
const HOLDS_NONE = 'It holds no device now.';
const holdsNone = ({ rows, unfound }: PodFacts): boolean => rows.length === 0 && unfound === 0;

function moveAnswer(facts: PodFacts, nowMs: number): Html {
  const { waiting } = facts;
  const question = 'Does it move?';
  const rank = ({ state }: ContainerWaiting): number => ['stalled', 'waiting', 'unknown', 'not-waiting'].indexOf(state);
  const [worst] = waiting.toSorted((a, b) => rank(a) - rank(b));
  if (worst === undefined)
    return answer(question, '', 'Not judged', holdsNone(facts) ? HOLDS_NONE : 'Only a container with a GPU is judged.');
  const { state, lastProgressMs, stepSeconds } = worst;
  const ago =
    lastProgressMs === undefined ? '' : `, ${durationText(Math.max(0, Math.floor((nowMs - lastProgressMs) / 1_000)) * 1_000)} ago`;
  const steps = stepSeconds === undefined ? undefined : `Steps of about ${durationText(stepSeconds * 1_000)}`;
  if (state === 'not-waiting') return answer(question, 'ok', `Yes${ago}`, steps);
  if (state === 'unknown') return answer(question, '', 'Not known', worst.unknown ?? 'Something was not read.');
  return answer(
    question,
    'bad',
    `No${ago === '' ? '' : `, last${ago.slice(1)}`}`,
    state === 'stalled' ? 'Busy, but its steps have ended' : 'Busy, but nothing moves',
  );
}

function nearAnswer(facts: PodFacts): Html {
  const { localities, unfound } = facts;
  const question = 'Is its GPU near its NIC?';
  if (holdsNone(facts)) return answer(question, '', 'Not judged', HOLDS_NONE);
  const paths = localities.flatMap(({ nicPath }) => nicPath ?? []);
  const farthest = paths.toSorted(comparePaths).at(-1);
  if (localities.every(({ nics }) => nics.length === 0)) {
    if (unfound > 0) return answer(question, '', 'Not known', 'A device of it was not found.');
    const between = localities
      .flatMap(({ gpuPath }) => gpuPath ?? [])
      .toSorted(comparePaths)
      .at(-1);
    return answer(
      question,
      '',
      'It holds no GPU with a NIC',
      between === undefined ? undefined : `Its GPUs reach each other ${wayText(between)}`,
    );
  }
  if (farthest === undefined || localities.some(({ nics, nicPath }) => nics.length > 0 && nicPath === undefined))
    return answer(question, '', 'Not known', 'The place of a device was not read.');
  const isFar = farthest === 'SYS';
  const isNear = farthest === 'PIX' || farthest === 'PXB';
  return answer(
    question,
    isNear ? 'ok' : 'mind',
    `${isFar ? 'No' : isNear ? 'Yes' : 'On the same NUMA node'}: ${farthest}`,
    `A GPU reaches its nearest NIC ${wayText(farthest)}`,
  );
}

function usedAnswer(usage: readonly ContainerUsage[]): Html {
  const question = 'Is it used?';
  const gpus = usage.filter(({ busySeconds }) => busySeconds.gpu !== undefined);
  const list = gpus.length > 0 ? gpus : usage.filter(({ busySeconds }) => Object.keys(busySeconds).length > 0);
  if (list.length === 0 && usage.length > 0) return answer(question, '', 'Not known', 'No read tells how busy its devices are.');
  const observed = list.reduce((sum, one) => sum + one.allocatedSeconds - one.unobservedSeconds, 0);
  if (list.length === 0 || observed < 1) return answer(question, '', 'Not known', 'Too few reads yet.');
  const busy = list.reduce((sum, { busySeconds }) => sum + Math.max(0, ...Object.values(busySeconds)), 0);
  const share = Math.min(1, busy / observed);
  const idle = list.reduce((sum, { idleSeconds }) => sum + idleSeconds, 0);
  return answer(
    question,
    share >= 0.3 ? 'ok' : 'mind',
    `${Math.round(share * 100)} % busy`,
    `${hoursText(busy)} of ${hoursText(observed)}; idle for ${hoursText(idle)}`,
  );
}

export const hoursText = (seconds: number): string => durationText(seconds * 1_000);
