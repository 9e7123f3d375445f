import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type RequestHandler, Router } from 'express';
import { sendError, sendText } from '../http/answer.ts';

/** Files that the pages load, with their types. `npm run build` makes them; nothing is made at run time. */
const TYPES = {
  'live.js': 'text/javascript; charset=utf-8',
  'charts.js': 'text/javascript; charset=utf-8',
  'uplot.css': 'text/css; charset=utf-8',
} as const;
export type AssetName = keyof typeof TYPES;

/** Files of the pages, read once. */
export interface Assets {
  readonly router: Router;
  /** Address of a file; undefined when the build lacks it, so that the page works without. */
  pathOf(name: AssetName): string | undefined;
}

export function createAssets(folder: URL = assetFolder()): Assets {
  const files = new Map<string, { readonly text: string; readonly hash: string }>();
  for (const name of Object.keys(TYPES)) {
    const text = read(new URL(name, folder));
    if (text !== undefined) files.set(name, { text, hash: createHash('sha256').update(text).digest('hex').slice(0, 16) });
  }
  const router = Router();
  const handler: RequestHandler = (request, response) => {
    const name = String(request.params.name);
    const file = files.get(name);
    if (file === undefined) return sendError(request, response, 404, 'not-found', 'There is no such file.');
    // The address changes with the content.
    if (request.query.v === file.hash) response.setHeader('Cache-Control', 'private, max-age=31536000, immutable');
    return sendText(request, response, TYPES[name as AssetName], file.text);
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
