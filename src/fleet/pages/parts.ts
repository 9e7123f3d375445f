import type { Appearance } from '../../board/device-view.ts';
import { type Html, html } from '../../board/html.ts';
import { podPath } from '../../board/paths.ts';
import { age, clock, mark } from '../../board/state-html.ts';
import { clockText, timeText } from '../../board/units.ts';
import { STATE_NAMES } from '../../board/words.ts';
import type { Severity } from '../../model/health.ts';
import { type PageFrame, shell } from '../../server/pages/page-parts.ts';
import type { Fleet, FleetNode, FleetProblem, NodeFault, NodeState } from '../fleet.ts';

/** Older data does not say how the fleet is. */
const OLD_MS = 120_000;
const PAGES = [
  ['/', 'Nodes'],
  ['/#faults', 'Faults'],
  ['/#capacity', 'Capacity'],
  ['/#namespaces', 'Namespaces'],
] as const;

/** Data that all pages of a fleet share. */
export interface FleetFrame extends Pick<PageFrame, 'pathOf' | 'version' | 'nowMs'> {
  readonly fleet: Fleet | undefined;
}

/** A node that nothing is known of looks unknown, never well. */
export const appearanceOf = (state: NodeState): Appearance => (state === 'silent' || state === 'old' ? 'unknown' : state);

const NAMES: Readonly<Partial<Record<NodeState, string>>> = { silent: 'Does not answer', old: 'No new data', unknown: 'Not known' };
export const stateName = (state: NodeState): string => NAMES[state] ?? STATE_NAMES[appearanceOf(state)];
export const stateMark = (state: NodeState): Html => mark(appearanceOf(state), stateName(state));

const OF_SEVERITY: Readonly<Record<Severity, Appearance>> = { fatal: 'unhealthy', degraded: 'degraded', info: 'healthy' };
export const severityMark = (severity: Severity): Html => mark(OF_SEVERITY[severity], severity);

export const isOld = ({ fleet, nowMs }: Pick<FleetFrame, 'fleet' | 'nowMs'>): boolean =>
  fleet === undefined || !(nowMs - Date.parse(fleet.at) <= OLD_MS);

/** The worst state of the nodes. What was not read in full is not known to be well. */
export function worstOf(frame: FleetFrame): Appearance {
  const [worst] = frame.fleet?.nodes ?? [];
  if (frame.fleet === undefined || worst === undefined) return 'unknown';
  const state = appearanceOf(worst.state);
  return state === 'healthy' && (frame.fleet.problems.length > 0 || isOld(frame)) ? 'unknown' : state;
}

export function fleetDocument(frame: FleetFrame, page: { readonly title: string; readonly at?: string; readonly body: Html }): string {
  const { fleet, nowMs, version } = frame;
  const old = isOld(frame) ? html` data-state="lost"` : undefined;
  const read = fleet === undefined ? ' · no data yet' : html` · data of ${clock(fleet.at, nowMs)}, ${age(Date.parse(fleet.at), nowMs)} old`;
  return shell(frame, {
    name: page.title,
    brand: 'Fleet',
    worst: worstOf(frame),
    pages: PAGES,
    at: page.at,
    live: html`<p id="live"${old}>${clockText(nowMs, nowMs)}${read}</p>`,
    // There is no stream of changes.
    liveness: 'none',
    body: page.body,
    footer: html`<span>device-agent ${version}</span>${fleet && html`<span>Prometheus at ${timeText(Date.parse(fleet.at))}</span>`}`,
  });
}

/** What was not read stands first: all below is without it. */
export function problemsHtml(problems: readonly FleetProblem[], frame: FleetFrame): Html | undefined {
  const { fleet, nowMs } = frame;
  const old =
    fleet !== undefined && isOld(frame)
      ? [{ question: 'time of the data', message: html`${age(Date.parse(fleet.at), nowMs)} old: the fleet can be in another state now.` }]
      : [];
  const all = [...old, ...problems];
  if (all.length === 0) return undefined;
  return html`<section class="card" aria-label="Problems"><div class="head"><h2>Not everything was read</h2><span class="soft">what lacks here is not known, and not well</span></div>
<div class="scroll"><table class="text fold"><thead><tr><th scope="col">Question</th><th scope="col">What Prometheus answered</th></tr></thead><tbody>
${all.map((one) => html`<tr class="warn"><th scope="row">${one.question}</th><td>${one.message}</td></tr>\n`)}</tbody></table></div></section>\n`;
}

export function nodePath({ name, cluster }: Pick<FleetNode, 'name' | 'cluster'>): string {
  const path = `/nodes/${encodeURIComponent(name)}`;
  return cluster === undefined ? path : `${path}?cluster=${encodeURIComponent(cluster)}`;
}
export const nodeLink = (node: Pick<FleetNode, 'name' | 'cluster'>): Html =>
  html`<a href="${nodePath(node)}">${node.name}</a>${node.cluster === undefined ? undefined : html` <small>${node.cluster}</small>`}`;

export const namespacePath = (namespace: string): string => `/namespaces/${encodeURIComponent(namespace)}`;

/** `namespace/pod` with links to both. */
export function podLink(name: string): Html {
  const at = name.indexOf('/');
  if (at < 0) return html`${name}`;
  const [namespace, pod] = [name.slice(0, at), name.slice(at + 1)];
  return html`<a class="soft" href="${namespacePath(namespace)}">${namespace}</a><span class="soft">/</span><a href="${podPath({ namespace, pod })}">${pod}</a>`;
}

/** The first of a list, and how many more. */
export function firstOf(list: readonly Html[], most: number): Html {
  const more = list.length - most;
  return html`${list.slice(0, most).map((one, at) => html`${at === 0 ? undefined : ', '}${one}`)}${more > 0 ? ` and ${more} more` : undefined}`;
}

const MOST_HIT = 3;
export const hitHtml = (hit: readonly string[]): Html | undefined => (hit.length === 0 ? undefined : firstOf(hit.map(podLink), MOST_HIT));

/** `eth0 PortDown (State1) · since 16:55:00, 12 min`. */
export const faultHtml = ({ name, condition, reason, since }: NodeFault, nowMs: number): Html =>
  html`${name} <b>${condition}</b> <span class="soft">${reason}</span>${
    since === undefined ? undefined : html` <span class="soft">· since ${clock(since, nowMs)}, ${age(Date.parse(since), nowMs)}</span>`
  }`;

export const percentText = (ratio: number | undefined): string | undefined =>
  ratio === undefined ? undefined : `${Math.round(ratio * 100)} %`;
export const devicesOf = ({ devices }: Pick<FleetNode, 'devices'>): number => Object.values(devices).reduce((sum, count) => sum + count, 0);
