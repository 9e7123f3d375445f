import type { Request, RequestHandler, Response } from 'express';
import { parseDuration } from '../../model/duration.ts';
import type { ReleaseAnswer, ReleaseRequest } from '../../model/release.ts';
import { sendError, sendText, TEXT_TYPE } from './answer.ts';

/** The paths that change something. */
export const RELOAD_PATH = '/-/reload';
export const RELEASE_PATH = '/-/release';

/**
 * Lets only requests through that may change something. Off by default: each such call reads all hardware, and a release makes devices
 * unknown.
 */
function changes(
  isEnabled: boolean,
  what: string,
  instead: string,
  change: (request: Request, response: Response) => Promise<void>,
): RequestHandler {
  return async (request, response) => {
    // Nothing reads the body of the request.
    response.setHeader('Connection', 'close');
    if (request.method !== 'POST') {
      response.setHeader('Allow', 'POST');
      return sendError(request, response, 405, 'method-not-allowed', `${request.method} is not allowed here; POST is.`);
    }
    if (!isEnabled)
      return sendError(
        request,
        response,
        403,
        'lifecycle-off',
        `${what} by HTTP is off. Start the agent with --web.enable-lifecycle, or ${instead}.`,
      );
    // Browsers send this header with each POST. No web page may change the agent.
    if (request.headers.origin !== undefined)
      return sendError(request, response, 403, 'browser-not-allowed', `${what} is not for web pages. Use curl -X POST.`);
    return change(request, response);
  };
}

/** Answers `POST /-/reload`. */
export const reloadHandler = (isEnabled: boolean, reload: (() => Promise<string | undefined>) | undefined): RequestHandler =>
  changes(isEnabled, 'Reload', 'send it SIGHUP', async (request, response) => {
    if (reload === undefined)
      return sendError(request, response, 409, 'no-config-file', 'There is no file to reload. Start the agent with --config.file.');
    const problem = await reload();
    if (problem !== undefined)
      return sendError(request, response, 500, 'config-invalid', `The last valid configuration stays in use. ${problem}`);
    return sendText(request, response, TEXT_TYPE, 'ok\n');
  });

/** Answers `POST /-/release?family=FAMILY&for=10m`; `for=0s` ends a release. */
export const releaseHandler = (
  isEnabled: boolean,
  release: ((request: ReleaseRequest) => Promise<ReleaseAnswer>) | undefined,
): RequestHandler =>
  changes(isEnabled, 'Release', 'run "device-agent release" on the node', async (request, response) => {
    const { family, for: time } = request.query;
    const forMs = typeof time === 'string' ? parseDuration(time) : undefined;
    if (typeof family !== 'string' || forMs === undefined || release === undefined)
      return sendError(request, response, 400, 'bad-request', 'Name the family and the time: ?family=FAMILY&for=10m.');
    const answer = await release({ family, forMs, by: `a request from ${request.socket.remoteAddress ?? 'this machine'}` });
    if (answer.refused !== undefined) return sendError(request, response, 409, 'release-refused', `${answer.refused}.`);
    const calls = answer.hanging === 0 ? '' : ` ${answer.hanging} calls hang in the driver and keep it open.`;
    const state = answer.untilMs === undefined ? 'open' : `closed until ${new Date(answer.untilMs).toISOString()}`;
    return sendText(request, response, TEXT_TYPE, `${state}.${calls}\n`, answer.hanging === 0 ? 200 : 503);
  });
