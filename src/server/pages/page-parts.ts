import { type Html, html } from '../../board/html.ts';
import type { AssetName } from './assets.ts';
import { PAGE_STYLE } from './page-style.ts';

/** Data that all pages share. */
export interface PageFrame {
  readonly version: string;
  /** Name of the node; absent when it is not configured. */
  readonly node: string | undefined;
  readonly telemetryPath: string;
  /** False when the API is off. */
  readonly hasApi: boolean;
  /** False when there is no stream of changes, so that a page stays as it was loaded. */
  readonly isLive: boolean;
  /** Address of a file of the pages; undefined when the build lacks it. */
  pathOf(name: AssetName): string | undefined;
  readonly nowMs: number;
}

/** How a page stays up to date: `board` changes row by row, `reload` takes the parts of a page that is loaded again. */
export type Liveness = 'board' | 'reload' | 'none';

export interface Document {
  readonly title: string;
  readonly body: Html;
  readonly footer: Html;
  readonly liveness: Liveness;
  readonly hasCharts?: boolean;
}

const PAGES = [
  ['/', 'Devices'],
  ['/?group=pod', 'Pods'],
  ['/?group=topology', 'Topology'],
  ['/incidents', 'Incidents'],
  ['/agent', 'Agent'],
] as const;

export function document(frame: PageFrame, { title, body, footer, liveness, hasCharts = false }: Document): string {
  const isLive = frame.isLive && liveness !== 'none';
  const script = isLive ? frame.pathOf('live.js') : undefined;
  const charts = isLive && hasCharts ? frame.pathOf('charts.js') : undefined;
  const page = html`<title>${title}</title>${charts && html`\n<link rel="stylesheet" href="${frame.pathOf('uplot.css')}">`}${script && html`\n<script type="module" src="${script}"></script>`}${charts && html`\n<script type="module" src="${charts}"></script>`}
</head>
<body data-live="${isLive ? liveness : 'none'}">
<header>
<h1><a href="/">device-agent</a></h1> <span class="soft">${[frame.node, frame.version].filter((text) => text !== undefined).join(' · ')}</span>
<nav aria-label="Pages">${PAGES.map(([path, name]) => html`<a href="${path}">${name}</a>`)}</nav>
</header>
<main>
${isLive ? html`<p id="live" class="soft">This page shows one moment. Reload for the latest.</p>` : undefined}<div id="announcement" class="hidden" role="status" aria-live="polite"></div>
${body}
</main>
<footer>${footer}<p>${frame.hasApi ? JSON_LINKS : undefined}<a href="${frame.telemetryPath}">Metrics as text</a> <a href="/conditions">Conditions</a></p></footer>
</body>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>${PAGE_STYLE}</style>
${page.text}
</html>
`;
}

const JSON_LINKS = html`As JSON: <a href="/api/v1/devices">devices</a> <a href="/api/v1/allocations">allocations</a> <a href="/api/v1/status">status</a>. `;

/** A part of a page that the script replaces when it changed. */
export function part(name: string, content: Html | undefined): Html {
  return html`<section data-part="${name}">${content}</section>\n`;
}

/** Rows of a table of facts. Absent and empty values are left out. */
export function factTable(rows: readonly (readonly [name: string, value: Html | string | number | undefined])[]): Html {
  const known = rows.filter(([, value]) => value !== undefined && value !== '');
  return html`<div class="scroll"><table class="facts"><tbody>
${known.map(([name, value]) => html`<tr><th scope="row">${name}</th><td>${value}</td></tr>\n`)}</tbody></table></div>`;
}

/** A number in a table. A phone has no room for the head of the table, so that each number names itself there. */
export function numberCell(label: string, value: string | number | undefined): Html {
  return html`<td class="number" data-label="${label}">${value ?? 'unknown'}</td>`;
}
