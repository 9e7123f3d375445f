import { type Html, html } from '../../board/html.ts';
import { durationText } from '../../board/units.ts';
import { REMEDY_TEXTS } from '../../board/words.ts';
import type { ConditionSpec } from '../../model/health.ts';
import { document, type PageFrame } from './page-parts.ts';

export interface ConditionFamily {
  readonly name: string;
  readonly conditions?: readonly ConditionSpec[];
}

/** What each condition means and what to do, from the declarations of the families. */
export function conditionsPage(families: readonly ConditionFamily[], frame: PageFrame): string {
  const body = html`<h2>Conditions</h2>
<p class="soft">The declared defaults. The policy of this agent can differ.</p>
${families.map(({ name, conditions = [] }) =>
  conditions.length === 0 ? undefined : html`<h3>${name}</h3>\n${conditions.map((condition) => entry(name, condition))}`,
)}`;
  return document(frame, { title: 'Conditions: device-agent', body, footer: html``, liveness: 'none' });
}

function entry(family: string, { type, class: kind, severity, meaning, remedy, source, forMs = 0, recoveryMs = 0 }: ConditionSpec): Html {
  const times = [
    forMs > 0 ? `It counts after ${durationText(forMs)}.` : undefined,
    recoveryMs > 0 ? `It ends after ${durationText(recoveryMs)} without it.` : undefined,
  ].filter((text) => text !== undefined);
  return html`<article id="${family}.${type}"><h4>${type} <small>${severity}, ${kind}</small></h4><p>${meaning} ${times.join(' ')}</p>${
    REMEDY_TEXTS[remedy] === undefined ? undefined : html`<p><b>${REMEDY_TEXTS[remedy]}</b></p>`
  }<p><small>Source: ${source}</small></p></article>\n`;
}
