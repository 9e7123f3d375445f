import { compare, hashSync } from 'bcryptjs';
import { describe, expect, it } from 'vitest';
import { type ComparePassword, Passwords } from '../../../src/server/access/passwords.ts';

const ALICE = hashSync('sesame', 4);

/** Comparisons by bcryptjs in this thread, counted. */
function counted() {
  const compared: string[] = [];
  const comparePassword: ComparePassword = (password, hash) => {
    compared.push(hash);
    return compare(password, hash);
  };
  return { compared, comparePassword };
}

/** Comparisons that wait until they are let go. */
function held() {
  const releases: (() => void)[] = [];
  const comparePassword: ComparePassword = async (password, hash) => {
    await new Promise<void>((resolve) => releases.push(resolve));
    return compare(password, hash);
  };
  return { releases, comparePassword };
}

describe('passwords', () => {
  it.each([
    ['alice', 'sesame', 'right'],
    ['alice', 'sesam', 'wrong'],
    ['alice', '', 'wrong'],
    ['Alice', 'sesame', 'wrong'],
    ['nobody', 'sesame', 'wrong'],
    ['__proto__', 'sesame', 'wrong'],
  ])('of %s with "%s": %s', async (user, password, verdict) => {
    const passwords = new Passwords(compare, new Map([['alice', ALICE]]));
    expect(await passwords.check(user, password)).toBe(verdict);
  });

  it('compares a right password once, and a wrong one each time', async () => {
    const { compared, comparePassword } = counted();
    const passwords = new Passwords(comparePassword, new Map([['alice', ALICE]]));
    for (let times = 0; times < 3; times += 1) expect(await passwords.check('alice', 'sesame')).toBe('right');
    expect(compared.length).toBe(1);
    for (let times = 0; times < 3; times += 1) expect(await passwords.check('alice', 'open')).toBe('wrong');
    expect(compared.length).toBe(4);
    expect(await passwords.check('alice', 'sesame')).toBe('right');
    expect(compared.length).toBe(4);
  });

  it('compares the password of an unknown user with a hash of the same cost, and finds it wrong every time', async () => {
    const { compared, comparePassword } = counted();
    const passwords = new Passwords(comparePassword, new Map([['alice', ALICE.replace('$04$', '$05$')]]));
    expect(await passwords.check('nobody', 'sesame')).toBe('wrong');
    expect(await passwords.check('nobody', 'sesame')).toBe('wrong');
    expect(compared.length).toBe(2);
    expect(compared[0]).toMatch(/^\$2b\$05\$.{53}$/);
  });

  it('knows a password no more when its hash or its user is gone', async () => {
    const passwords = new Passwords(compare, new Map([['alice', ALICE]]));
    expect(await passwords.check('alice', 'sesame')).toBe('right');
    passwords.use(new Map([['alice', hashSync('changed', 4)]]));
    expect(await passwords.check('alice', 'sesame')).toBe('wrong');
    expect(await passwords.check('alice', 'changed')).toBe('right');
    passwords.use(new Map([['bob', ALICE]]));
    expect(await passwords.check('alice', 'changed')).toBe('wrong');
    expect(await passwords.check('bob', 'sesame')).toBe('right');
  });

  it('does not take a password whose hash goes while it is compared', async () => {
    const { releases, comparePassword } = held();
    const passwords = new Passwords(comparePassword, new Map([['alice', ALICE]]));
    const verdict = passwords.check('alice', 'sesame');
    await expect.poll(() => releases.length).toBe(1);
    passwords.use(new Map());
    releases[0]?.();
    expect(await verdict).toBe('wrong');
  });

  it('answers a known password while the queue is full, and refuses others', async () => {
    const { releases, comparePassword } = held();
    const passwords = new Passwords(comparePassword, new Map([['alice', ALICE]]));
    const first = passwords.check('alice', 'sesame');
    await expect.poll(() => releases.length).toBe(1);
    releases[0]?.();
    expect(await first).toBe('right');
    const waiting = Array.from({ length: 16 }, (_, n) => passwords.check('alice', `wrong ${n}`));
    await expect.poll(() => releases.length).toBe(2);
    expect(await passwords.check('alice', 'wrong 16')).toBe('busy');
    expect(await passwords.check('bob', 'x')).toBe('busy');
    expect(await passwords.check('alice', 'sesame')).toBe('right');
    const same = passwords.check('alice', 'wrong 3');
    for (let n = 1; n <= 16; n += 1) {
      await expect.poll(() => releases.length).toBe(n + 1);
      releases[n]?.();
    }
    expect(new Set(await Promise.all([...waiting, same]))).toEqual(new Set(['wrong']));
    expect(releases.length).toBe(17);
  });

  it('goes on after a comparison that failed', async () => {
    let isBroken = true;
    const passwords = new Passwords(
      (password, hash) => (isBroken ? Promise.reject(new Error('broken')) : compare(password, hash)),
      new Map([['alice', ALICE]]),
    );
    await expect(passwords.check('alice', 'sesame')).rejects.toThrow('broken');
    isBroken = false;
    expect(await passwords.check('alice', 'sesame')).toBe('right');
  });
});
