import type { ServerResponse } from 'node:http';

/** Files, answers and icons of this server, and nothing else: no style and no script is in the page. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** The headers of every page. */
export function protect(response: ServerResponse): void {
  response.setHeader('Content-Security-Policy', POLICY);
  response.setHeader('X-Frame-Options', 'DENY');
  response.setHeader('Referrer-Policy', 'no-referrer');
}
