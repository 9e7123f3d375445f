import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';

/** Compares a password with a bcrypt hash. Rejects when the comparison could not be made. */
export type ComparePassword = (password: string, hash: string) => Promise<boolean>;

/** `busy`: too many other passwords wait for their comparison. */
export type PasswordVerdict = 'right' | 'wrong' | 'busy';

/** Comparisons that wait or run. One takes about 80 ms at cost 10, so the last one waits little more than a second. */
const MOST_WAITING = 16;
/** Salt and digest of a hash that belongs to no password. */
const NO_PASSWORD = 'device.agent.no.person...............................';
const USUAL_COST = '10';

/** Hashes by user name. */
type Users = ReadonlyMap<string, string>;

/**
 * Checks user names and passwords. One bcrypt comparison runs at a time, and few wait. A password that was right is known again by a keyed
 * digest, so that a scraper is answered at once, however many wrong passwords arrive meanwhile.
 */
export class Passwords {
  readonly #compare: ComparePassword;
  readonly #key = randomBytes(32);
  /** For each user the digest of the password that was right. */
  readonly #known = new Map<string, Buffer>();
  /** Running and waiting comparisons by digest. Equal requests share one. */
  readonly #waiting = new Map<string, Promise<boolean>>();
  /** For each connection the users that read by it, with their hashes. The user is undefined when no password was needed. */
  readonly #readers = new Map<Socket, Map<string | undefined, string | undefined>>();
  #last: Promise<unknown> = Promise.resolve();
  #users: Users = new Map();
  #unknownHash = '';

  constructor(compare: ComparePassword, users: Users) {
    this.#compare = compare;
    this.use(users);
  }

  get areNeeded(): boolean {
    return this.#users.size > 0;
  }

  /**
   * Replaces the users. A digest contains the hash of its user, so a changed password ends what was known. Some answers never end, such as streams.
   * So the connections of a user are closed when the password of the user changed.
   */
  use(users: Users): void {
    this.#users = users;
    for (const user of this.#known.keys()) if (!users.has(user)) this.#known.delete(user);
    // An unknown user must take as long as a known one. Costs differ rarely; then the highest one counts.
    const [cost = USUAL_COST] = [...users.values()]
      .map((hash) => hash.slice(4, 6))
      .sort()
      .reverse();
    this.#unknownHash = `$2b$${cost}$${NO_PASSWORD}`;
    if (!this.areNeeded) return;
    for (const [socket, readers] of this.#readers)
      if ([...readers].some(([user, hash]) => user === undefined || this.#users.get(user) !== hash)) socket.destroy();
  }

  /** Remembers who reads by the connection. `user` is undefined when no password is needed. */
  admit(socket: Socket, user: string | undefined): void {
    if (socket.destroyed) return;
    const readers = this.#readers.get(socket) ?? new Map<string | undefined, string | undefined>();
    readers.set(user, user === undefined ? undefined : this.#users.get(user));
    if (this.#readers.has(socket)) return;
    this.#readers.set(socket, readers);
    socket.once('close', () => this.#readers.delete(socket));
  }

  async check(user: string, password: string): Promise<PasswordVerdict> {
    const hash = this.#users.get(user);
    const digest = this.#digest(user, hash ?? this.#unknownHash, password);
    const known = this.#known.get(user);
    if (known !== undefined && timingSafeEqual(known, digest)) return 'right';
    const id = digest.toString('hex');
    const comparison = this.#waiting.get(id) ?? this.#start(id, password, hash ?? this.#unknownHash);
    if (comparison === undefined) return 'busy';
    const isRight = await comparison;
    // The users can have changed during the comparison.
    if (!isRight || hash === undefined || this.#users.get(user) !== hash) return 'wrong';
    this.#known.set(user, digest);
    return 'right';
  }

  #start(id: string, password: string, hash: string): Promise<boolean> | undefined {
    if (this.#waiting.size >= MOST_WAITING) return undefined;
    const comparison = this.#last.then(() => this.#compare(password, hash)).finally(() => this.#waiting.delete(id));
    this.#waiting.set(id, comparison);
    this.#last = comparison.catch(() => undefined);
    return comparison;
  }

  #digest(user: string, hash: string, password: string): Buffer {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([user, hash, password]))
      .digest();
  }
}
