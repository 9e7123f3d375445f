import type { RequestHandler } from 'express';
import { sendError, sendText, TEXT_TYPE } from './answer.ts';

/** The one path that changes something. */
export const RELOAD_PATH = '/-/reload';

/** Answers `POST /-/reload`. Off by default, because each call parses a file and reads all hardware. */
export function reloadHandler(isEnabled: boolean, reload: (() => Promise<string | undefined>) | undefined): RequestHandler {
  return async (request, response) => {
    // Nothing reads the body of the request.
    response.setHeader('Connection', 'close');
    const refuse = (status: number, code: string, message: string): Promise<void> => sendError(request, response, status, code, message);
    if (request.method !== 'POST') {
      response.setHeader('Allow', 'POST');
      return refuse(405, 'method-not-allowed', `${request.method} is not allowed here; POST is.`);
    }
    if (!isEnabled)
      return refuse(403, 'lifecycle-off', 'Reload by HTTP is off. Start the agent with --web.enable-lifecycle, or send it SIGHUP.');
    // Browsers send this header with each POST. No web page may reload the agent.
    if (request.headers.origin !== undefined)
      return refuse(403, 'browser-not-allowed', 'Web pages cannot reload the agent. Use curl -X POST.');
    if (reload === undefined) return refuse(409, 'no-config-file', 'There is no file to reload. Start the agent with --config.file.');
    const problem = await reload();
    if (problem !== undefined) return refuse(500, 'config-invalid', `The last valid configuration stays in use. ${problem}`);
    return sendText(request, response, TEXT_TYPE, 'ok\n');
  };
}
