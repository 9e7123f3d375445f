/**
 * Node's own server and client of HTTP. A static import of `node:http` evaluates the getters of the module, which on Node 24 load undici:
 * 2 MiB and 18 ms of a start.
 */
export const { createServer, get, request, validateHeaderValue } = process.getBuiltinModule('node:http');
