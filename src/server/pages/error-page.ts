import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type Html, html } from '../../board/html.ts';
import { devicePath, podPath } from '../../board/paths.ts';
import { podsOf } from '../../board/row-html.ts';
import { type ErrorPage, HTML_TYPE, requestPath } from '../http/answer.ts';
import { document, type PageFrame } from './page-parts.ts';

const MOST_SIMILAR = 3;
const STYLE = `:root { color-scheme: light dark; --back: #f5f6f8; --card: #fff; --line: #dde1e8; --edge: #8b95a4; --ink: #131820; --soft: #56606f; }
@media (prefers-color-scheme: dark) { :root { --back: #0c1016; --card: #141a22; --line: #28313d; --edge: #667384; --ink: #e7ecf3; --soft: #9aa6b5; } }
body { margin: 0; background: var(--back); color: var(--soft); font: .8125rem/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
header { padding: .75rem 1rem; background: var(--card); border-bottom: 1px solid var(--line); }
a { color: var(--ink); font-size: .9375rem; font-weight: 650; text-decoration: none; }
section { margin: .5rem 1rem; padding: .6rem 1rem; background: var(--card); border-left: 5px solid var(--edge); }
h1, p { margin: 0 0 .3rem; } h1 { color: var(--ink); font-size: 1.5rem; font-weight: 650; line-height: 1.2; }`;
const REFUSAL_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/**
 * An error for somebody who was not let in, or not yet. It has nothing of the node and loads nothing, because each file needs the same password. It is
 * not compressed and made of few pieces: a flood of wrong passwords must cost no more than one line of text does.
 */
export const showRefusal: ErrorPage = (_request, response, status, code, message) => {
  response.statusCode = status;
  response.setHeader('Content-Type', HTML_TYPE);
  response.setHeader('Content-Security-Policy', REFUSAL_POLICY);
  const [title = '', rest = ''] = message.split(/(?<=\.)\s(.*)/s);
  response.end(
    `<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,"><style>${STYLE}</style>${
      html`<title>${title}</title></head>
<body><header><a href="/">device-agent</a></header><main><section><h1>${title}</h1><p>${rest}</p><small>${status} ${code}</small></section></main></body></html>\n`
        .text
    }`,
  );
  return Promise.resolve();
};

/** An error in the frame of all pages: what is wrong in the words of the request, similar names, and the way back. */
export function errorPage(
  request: IncomingMessage,
  { status, code, message }: { readonly status: number; readonly code: string; readonly message: string },
  frame: PageFrame,
): string {
  const [, kind = '', ...names] = (requestPath(request) ?? '').split('/').map(decoded);
  const on = frame.node === undefined ? 'on this node' : `on ${frame.node}`;
  const isDevice = code === 'device-unknown';
  const isPod = code === 'pod-unknown';
  const name = isPod ? names.join('/') : (names.at(-1) ?? kind);
  const title = isDevice ? `No device ${name} ${on}` : isPod ? `No pod ${name} ${on}` : message.split(/(?<=\.)\s/)[0];
  const links = isDevice ? devicesLike(name, frame) : isPod ? podsLike(name, frame) : [];
  const body = html`<section class="say unknown"><h1>${title}</h1><p>${message}</p>${
    links.length === 0 ? undefined : html`<ul class="also">${links.map((link) => html`<li>${link}</li>`)}</ul>`
  }<p><a href="/">All devices</a></p><p><small>${status} ${code}</small></p></section>`;
  return document(frame, { title: title ?? message, body, liveness: 'none', ...(status === 503 ? { againS: 2 } : {}) });
}

/** Names that begin as the asked one does, for half of it at least; the longest beginning first. */
function nearest(name: string, known: readonly string[]): readonly string[] {
  const common = (one: string): number => {
    const at = [...one].findIndex((letter, place) => letter.toLowerCase() !== name[place]?.toLowerCase());
    return at < 0 ? one.length : at;
  };
  return known.filter((one) => common(one) * 2 >= name.length).toSorted((a, b) => common(b) - common(a));
}

/** A path that cannot be decoded is shown as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function devicesLike(name: string, { board }: PageFrame): readonly Html[] {
  const devices = new Map((board?.devices ?? []).flatMap((one) => [[one.name, one] as const, [one.id, one] as const]));
  const found = nearest(name, [...devices.keys()]).flatMap((one) => devices.get(one) ?? []);
  return [...new Set(found)].slice(0, MOST_SIMILAR).map((one) => html`<a href="${devicePath(one)}">${one.name}</a>`);
}

function podsLike(name: string, { board }: PageFrame): readonly Html[] {
  const pods = new Map(podsOf((board?.devices ?? []).flatMap(({ holders }) => holders)).map((one) => [`${one.namespace}/${one.pod}`, one]));
  return nearest(name, [...pods.keys()])
    .slice(0, MOST_SIMILAR)
    .flatMap((one) => {
      const pod = pods.get(one);
      return pod === undefined ? [] : [html`<a href="${podPath(pod)}">${one}</a>`];
    });
}
