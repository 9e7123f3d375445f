import { expect, it } from 'vitest';
import { UserError } from '../../../src/errors.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { createLogger } from '../../../src/log/logger.ts';
import { type AccessReading, OPEN_ACCESS } from '../../../src/server/access/access.ts';
import { AccessControl } from '../../../src/server/access/access-control.ts';

const right = (fingerprint: string): AccessReading => ({ fingerprint, access: { ...OPEN_ACCESS, users: new Map([['u', fingerprint]]) } });
const wrong = (fingerprint: string): AccessReading => ({
  fingerprint,
  problem: new UserError('web-config-unreadable', { file: 'web.yml', problem: fingerprint }),
});
const withTls = (fingerprint: string): AccessReading => ({
  fingerprint,
  access: { ...OPEN_ACCESS, tls: { clientAuth: 'NoClientCert', context: {} } },
});

/** A keeper of files whose readings come one after the other; the last one stays. */
async function open(...readings: AccessReading[]) {
  const log: string[] = [];
  const logger = createLogger({ level: 'info', format: 'json' }, { write: (line) => log.push(JSON.parse(line).message) });
  const state = { readings };
  const read = async () => (state.readings.length > 1 ? state.readings.shift() : state.readings[0]) as AccessReading;
  const keeper = await AccessControl.open({ file: 'web.yml', read }, logger, systemClock);
  const reload = async (...next: AccessReading[]) => {
    state.readings = next;
    await keeper.reload();
    return { users: keeper.current.users.get('u'), isSuccessful: keeper.stats().isSuccessful };
  };
  return { keeper, reload, log };
}

it('fails at start with what is wrong', async () => {
  await expect(open(wrong('a'))).rejects.toThrow('web configuration file web.yml cannot be read: a');
});

it('keeps the earlier access while the files are wrong, and tells each change once', async () => {
  const { keeper, reload, log } = await open(right('1'));
  const applied: unknown[] = [];
  keeper.subscribe(({ users }) => applied.push(users.get('u')));
  expect(await reload(right('1'))).toEqual({ users: '1', isSuccessful: true });
  expect(log).toEqual([]);
  expect(await reload(wrong('2'))).toEqual({ users: '1', isSuccessful: false });
  expect(await reload(wrong('2'))).toEqual({ users: '1', isSuccessful: false });
  expect(log).toEqual(['web configuration not reloaded; the earlier one stays in use']);
  expect(await reload(right('1'))).toEqual({ users: '1', isSuccessful: true });
  expect(await reload(right('3'))).toEqual({ users: '3', isSuccessful: true });
  expect(log.slice(1)).toEqual(['web configuration reloaded', 'web configuration reloaded']);
  expect(applied).toEqual(['1', '3']);
});

it('takes no reading from the middle of an exchange of files', async () => {
  const { reload, log } = await open(right('1'));
  expect(await reload(wrong('new certificate, old key'), right('2'))).toEqual({ users: '2', isSuccessful: true });
  expect(log).toEqual(['web configuration reloaded']);
});

it('does not switch TLS on or off', async () => {
  const { keeper, reload, log } = await open(right('1'));
  expect(await reload(withTls('2'))).toEqual({ users: '1', isSuccessful: false });
  expect(keeper.current.tls).toBeUndefined();
  expect(log).toEqual(['web configuration not reloaded; the earlier one stays in use']);
});
