import { energyOf } from '../../accounting/report.ts';
import type { Board } from '../../board/board.ts';
import type { Appearance } from '../../board/device-view.ts';
import { type Html, html } from '../../board/html.ts';
import { titleOf } from '../../board/overview-html.ts';
import { age, shape } from '../../board/state-html.ts';
import { worstOf } from '../../board/summary.ts';
import { clockText, readingText } from '../../board/units.ts';
import type { AssetName, IconName } from './assets.ts';

/** Data that all pages share. */
export interface PageFrame {
  readonly version: string;
  /** Name of the node; absent when it is not configured. */
  readonly node: string | undefined;
  readonly telemetryPath: string;
  /** False when the API is off. */
  readonly hasApi: boolean;
  /** Address of Grafana with the boards of the agent; absent or empty when it is not configured. */
  readonly grafanaUrl?: string;
  /** False when there is no stream of changes, so that a page stays as it was loaded. */
  readonly isLive: boolean;
  /** Address of a file of the pages; undefined when the build lacks it. */
  pathOf(name: AssetName): string | undefined;
  /** The latest board: the head of each page has its state. */
  readonly board: Board | undefined;
  readonly nowMs: number;
}

/** How a page stays up to date: `board` changes row by row, `reload` takes the parts of a page that is loaded again. */
export type Liveness = 'board' | 'reload' | 'none';

export interface Document {
  /** What the page is about; the page of all devices has the worst fault of the node instead. */
  readonly title?: string;
  /** Address of the page in the navigation. */
  readonly at?: string;
  readonly body: Html;
  /** Address of the same data as JSON. */
  readonly json?: string | undefined;
  readonly liveness: Liveness;
  /** Seconds after which the page is loaded again. */
  readonly againS?: number;
}

const PAGES = [
  ['/', 'Devices'],
  ['/?group=pod', 'Pods'],
  ['/?group=placement', 'Placement'],
  ['/incidents', 'Incidents'],
  ['/usage', 'Usage'],
  ['/agent', 'Agent'],
] as const;

const ICONS: readonly string[] = ['healthy', 'degraded', 'unhealthy', 'unknown'] satisfies IconName[];
const ICON_OF: Readonly<Record<string, IconName>> = { pending: 'degraded', missing: 'unhealthy', recovering: 'healthy' };

export function document(frame: PageFrame, { title, at, body, json, liveness, againS }: Document): string {
  const { board, node = 'device-agent', nowMs, version, telemetryPath } = frame;
  const kubelet = board === undefined ? undefined : html`<a href="/agent">kubelet ${board.kubelet.state}</a>`;
  return shell(frame, {
    name: title ?? (board === undefined ? node : titleOf(board)),
    brand: node,
    worst: board === undefined ? 'unknown' : worstOf(board),
    pages: PAGES,
    at,
    live: html`<p id="live">${clockText(nowMs, nowMs)}${board && html` · read ${age(Date.parse(board.takenAt), nowMs)} ago`}</p>`,
    liveness: frame.isLive ? liveness : 'none',
    againS,
    skip: liveness === 'board' ? html`\n<a class="skip" href="#rows">Skip to devices</a>` : undefined,
    body,
    footer: html`<span>device-agent ${version}</span>${kubelet}${frame.hasApi && json !== undefined ? html`<a href="${json}">JSON of this page</a>` : undefined}<a href="${telemetryPath}">Metrics</a><a href="/conditions">Conditions</a>`,
  });
}

/** What surrounds each page: of a node, and of a fleet. */
export interface Shell {
  /** Title of the tab. */
  readonly name: string;
  readonly brand: string;
  readonly worst: Appearance;
  readonly pages: readonly (readonly [path: string, text: string])[];
  readonly at?: string | undefined;
  readonly live: Html;
  readonly liveness: Liveness;
  readonly againS?: number | undefined;
  readonly skip?: Html | undefined;
  readonly body: Html;
  readonly footer: Html;
}

export function shell({ pathOf }: Pick<PageFrame, 'pathOf'>, page: Shell): string {
  const { worst, againS } = page;
  const script = pathOf('live.js');
  const icon = pathOf(`icon-${ICON_OF[worst] ?? (worst as IconName)}.svg`);
  const icons = ICONS.map((one) => html` data-${one}="${pathOf(`icon-${one as IconName}.svg`)}"`);
  return `<!doctype html>
${
  html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">${againS === undefined ? undefined : html`\n<meta http-equiv="refresh" content="${againS}">`}
<title>${page.name}</title>
<link rel="icon" type="image/svg+xml" href="${icon}"${icons}>
<link rel="stylesheet" href="${pathOf('style.css')}">${script && html`\n<script type="module" src="${script}"></script>`}
</head>
<body data-live="${page.liveness}">
<a class="skip" href="#main">Skip to content</a>${page.skip}
<header class="bar-top">
<a class="brand" href="/"><span id="worst">${shape(worst)}</span>${page.brand}</a>
<nav aria-label="Pages">${page.pages.map(([path, text]) => html`<a href="${path}"${path === page.at ? html` aria-current="page"` : undefined}>${text}</a>`)}</nav>
${page.live}
</header>
<main id="main" tabindex="-1">
${page.body}
</main>
<p id="announcement" class="hidden" role="status"></p>
<footer>${page.footer}</footer>
</body>
</html>
`.text
}`;
}

/** A part of a page that the script replaces when it changed. */
export function part(name: string, content: Html | undefined): Html {
  return html`<div data-part="${name}">${content}</div>\n`;
}

/** A card with a title; nothing when it has no content. */
export function card(title: string, content: Html | undefined, note?: Html | string): Html | undefined {
  if (content === undefined) return undefined;
  return html`<section class="card" aria-label="${title}"><div class="head"><h2>${title}</h2>${note === undefined ? undefined : html`<span class="soft">${note}</span>`}</div>${content}</section>\n`;
}

/** Title of a page about one thing. */
export function titleHtml(
  crumb: readonly [path: string, text: string],
  name: Html | string,
  rest: Html | undefined,
  meta: readonly Fact[] = [],
): Html {
  const known = meta.filter(([, value]) => value !== undefined && value !== '');
  return html`<div class="title"><p class="crumb"><a href="${crumb[0]}">${crumb[1]}</a></p><h1>${name}${rest && html` <span class="rest">${rest}</span>`}</h1>${
    known.length === 0 ? undefined : html`<p class="meta">${known.map(([label, value]) => html`<span>${label} <b>${value}</b></span>`)}</p>`
  }</div>\n`;
}

type Fact = readonly [name: string, value: Html | string | number | undefined];

/** Names and values. Absent and empty values are left out. */
export function facts(rows: readonly Fact[]): Html {
  const known = rows.filter(([, value]) => value !== undefined && value !== '');
  return html`<dl class="facts">${known.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>\n`)}</dl>`;
}

/** A table whose rows become blocks on a phone. `heads`: an empty one has no text. A head that begins with `#` is of a column of numbers. */
export function table(heads: readonly string[], rows: readonly Html[]): Html {
  return html`<div class="scroll"><table class="text fold"><thead><tr>${heads.map((head) =>
    head.startsWith('#') ? html`<th scope="col" class="num">${head.slice(1)}</th>` : html`<th scope="col">${head}</th>`,
  )}</tr></thead><tbody>\n${rows.map((row) => html`<tr>${row}</tr>\n`)}</tbody></table></div>`;
}

/** A number in a table. A phone has no room for the head of the table, so that each number names itself there. */
export function numberCell(label: string, value: string | number | undefined): Html {
  return html`<td class="num" data-label="${label}">${value ?? 'unknown'}</td>`;
}

/** Energy that is only estimated, or in part, begins with `~`. */
export function energyCell(use: Parameters<typeof energyOf>[0]): Html {
  const energy = energyOf(use);
  return numberCell('Energy', energy && `${energy.isEstimate ? '~' : ''}${readingText('_joules', energy.joules)}`);
}
