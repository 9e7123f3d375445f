import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Router } from 'express';
import { sendError, sendText, TEXT_TYPE } from '../http/answer.ts';
import { assetFolder } from './assets.ts';

/**
 * Serves the documentation of the build below `/docs`, as text: runbooks, conditions, problems. Alerts name these pages, and a cluster may have no way to
 * others. Only files that the build has are read, and only when somebody asks for them.
 */
export function createDocuments(folder: URL = new URL('docs/', assetFolder())): Router {
  const names = new Set(namesIn(folder));
  const router = Router();
  router.get(DOCUMENTS_PATH, async (request, response) => {
    const name = [request.params.name].flat().join('/');
    if (!names.has(name)) return sendError(request, response, 404, 'not-found', 'There is no such page.');
    return sendText(request, response, TEXT_TYPE, await readFile(new URL(name, folder), 'utf8'));
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
