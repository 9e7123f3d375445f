import type { RequestHandler } from 'express';
import type { Logger } from '../../log/logger.ts';
import { sendError, sendFault } from '../http/answer.ts';
import type { Passwords } from './passwords.ts';

/** Answers only requests with a user name and the right password, while the access has users. */
export function basicAuth(passwords: Passwords, logger: Logger): RequestHandler {
  return async (request, response, next) => {
    const admit = (user?: string): void => {
      passwords.admit(request.socket, user);
      next();
    };
    if (!passwords.areNeeded) return admit();
    const given = credentials(request.headers.authorization);
    try {
      const verdict = given === undefined ? 'wrong' : await passwords.check(given.user, given.password);
      if (verdict === 'right') return admit(given?.user);
      if (verdict === 'busy') {
        response.setHeader('Retry-After', '1');
        return await sendError(request, response, 503, 'too-many-passwords', 'Too many passwords wait for their check. Try again.');
      }
      response.setHeader('WWW-Authenticate', 'Basic realm="device-agent", charset="UTF-8"');
      const what = given === undefined ? 'A user name and a password are needed.' : 'User name or password is wrong.';
      return await sendError(request, response, 401, 'unauthorized', what);
    } catch (error) {
      return await sendFault(request, response, logger, error);
    }
  };
}

function credentials(header: string | undefined): { readonly user: string; readonly password: string } | undefined {
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(header ?? '')?.[1];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const at = text.indexOf(':');
  return at < 0 ? undefined : { user: text.slice(0, at), password: text.slice(at + 1) };
}
