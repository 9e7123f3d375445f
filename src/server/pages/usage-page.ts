import type { UsageQuery } from '../../accounting/query.ts';
import { enginesOf, HOUR_SECONDS, type LedgerReport, type UsageRow } from '../../accounting/report.ts';
import { moneyText, timeParts, unobservedTexts, wasteSentence } from '../../accounting/waste.ts';
import { type Html, html } from '../../board/html.ts';
import { podPath } from '../../board/paths.ts';
import { durationText } from '../../model/duration.ts';
import { card, document, energyCell, numberCell, type PageFrame, table, titleHtml } from './page-parts.ts';

const MOST_ROWS = 200;
const MOST_ENGINES = 2;
const MOST_EXACT_S = 10 * HOUR_SECONDS;
const GROUPS = { pod: 'Pod', namespace: 'Namespace', device: 'Device', resource: 'Resource' } as const;
const SPANS = { '1h': 'last hour', '24h': 'last day', '7d': 'last week', '30d': 'last 30 days' } as const;

/**
 * Who used how much of the devices, most device hours first. It is the report of `device-agent usage` at the time of the request.
 * A link to all families has an empty `family`, because an address without `family` begins with the accelerators.
 */
export function usagePage(report: LedgerReport, query: UsageQuery, since: string, frame: PageFrame): string {
  const { rows, total, ledger, currency } = report;
  const { by, family = '' } = query;
  const families = [
    ...new Set([...(frame.board?.devices.map(({ family }) => family) ?? []), ...(family === '' ? [] : [family])]),
  ].toSorted();
  const path = (changed: Readonly<Record<string, string>>): string => `/usage?${new URLSearchParams({ by, since, family, ...changed })}`;
  const shown = rows.toSorted((a, b) => b.shareSeconds - a.shareSeconds || (a.name < b.name ? -1 : 1));
  const hasCost = total.cost !== undefined;
  const heads = [
    '#Device time',
    'Busy, idle, not observed',
    '#Idle',
    '#Busy',
    '#Not observed',
    '#Energy',
    ...(hasCost ? ['#Cost', '#Idle cost'] : []),
  ];
  const list = table(
    [GROUPS[by as keyof typeof GROUPS] ?? by, ...heads],
    [
      ...shown.slice(0, MOST_ROWS).map((row) => line(row, nameHtml(row.name, by, frame), hasCost, currency)),
      line(total, html`<b>All</b>`, hasCost, currency),
    ],
  );
  const waste = wasteSentence(report, ({ name }) => (by === 'device' ? deviceName(name, frame) : name));
  const because = unobservedTexts(total);
  const left = report.leftOut + Math.max(0, shown.length - MOST_ROWS);
  const damaged = ledger.error !== undefined || (ledger.damagedLines ?? 0) > 0 || (ledger.newerFiles ?? 0) > 0;
  const of = family === '' ? '' : ` of the family ${family}`;
  const body = html`${titleHtml(['/', 'Devices'], 'Usage', html`${family === '' ? 'all devices' : family}, ${SPANS[since as keyof typeof SPANS] ?? `last ${since}`}`)}
<section class="card"><div class="filter groups">${choice('By', GROUPS, by, (value) => path({ by: value }))}${choice(
    'Of',
    { '': 'All devices', ...Object.fromEntries(families.map((one) => [one, one])) },
    family,
    (value) => path({ family: value }),
  )}${choice('Time', SPANS, since, (value) => path({ since: value }))}</div></section>
${waste === undefined ? undefined : html`<p class="waste"><b>${waste}</b>${because.length > 0 ? html` <span class="soft">Not observed: ${because.join('; ')}.</span>` : undefined}</p>`}
${card('Who used most', shown.length === 0 ? html`<p class="body">No container held a device${of} in this time.</p>` : list, 'two devices for one hour are two hours; the time of a shared device is divided')}
${hasCost ? html`<p class="soft">Cost: device time times the price of an hour in <code>usage.prices</code>, in the unit of these prices. A device without a price has no cost.</p>` : undefined}
${left > 0 ? html`<p class="soft">${left} more are left out. <code>device-agent usage</code> prints them.</p>` : undefined}${
  damaged ? html`<p class="soft">A part of the ledger could not be read, so that amounts can be too small.</p>` : undefined
}`;
  return document(frame, {
    title: 'Usage',
    at: '/usage',
    body,
    json: `/api/usage?${new URLSearchParams({ by, since, ...(family !== '' && { family }) })}`,
    liveness: 'none',
  });
}

function line(row: UsageRow, name: Html | string, hasCost: boolean, currency = ''): Html {
  const { shareSeconds, idleRatio, unobservedSeconds, cost, idleCost } = row;
  const money = (amount: number | undefined): string | undefined => (amount === undefined ? undefined : moneyText(amount, currency));
  const because = unobservedTexts(row).join('; ');
  const busy = enginesOf(row)
    .slice(0, MOST_ENGINES)
    .map(([engine, seconds]) => `${engine} ${hours(seconds)}`);
  return html`<th scope="row">${name}</th>${numberCell('Device time', hours(shareSeconds))}${partsCell(row)}${numberCell('Idle', idleRatio === undefined ? undefined : `${Math.round(idleRatio * 100)} %`)}${numberCell('Busy', busy.length === 0 ? undefined : busy.join(', '))}<td class="num" data-label="Not observed"${because === '' ? undefined : html` title="${because}"`}>${hours(unobservedSeconds)}</td>${energyCell(row)}${hasCost ? html`${numberCell('Cost', money(cost))}${numberCell('Idle cost', idleRatio === undefined ? undefined : money(idleCost))}` : undefined}`;
}

/** Color never speaks alone: the label has the shares, and the cells beside it the times. */
function partsCell(row: UsageRow): Html {
  const parts = timeParts(row);
  if (parts === undefined) return html`<td class="parts">unknown</td>`;
  const { busy, idle, unobserved } = parts;
  const text = `${percent(busy)} busy, ${percent(idle)} idle, ${percent(unobserved)} not observed`;
  return html`<td class="parts"><svg role="img" aria-label="${text}"><title>${text}</title><rect class="p-busy" width="${percentOf(busy)}" height="100%"/><rect class="p-idle" x="${percentOf(busy)}" width="${percentOf(idle)}" height="100%"/><rect class="p-unknown" x="${percentOf(busy + idle)}" width="${percentOf(unobserved)}" height="100%"/></svg></td>`;
}

const percent = (part: number): string => `${Math.round(part * 100)} %`;
const percentOf = (part: number): string => `${(part * 100).toFixed(1)}%`;

/** Short amounts are exact, so that their order is seen. */
const hours = (seconds: number): string =>
  seconds < MOST_EXACT_S ? durationText(Math.round(seconds) * 1_000) : `${(seconds / HOUR_SECONDS).toFixed(1)} h`;

const deviceName = (key: string, { board }: Pick<PageFrame, 'board'>): string => board?.devices.find((one) => one.key === key)?.name ?? key;

function nameHtml(name: string, by: string, { board }: PageFrame): Html | string {
  if (by === 'device') return deviceName(name, { board });
  const [namespace = '', pod] = name.split('/');
  if (by !== 'pod' || pod === undefined) return name === '' ? html`<span class="soft">without</span>` : name;
  // A pod that ended has no page any more.
  const isHere = board?.devices.some(({ holders }) => holders.some((one) => one.namespace === namespace && one.pod === pod)) === true;
  return html`<span class="soft ns">${namespace}/</span>${isHere ? html`<a href="${podPath({ namespace, pod })}">${pod}</a>` : pod}`;
}

function choice(label: string, texts: Readonly<Record<string, string>>, chosen: string, hrefOf: (value: string) => string): Html {
  return html`<p class="chips"><span class="soft">${label}</span> ${Object.entries(texts).map(([value, text]) =>
    value === chosen
      ? html`<a href="${hrefOf(value)}" aria-current="true"><b>${text}</b></a> `
      : html`<a href="${hrefOf(value)}">${text}</a> `,
  )}</p>`;
}
