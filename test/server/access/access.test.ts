import { readFileSync } from 'node:fs';
import { type RequestOptions, request } from 'node:https';
import { connect as tlsConnect } from 'node:tls';
import { compare, hashSync } from 'bcryptjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Access, type ClientAuthType, OPEN_ACCESS } from '../../../src/server/access/access.ts';
import { namesIn } from '../../../src/server/http/tls-server.ts';
import { Certificates } from '../../support/certificates.ts';
import { isInstalled } from '../../support/installed.ts';
import { unless } from '../../support/skipped.ts';
import { ask, connectTo, start } from '../asking.ts';
import { feedOf, gpu } from '../feed/support.ts';

/** An access that the test changes. */
function changing(first: Partial<Access>) {
  const subscribers: ((access: Access) => void)[] = [];
  const access = {
    current: { ...OPEN_ACCESS, ...first },
    subscribe: (apply: (access: Access) => void) => void subscribers.push(apply),
    change(next: Partial<Access>) {
      access.current = { ...OPEN_ACCESS, ...next };
      for (const apply of subscribers) apply(access.current);
    },
  };
  return access;
}

const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });
const users = new Map([['alice', hashSync('sesame:ö', 4)]]);
const startWith = (access: ReturnType<typeof changing>, options = {}) => start({ parts: { access, comparePassword: compare }, options });

describe('a server with passwords', () => {
  it.each(['/metrics', '/', '/-/ready/devices', '/devices/toy/toy-0', '/api/v1/devices', '/nothing'])(
    'asks for one at %s',
    async (path) => {
      const { url } = await startWith(changing({ users }));
      const { status, headers } = await ask(url + path);
      expect(status).toBe(401);
      expect(headers['www-authenticate']).toBe('Basic realm="device-agent", charset="UTF-8"');
      expect((await ask(url + path, basic('alice:wrong'))).status).toBe(401);
      expect((await ask(url + path, basic('alice:sesame:ö'))).status).not.toBe(401);
    },
  );

  it.each(['/healthz', '/readyz', '/-/healthy', '/-/ready'])('answers the kubelet without one at %s', async (path) => {
    const { url } = await startWith(changing({ users }));
    expect((await ask(url + path)).status).toBe(200);
  });

  it.each(['Basic', 'Basic !', 'Bearer YWxpY2U6eA==', 'Basic YWxpY2U=', ''])('takes "%s" for no password', async (authorization) => {
    const { url } = await startWith(changing({ users }));
    const { status, body } = await ask(`${url}/metrics`, { authorization });
    expect(status).toBe(401);
    expect(body.toString()).toBe('A user name and a password are needed.\n');
  });

  it.each(['', 'alice:wrong'])(
    'tells a browser in a page that has nothing of the node, and others in a line of text (%s)',
    async (given) => {
      const { url } = await startWith(changing({ users }));
      const said = given === '' ? 'A user name and a password are needed.' : 'User name or password is wrong.';
      const credentials = given === '' ? {} : basic(given);
      const page = await ask(`${url}/`, { accept: 'text/html,*/*;q=0.8', 'accept-encoding': 'gzip', ...credentials });
      expect(page.status).toBe(401);
      expect(page.headers).toMatchObject({ 'www-authenticate': 'Basic realm="device-agent", charset="UTF-8"' });
      expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-/);
      expect(page.body.toString()).toContain(`<h1>${said}</h1>`);
      expect(page.body.toString()).not.toMatch(/node-1|toy|\/assets\//);
      const text = await ask(`${url}/`, { accept: '*/*', ...credentials });
      expect([text.status, text.body.toString()]).toEqual([401, `${said}\n`]);
      expect((await ask(`${url}/api/v1/devices`, { accept: 'text/html', ...credentials })).headers['content-type']).toMatch('json');
    },
  );

  it('takes new users at once', async () => {
    const access = changing({});
    const { url } = await startWith(access);
    expect((await ask(`${url}/metrics`)).status).toBe(200);
    access.change({ users });
    expect((await ask(`${url}/metrics`)).status).toBe(401);
    access.change({ users: new Map([['bob', hashSync('b', 4)]]) });
    expect((await ask(`${url}/metrics`, basic('alice:sesame:ö'))).status).toBe(401);
    expect((await ask(`${url}/metrics`, basic('bob:b'))).status).toBe(200);
  });

  it('closes the streams of a user whose password changes, and not those of another', async () => {
    const hash = hashSync('b', 4);
    const access = changing({ users: new Map([...users, ['bob', hash]]) });
    const { feed } = feedOf([gpu()]);
    const { url } = await start({ parts: { access, feed, comparePassword: compare } });
    const by = (text: string) =>
      connectTo(url, `GET /api/health/watch HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${basic(text).authorization}\r\n\r\n`);
    const [alice, bob] = [by('alice:sesame:ö'), by('bob:b')];
    await Promise.all([alice.answered(), bob.answered()]);
    access.change({ users: new Map([['bob', hash]]) });
    alice.socket.resume();
    await alice.closed;
    expect(bob.socket.destroyed).toBe(false);
  });

  it('adds the headers of the file to each answer', async () => {
    const headers = { 'X-Frame-Options': 'deny', 'Strict-Transport-Security': 'max-age=60' };
    const { url } = await startWith(changing({ users, headers }));
    for (const path of ['/metrics', '/healthz']) {
      expect((await ask(url + path)).headers).toMatchObject({ 'x-frame-options': 'deny', 'strict-transport-security': 'max-age=60' });
    }
  });
});

describe('parts that are off', () => {
  it('answers 404 and says why', async () => {
    const { url } = await start({ options: { page: false, api: false } });
    for (const [path, words] of [
      ['/', '--web.page'],
      ['/devices/toy/toy-0', '--web.page'],
      ['/api/v1/devices', '--web.api'],
    ]) {
      const { status, body } = await ask(`${url}${path}`);
      expect(status).toBe(404);
      expect(body.toString()).toContain(words);
    }
    expect((await ask(`${url}/metrics`)).status).toBe(200);
  });
});

const hasOpenssl = isInstalled('openssl', 'version');

describe.skipIf(!hasOpenssl)(`a server with TLS${unless(hasOpenssl, 'openssl is not installed')}`, () => {
  let certificates: Certificates;
  const read = (name: string): string => readFileSync(certificates.path(name), 'utf8');
  beforeAll(() => {
    certificates = new Certificates();
    certificates.authority('stranger');
    certificates.issue('server');
    certificates.issue('prometheus');
    certificates.issue('expired', { isExpired: true });
    certificates.issue('strange', { ca: 'stranger' });
  });
  afterAll(() => certificates?.remove());

  const withTls = (clientAuth: ClientAuthType, allowedSans?: readonly string[]): Partial<Access> => ({
    tls: {
      clientAuth,
      context: { cert: read('server.crt'), key: read('server.key'), ca: read('ca.crt') },
      ...(allowedSans === undefined ? {} : { allowedSans }),
    },
  });

  /** The status, and the serial number of the server's certificate; undefined when there is no answer. */
  const get = (url: string, client?: string, more: RequestOptions = {}) =>
    new Promise<{ status: number | undefined; serial: string } | undefined>((resolve) => {
      const own = client === undefined ? {} : { cert: read(`${client}.crt`), key: read(`${client}.key`) };
      const asked = request(`${url}/metrics`, { ca: read('ca.crt'), agent: false, ...own, ...more }, (response) => {
        const { serialNumber } = (response.socket as import('node:tls').TLSSocket).getPeerCertificate();
        response.resume().on('end', () => resolve({ status: response.statusCode, serial: serialNumber }));
      });
      asked.on('error', () => resolve(undefined));
      asked.end();
    });

  it.each<[ClientAuthType, readonly string[]]>([
    ['NoClientCert', ['none', 'prometheus', 'expired', 'strange']],
    ['RequestClientCert', ['none', 'prometheus', 'expired', 'strange']],
    ['RequireAnyClientCert', ['prometheus', 'expired', 'strange']],
    ['VerifyClientCertIfGiven', ['none', 'prometheus']],
    ['RequireAndVerifyClientCert', ['prometheus']],
  ])('admits with %s: %j', async (clientAuth, expected) => {
    const { url } = await startWith(changing(withTls(clientAuth)));
    const admitted: string[] = [];
    for (const client of ['none', 'prometheus', 'expired', 'strange']) {
      const answer = await get(url, client === 'none' ? undefined : client);
      if (answer !== undefined) admitted.push(client);
    }
    expect(admitted).toEqual(expected);
  });

  it('admits only the names that are allowed', async () => {
    for (const [names, isAnswered] of [
      [['other', 'prometheus'], true],
      [['127.0.0.1'], true],
      [['other'], false],
      [[], false],
    ] as const) {
      const { url } = await startWith(changing(withTls('RequireAndVerifyClientCert', names)));
      expect((await get(url, 'prometheus')) !== undefined, names.join()).toBe(isAnswered);
    }
  });

  it.each([
    'dirName:directory',
    'otherName:1.3.6.1.4.1.311.20.2.3;UTF8:DNS:good.example',
    'otherName:1.3.6.1.5.5.7.8.5;UTF8:DNS:good.example',
    'otherName:1.2.3.4.5;UTF8:DNS:good.example',
    'RID:1.2.3.4',
    'URI:DNS:good.example',
    'email:DNS:good.example@b.example',
  ])('does not take a part of another name for an allowed one: %s', async (san) => {
    certificates.issue('other', { san: `${san}\n[directory]\nCN=DNS:good.example` });
    const { url } = await startWith(changing(withTls('RequireAndVerifyClientCert', ['good.example'])));
    expect(await get(url, 'other')).toBeUndefined();
    certificates.issue('good', { san: 'DNS:good.example' });
    expect((await get(url, 'good'))?.status).toBe(200);
  });

  describe('when the rules change, of open connections', () => {
    /** A client that follows the board, and reads one more answer when it is told. */
    const following = async (url: string, client: string, path = '/api/health/watch') => {
      const socket = tlsConnect({
        ...{ port: Number(new URL(url).port), host: '127.0.0.1', ca: read('ca.crt') },
        ...{ cert: read(`${client}.crt`), key: read(`${client}.key`) },
      });
      let isClosed = false;
      socket
        .on('error', () => undefined)
        .on('close', () => {
          isClosed = true;
        });
      socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      await new Promise((resolve) => socket.once('data', resolve));
      return { socket, isClosed: () => isClosed };
    };
    const served = async (access: ReturnType<typeof changing>) => {
      const { feed } = feedOf([gpu()]);
      return start({ parts: { access, feed, comparePassword: compare } });
    };

    it('closes that whose name is no longer allowed, also in the middle of an answer, and keeps the others', async () => {
      certificates.issue('a', { san: 'DNS:a' });
      certificates.issue('b', { san: 'DNS:b' });
      const access = changing(withTls('RequireAndVerifyClientCert', ['a', 'b']));
      const { url } = await served(access);
      const [a, b] = [await following(url, 'a'), await following(url, 'b')];
      access.change(withTls('RequireAndVerifyClientCert', ['b']));
      await expect.poll(() => a.isClosed()).toBe(true);
      expect(b.isClosed()).toBe(false);
      b.socket.destroy();
    });

    it('closes all when the authority changes, also one in the middle of its handshake', async () => {
      const access = changing(withTls('RequireAndVerifyClientCert'));
      const { url } = await served(access);
      const open = await following(url, 'prometheus');
      const half = connectTo(url, '');
      half.socket.resume();
      await expect.poll(() => half.socket.readyState).toBe('open');
      await get(url, 'prometheus');
      const { tls } = withTls('RequireAndVerifyClientCert');
      access.change(tls === undefined ? {} : { tls: { ...tls, context: { ...tls.context, ca: read('stranger.crt') } } });
      await half.closed;
      await expect.poll(() => open.isClosed()).toBe(true);
      expect((await get(url, 'strange'))?.status).toBe(200);
    });

    it('keeps those that pass when only the certificate of the server changes', async () => {
      const access = changing(withTls('RequireAndVerifyClientCert'));
      const { url } = await served(access);
      const open = await following(url, 'prometheus');
      certificates.issue('server');
      access.change(withTls('RequireAndVerifyClientCert'));
      await get(url, 'prometheus');
      expect(open.isClosed()).toBe(false);
      open.socket.destroy();
    });

    it('protects a TLS connection with a running answer from new ones', async () => {
      const access = changing(withTls('NoClientCert'));
      const { feed } = feedOf([gpu()]);
      const { url } = await start({ parts: { access, feed }, limits: { connections: 2 } });
      const busy = await following(url, 'prometheus');
      const idle = await following(url, 'prometheus', '/healthz');
      expect((await get(url))?.status).toBe(200);
      await expect.poll(() => idle.isClosed()).toBe(true);
      expect(busy.isClosed()).toBe(false);
      busy.socket.destroy();
    });
  });

  it('does not answer plain HTTP', async () => {
    const { url } = await startWith(changing(withTls('NoClientCert')));
    await expect(ask(`${url.replace('https:', 'http:')}/healthz`)).rejects.toThrow();
  });

  it('takes a new certificate and new rules for the next connections', async () => {
    const access = changing(withTls('NoClientCert'));
    const { url } = await startWith(access);
    const before = await get(url);
    certificates.issue('server');
    access.change(withTls('NoClientCert'));
    const after = await get(url);
    expect(after?.status).toBe(200);
    expect(after?.serial).not.toBe(before?.serial);
    access.change(withTls('RequireAndVerifyClientCert'));
    expect(await get(url)).toBeUndefined();
    expect((await get(url, 'prometheus'))?.status).toBe(200);
    access.change(withTls('NoClientCert'));
    expect((await get(url))?.status).toBe(200);
  });

  it('speaks only the versions that it is told', async () => {
    const { tls } = withTls('NoClientCert');
    const { url } = await startWith(
      changing(tls === undefined ? {} : { tls: { ...tls, context: { ...tls.context, minVersion: 'TLSv1.3' } } }),
    );
    expect(await get(url, undefined, { maxVersion: 'TLSv1.2' })).toBeUndefined();
    expect((await get(url))?.status).toBe(200);
  });
});

describe('names in a certificate', () => {
  it.each([
    ['DNS:a.example, IP Address:10.0.0.1', ['a.example', '10.0.0.1']],
    ['IP Address:FD00:0:0:0:0:0:0:1', ['fd00::1']],
    ['URI:spiffe://cluster/ns/x, email:a@b.example', ['spiffe://cluster/ns/x', 'a@b.example']],
    ['DNS:"evil, DNS:good.example"', ['evil, DNS:good.example']],
    ['', []],
    ['DirName:CN=DNS:good.example', []],
    ['DirName:"O=DNS:good.example\\u002cCN=x", DNS:real.example', ['real.example']],
    ['othername:UPN:DNS:good.example, othername:<unsupported>, Registered ID:1.2.3.4', []],
    ['URI:DNS:good.example', ['DNS:good.example']],
    ['DNS:"a\\u0000, DNS:good.example"', ['a\0, DNS:good.example']],
    ['DNS:"a\\u000a"', ['a\n']],
    ['DNS:good.example, DNS:"open', []],
    ['DNS:good.example"', []],
  ])('of %s', (text, names) => {
    expect(namesIn(text)).toEqual(names);
  });
});
