import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type RequestHandler, Router } from 'express';
import { sendError, sendText } from '../http/answer.ts';
import { PAGE_STYLE } from './page-style.ts';

/** Files that `npm run build` makes, with their types. */
const TYPES = { 'live.js': 'text/javascript; charset=utf-8' } as const;
/** Icons of the tab by the shape of the worst state, so that many tabs are told apart without colour. */
const SHAPES = {
  healthy: '<circle cx="8" cy="8" r="6" fill="#18794b"/>',
  degraded: '<path d="M8 1.5 15 14.5H1z" fill="#d99a25" stroke="#855000"/>',
  unhealthy: '<rect x="1.5" y="1.5" width="13" height="13" fill="#c9302a"/>',
  unknown: '<path d="M8 2 14 8 8 14 2 8z" fill="none" stroke="#7a8594" stroke-width="2.5"/>',
} as const;
export type IconName = keyof typeof SHAPES;
export type AssetName = keyof typeof TYPES | 'style.css' | `icon-${IconName}.svg`;

/** Files of the pages, read once. */
export interface Assets {
  readonly router: Router;
  /** Address of a file; undefined when the build lacks it, so that the page works without. */
  pathOf(name: AssetName): string | undefined;
}

export function createAssets(folder: URL = assetFolder()): Assets {
  const files = new Map<string, { readonly text: string; readonly type: string; readonly hash: string }>();
  const add = (name: string, text: string, type: string): void => {
    files.set(name, { text, type, hash: createHash('sha256').update(text).digest('hex').slice(0, 16) });
  };
  for (const [name, type] of Object.entries(TYPES)) {
    const text = read(new URL(name, folder));
    if (text !== undefined) add(name, text, type);
  }
  add('style.css', PAGE_STYLE, 'text/css; charset=utf-8');
  for (const [name, shape] of Object.entries(SHAPES))
    add(`icon-${name}.svg`, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">${shape}</svg>\n`, 'image/svg+xml');
  const router = Router();
  const handler: RequestHandler = (request, response) => {
    const name = String(request.params.name);
    const file = files.get(name);
    if (file === undefined) return sendError(request, response, 404, 'not-found', 'There is no such file.');
    // The address changes with the content.
    if (request.query.v === file.hash) response.setHeader('Cache-Control', 'private, max-age=31536000, immutable');
    return sendText(request, response, file.type, file.text);
  };
  router.get('/assets/:name', handler);
  return {
    router,
    pathOf: (name) => {
      const file = files.get(name);
      return file && `/assets/${name}?v=${file.hash}`;
    },
  };
}

/** Sources, the build and the bundle have the folder at different places. */
export function assetFolder(): URL {
  const { url } = import.meta;
  if (url.endsWith('.ts')) return new URL('../../../dist/web/', url);
  return new URL(/\/server\/pages\/assets\.js$/.test(url) ? '../../web/' : './web/', url);
}

function read(file: URL): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
