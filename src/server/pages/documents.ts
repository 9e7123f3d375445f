import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type Request, type Response, Router } from 'express';
import { type Html, html } from '../../board/html.ts';
import { sendError, sendText, TEXT_TYPE } from '../http/answer.ts';
import { assetFolder } from './assets.ts';

/**
 * Serves the documentation of the build below `/docs`: runbooks, conditions, problems. Alerts name sections of these pages, and a cluster may have no way
 * to others. A browser gets the text with anchors and links, by `showPage`; every other client gets the text alone. Only files that the build has are read,
 * and only when somebody asks for them.
 */
export function createDocuments(
  showPage: (request: Request, response: Response, title: string, body: Html) => Promise<void>,
  folder: URL = new URL('docs/', assetFolder()),
): Router {
  const names = new Set(namesIn(folder));
  const router = Router();
  router.get(DOCUMENTS_PATH, async (request, response) => {
    const name = [request.params.name].flat().join('/');
    if (!names.has(name)) return sendError(request, response, 404, 'not-found', 'There is no such page.');
    const text = await readFile(new URL(name, folder), 'utf8');
    if (request.accepts(['text', 'html']) === 'html') return showPage(request, response, name, documentHtml(text));
    return sendText(request, response, TEXT_TYPE, text);
  });
  return router;
}

export const DOCUMENTS_PATH = '/docs/*name';

/** Paths of the pages below the folder; none when the build lacks it. */
function namesIn(folder: URL): readonly string[] {
  try {
    return readdirSync(fileURLToPath(folder), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'));
  } catch {
    return [];
  }
}

/** The text as it is written, with an anchor at each heading. Links to other pages and sections can be followed. */
export function documentHtml(text: string): Html {
  return html`<pre>${text.split('\n').map((line) => html`${lineHtml(line)}\n`)}</pre>`;
}

function lineHtml(line: string): Html {
  const [, title] = /^#+ (.+)$/.exec(line) ?? [];
  if (title !== undefined) return html`<b id="${anchorOf(title)}">${line}</b>`;
  return html`${line.split(/(\[[^\]]+\]\([^)\s]+\))/).map((part) => {
    const [, words, target] = /^\[([^\]]+)\]\(((?:[\w./-]+\.md)?(?:#[\w-]+)?)\)$/.exec(part) ?? [];
    return target === undefined ? part : html`<a href="${target}">${words}</a>`;
  })}`;
}

/** The anchor that GitHub gives a heading, so that one address of a section is right in both places. */
const anchorOf = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, '')
    .replaceAll(' ', '-');
