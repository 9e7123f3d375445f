import { type Html, html } from '../../board/html.ts';
import { REMEDY_TEXTS } from '../../board/words.ts';
import { durationText } from '../../model/duration.ts';
import type { ConditionSpec } from '../../model/health.ts';
import { card, document, type PageFrame, titleHtml } from './page-parts.ts';

/** Conditions by family; those that several families have in the same words come last, once. */
export function conditionsPage(
  families: readonly { readonly name: string; readonly conditions?: readonly ConditionSpec[] }[],
  frame: PageFrame,
): string {
  const entries = new Map<string, { readonly text: Html; readonly names: string[]; readonly type: string }>();
  for (const { name, conditions = [] } of families)
    for (const condition of conditions) {
      const text = entry(condition);
      const known = entries.get(text.text);
      if (known === undefined) entries.set(text.text, { text, names: [name], type: condition.type });
      else known.names.push(name);
    }
  const all = [...entries.values()];
  const list = (title: string, wanted: typeof all): Html | undefined =>
    wanted.length === 0
      ? undefined
      : card(
          title,
          html`${wanted.map(
            ({ text, names, type }) =>
              html`<article>${names.map((name) => html`<span id="${name}.${type}"></span>`)}${text}${names.length === 1 ? undefined : html`<p><small>${names.join(', ')}</small></p>`}</article>\n`,
          )}`,
        );
  const own = families.map(({ name }) =>
    list(
      name,
      all.filter(({ names }) => names.length === 1 && names[0] === name),
    ),
  );
  const shared = list(
    'Several families',
    all.filter(({ names }) => names.length > 1),
  );
  const body = html`${titleHtml(['/', 'Devices'], 'Conditions', html`the declared defaults; the policy of this agent can differ`)}
${own}${shared}`;
  return document(frame, { title: 'Conditions', body, liveness: 'none' });
}

function entry({ type, class: kind, severity, meaning, remedy, source, forMs = 0, recoveryMs = 0 }: ConditionSpec): Html {
  const times = [
    forMs > 0 ? `It counts after ${durationText(forMs)}.` : undefined,
    recoveryMs > 0 ? `It ends after ${durationText(recoveryMs)} without it.` : undefined,
  ].filter((text) => text !== undefined);
  return html`<h3>${type} <small>${severity}, ${kind}</small></h3><p>${meaning} ${times.join(' ')}</p>${
    REMEDY_TEXTS[remedy] === undefined ? undefined : html`<p><b>${REMEDY_TEXTS[remedy]}</b></p>`
  }<p><small>Source: ${source}</small></p>`;
}
