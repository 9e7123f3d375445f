import type { IncomingMessage } from 'node:http';
import { type Html, html } from '../../board/html.ts';
import { devicePath, podPath } from '../../board/paths.ts';
import { podsOf } from '../../board/row-html.ts';
import { requestPath } from '../http/answer.ts';
import { document, type PageFrame } from './page-parts.ts';

const MOST_SIMILAR = 3;

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
