import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type Request, type Response, Router } from 'express';
import { Html, html } from '../../board/html.ts';
import { defined } from '../../model/defined.ts';
import { sendError, sendText, TEXT_TYPE } from '../http/answer.ts';
import { assetFolder } from './assets.ts';

/**
 * Serves the documentation of the build below `/docs`: runbooks, conditions, problems. Alerts name sections of these pages, and a cluster may have no way
 * to others. A browser gets a page with the names of the link in its commands, by `showPage`; every other client gets the text alone. Only files that the build has are read,
 * and only when somebody asks for them.
 */
export function createDocuments(
  showPage: (request: Request, response: Response, shown: ShownDocument) => Promise<void>,
  folder: URL = new URL('docs/', assetFolder()),
): Router {
  const names = new Set(namesIn(folder));
  const router = Router();
  router.get(DOCUMENTS_PATH, async (request, response) => {
    const name = [request.params.name].flat().join('/');
    if (!names.has(name)) return sendError(request, response, 404, 'not-found', 'There is no such page.');
    if (request.accepts(['text', 'html']) !== 'html')
      return sendText(request, response, TEXT_TYPE, await readFile(new URL(name, folder), 'utf8'));
    const page = await readFile(new URL(name.replace(/\.md$/, '.html'), folder), 'utf8');
    const [, title = name] = /<h1[^>]*>([^<]*)<\/h1>/.exec(page) ?? [];
    const given = namesOf(request.query);
    return showPage(request, response, {
      title: new Html(title),
      body: filledDocument(page.replace(/<h1[^>]*>.*?<\/h1>/, ''), given),
      device: given.device,
    });
  });
  return router;
}

interface ShownDocument {
  readonly title: Html;
  readonly body: Html;
  /** Device that the link names. */
  readonly device: string | undefined;
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

/** Names in the commands of a page, from the query of the link. */
export const DOCUMENT_PARAMETERS = ['node', 'device', 'pod'] as const;
type Names = Partial<Record<(typeof DOCUMENT_PARAMETERS)[number], string>>;

/** The characters of names: none of them means anything to a shell, to PromQL or to HTML, and none begins an option. */
const NAME = /^[A-Za-z0-9][\w.:/@+-]{0,252}$/;

const namesOf = (query: Request['query']): Names =>
  Object.fromEntries(
    DOCUMENT_PARAMETERS.flatMap((name) => (typeof query[name] === 'string' && NAME.test(query[name]) ? [[name, query[name]]] : [])),
  );

/** The agent of a node, for a command that is copied alone. */
const podOf = (node: string): string =>
  `$(kubectl -n device-agent get pods -l app.kubernetes.io/name=device-agent --field-selector spec.nodeName=${node} -o name)`;

/** The page as the build made it, with the names of the link; links to other pages pass them on. */
export function filledDocument(page: string, names: Names): Html {
  const { node, device, pod = node === undefined ? undefined : podOf(node) } = names;
  const known: Names = defined({ node, device, pod });
  const query = new URLSearchParams(names).toString();
  const text = page.replace(/<var data-fill="(\w+)">([^<]*)<\/var>/g, (_, name: keyof Names, example: string) =>
    known[name] === undefined ? example : html`<var>${known[name]}</var>`.text,
  );
  return new Html(query === '' ? text : text.replace(/(?<=<a href="[^"#]+\.md)(?=[#"])/g, html`?${query}`.text));
}
