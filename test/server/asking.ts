import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { afterEach } from 'vitest';
import { type Started, type StartOptions, start as startServer } from './start.ts';

const running: Started[] = [];
/** A server that is closed after the test. */
export const start = async (options?: StartOptions): Promise<Started> => {
  const started = await startServer(options);
  running.push(started);
  return started;
};
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ server }) => server.close()));
});

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** As the bytes come: nothing is decompressed, no header is added. */
export function ask(url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }));
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end();
  });
}
