import { afterEach, describe, expect, it } from 'vitest';
import { type Started, type StartOptions, start } from './start.ts';

let started: Started | undefined;
afterEach(() => started?.server.close());

async function post(settings: StartOptions, init: RequestInit = {}): Promise<{ status: number; text: string; allow: string | null }> {
  started = await start(settings);
  const answer = await fetch(`${started.url}/-/reload`, { method: 'POST', ...init });
  return { status: answer.status, text: await answer.text(), allow: answer.headers.get('allow') };
}

const on = { options: { 'enable-lifecycle': true } } as const;

describe('POST /-/reload', () => {
  it('is off unless the operator turns it on, and says how', async () => {
    let reloads = 0;
    const reload = async (): Promise<undefined> => {
      reloads += 1;
    };
    const { status, text } = await post({ parts: { reload } });
    expect([status, text, reloads]).toEqual([403, expect.stringContaining('--web.enable-lifecycle'), 0]);
  });

  it('answers when the new configuration is in use', async () => {
    let reloads = 0;
    const reload = async (): Promise<undefined> => {
      reloads += 1;
    };
    expect(await post({ ...on, parts: { reload } }, { body: 'x'.repeat(100_000) })).toMatchObject({ status: 200, text: 'ok\n' });
    expect(reloads).toBe(1);
  });

  it('says what is wrong with the file', async () => {
    const { status, text } = await post({ ...on, parts: { reload: async () => 'line 3 is wrong. Correct it.' } });
    expect([status, text]).toEqual([500, 'The last valid configuration stays in use. line 3 is wrong. Correct it.\n']);
  });

  it('says that there is no file', async () => {
    expect(await post(on)).toMatchObject({ status: 409, text: expect.stringContaining('--config.file') });
  });

  it('is not for web pages or other methods', async () => {
    const settings = { ...on, parts: { reload: async () => undefined } };
    expect(await post(settings, { headers: { Origin: 'http://evil.example' } })).toMatchObject({ status: 403 });
    await started?.server.close();
    expect(await post(settings, { method: 'GET' })).toMatchObject({ status: 405, allow: 'POST' });
    await started?.server.close();
    expect(await post(settings, { method: 'DELETE' })).toMatchObject({ status: 405 });
  });

  it('leaves all other paths for reading only', async () => {
    started = await start(on);
    expect((await fetch(`${started.url}/-/reload/`, { method: 'POST' })).status).toBe(405);
    expect((await fetch(`${started.url}/metrics`, { method: 'POST' })).status).toBe(405);
  });
});
