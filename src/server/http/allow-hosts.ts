import { isIP } from 'node:net';
import type { RequestHandler } from 'express';
import { sendError } from './answer.ts';

/**
 * Answers only requests that address the agent by an IP address or by one of its names. A web page in a browser can make a name of its own
 * resolve to the agent's address (DNS rebinding) and then read every answer; its requests still carry that name as `Host`.
 */
export function allowHosts(allowed: readonly string[], ownNames: readonly string[]): RequestHandler {
  const names = new Set(['localhost', ...ownNames, ...allowed].map((name) => name.toLowerCase()));
  return (request, response, next) => {
    const { host } = request.headers;
    // Browsers always send the header, and cannot reach a unix socket, which has no remote address.
    const isOutsideBrowsers = host === undefined || request.socket.remoteAddress === undefined;
    if (names.has('*') || isOutsideBrowsers || isAllowed(hostOf(host), names)) return next();
    const remedy = 'Address it by IP address or node name, or add the name to --web.allowed-hosts.';
    return sendError(request, response, 421, 'host-not-allowed', `The agent does not answer to this host name. ${remedy}`);
  };
}

const isAllowed = (name: string, names: ReadonlySet<string>): boolean => isIP(name) !== 0 || names.has(name);

/** Returns the host of a `Host` header in lower case, without the port, without brackets and without the dot at the end. */
function hostOf(header: string): string {
  const text = header.trim().toLowerCase();
  const ipv6 = /^\[([^\]]*)\](?::\d*)?$/.exec(text)?.[1];
  return ipv6 ?? text.replace(/:\d*$/, '').replace(/\.$/, '');
}
