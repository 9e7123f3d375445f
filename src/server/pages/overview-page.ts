import { html } from '../../board/html.ts';
import { filterHtml, problemsHtml, shownText, type TrendsByKey, tableHtml, tilesHtml, unresolvedHtml } from '../../board/overview-html.ts';
import type { Board } from '../../board/row.ts';
import { age } from '../../board/state-html.ts';
import { type BoardView, viewOf } from '../../board/view.ts';
import { document, type PageFrame } from './page-parts.ts';

/** Renders the devices of a view on one page, or a notice before the first snapshot. It is complete without a script. */
export function overviewPage(board: Board | undefined, view: BoardView, trendOf: TrendsByKey, frame: PageFrame): string {
  if (board === undefined) {
    const body = html`<p>The agent reads the hardware for the first time. Reload in a moment.</p>`;
    return document(frame, { title: 'device-agent', body, footer: html``, liveness: 'none' });
  }
  const sections = viewOf(board, view);
  const body = html`<div id="tiles">${tilesHtml(board)}</div>
<div id="problems">${problemsHtml(board)}</div>
<h2>Devices</h2>
${filterHtml(board, view)}
<p id="shown" class="soft">${shownText(board.rows, sections)}</p>
<div class="scroll" id="table">${tableHtml(sections, view, trendOf, frame.nowMs)}</div>
<div id="unresolved">${unresolvedHtml(board)}</div>
`;
  const { sequence, takenAtMs } = board;
  const footer = html`<p>Snapshot <span id="sequence">${sequence}</span>, taken ${age(takenAtMs, frame.nowMs)} ago.</p>`;
  return document(frame, { title: `${frame.node ?? 'device-agent'}: devices`, body, footer, liveness: 'board' });
}
