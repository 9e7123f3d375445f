import type { Device } from '../../src/model/device.ts';
import { escaped } from '../support/forged-records.ts';
import type { Choose } from '../support/seeded.ts';
import { FIRST_RECORD, LOG } from './kernel-log.ts';
import type { Life } from './lives.ts';
import { type LoggedRecord, LogKnowledge } from './log-knowledge.ts';
import type { DriverLine, LogSubject, Printer } from './log-subjects.ts';
import { INTERVAL_MS, OracleNode } from './node.ts';

const FLOOD = 600;
const WHAT = ['begins', 'ends', 'counts'] as const;

/** A log that cannot be read. */
const CLOSED = [{ kind: 'directory' }, { kind: 'absent' }] as const;

/** A node with one family and a log in which drivers print and processes forge. */
export class LogLife implements Life {
  readonly #node: OracleNode;
  readonly #subject: LogSubject;
  readonly #known: readonly LogKnowledge[];
  readonly #choose: Choose;
  readonly story: string[] = [];
  #log: LoggedRecord[] = [];
  /** The log as text, record by record. */
  #texts: string[] = [];
  #seq = 0;
  #isClosed = false;

  constructor(subject: LogSubject, choose: Choose) {
    this.#subject = subject;
    this.#choose = choose;
    this.#node = new OracleNode(subject.oracle, false);
    this.#known = subject.printers.map((_, device) => new LogKnowledge(device));
  }

  async begin(): Promise<void> {
    this.#boot();
    await this.#down();
    await this.#node.start();
  }

  async end(): Promise<void> {
    await this.#node.stop();
  }

  /** One action and some collections. Returns contradictions. */
  async live(): Promise<readonly string[]> {
    const kind = this.#choose(100);
    if (kind < 60) this.#print();
    else if (kind < 68) this.#lose();
    else if (kind < 76) this.#toggleLog();
    else if (kind < 86) await this.#restart(kind < 80, kind >= 84);
    else if (kind < 90) {
      this.story.push('the probe fails');
      this.#node.threads.weather.isToCrash = true;
    } else if (kind < 94) this.#flood();
    else {
      const hours = (this.#choose(2) === 0 ? 1 : -1) * this.#choose(48);
      this.story.push(`the clock is set by ${hours} h`);
      this.#node.clock.setWall(hours * 3_600_000);
    }
    this.#show();
    return await this.#tick(this.#choose(4) === 0 ? 6 : this.#choose(3));
  }

  async #tick(times: number): Promise<readonly string[]> {
    const { weather } = this.#node.threads;
    for (let time = 0; time < times; time += 1) {
      const isFailed = weather.isToCrash;
      await this.#node.refresh(0);
      for (const known of this.#known) {
        if (isFailed) known.readAnew();
        else known.look(this.#isClosed ? undefined : this.#log, this.#node.clock.monotonic());
      }
      const found = isFailed ? [] : this.#violations();
      if (found.length > 0) return found;
      await this.#node.clock.advance(INTERVAL_MS, () => this.#node.settle());
    }
    return this.#node.differences;
  }

  #violations(): readonly string[] {
    const { snapshot } = this.#node;
    const { condition, printers, event } = this.#subject;
    if (snapshot === undefined || snapshot.devices.length === 0) return ['no device is listed'];
    return snapshot.devices.flatMap(({ device, verdict, readings }) => {
      const of = printers.findIndex(({ about }) => isAbout(about, device));
      const { isRaised = false, isUnchecked, counts } = this.#known[of] ?? {};
      const found: string[] = [];
      const says = `${device.id} is ${verdict.state} (${verdict.conditions.map(({ type }) => type).join(', ')})`;
      if (of < 0 && verdict.state !== 'healthy') found.push(`${says} although no line is about it`);
      if (condition !== undefined && verdict.conditions.some(({ type }) => type === condition) !== isRaised)
        found.push(`${says}: the log ${isRaised ? 'has' : 'does not have'} ${condition}`);
      if (condition !== undefined && isRaised !== (verdict.state === 'unhealthy'))
        found.push(`${says} although ${condition} ${isRaised ? 'holds' : 'does not hold'}`);
      if (condition !== undefined && isUnchecked !== undefined && (verdict.unchecked ?? []).includes(condition) !== isUnchecked)
        found.push(`${says}: not checked are ${verdict.unchecked}, and ${condition} ${isUnchecked ? 'is' : 'is not'}`);
      const reading = [...readings].find(({ metric, labels }) => metric === 'device_kernel_log_events_total' && labels?.event === event);
      const { least = 0, most = 0 } = counts ?? {};
      const isCounting = !this.#isClosed && [device.id, device.pciAddress].includes(printers[of]?.about);
      const value = reading === undefined ? undefined : Number(reading.value);
      if (value === undefined ? isCounting && device.kind !== 'namespace' : value < least || value > most)
        found.push(`${device.id} counts ${value} lines, which are ${least} to ${most}`);
      return found;
    });
  }

  #print(): void {
    const device = this.#choose(this.#subject.printers.length);
    const printer = this.#subject.printers[device] as Printer;
    const what = WHAT[this.#choose(WHAT.length)] as (typeof WHAT)[number];
    if (this.#choose(4) > 0) {
      this.story.push(`${what} of ${printer.about}`);
      this.#add(printer[what], { device, what });
    } else {
      this.story.push(`${what} of ${printer.about}, forged`);
      this.#forge(printer[what], printer);
    }
  }

  /** What a process can write, and what the kernel writes about one that has such a name, or about another device. */
  #forge({ text, properties }: DriverLine, { about }: Printer): void {
    const name = text.slice(0, 15);
    this.#add({ text, properties: '' }, {}, 11);
    this.#add({
      text: `${name}[4711]: segfault at 0 ip 000055d0c1a01129 sp 00007ffc12345678 error 6 in ${text}[55d0c1a01000+1000]`,
      properties: '',
    });
    this.#add({ text: `${name} (4711): drop_caches: 3`, properties: '' });
    if (properties === '') return;
    this.#add({ text, properties: '' });
    this.#add({ text, properties: ' SUBSYSTEM=pci\n DEVICE=+pci:0000:fe:1f.7\n' });
    this.#add({ text: text.replaceAll(about, '0000:fe:1f.7'), properties: ' SUBSYSTEM=pci\n DEVICE=+pci:0000:fe:1f.7\n' });
  }

  #add({ text, properties }: DriverLine, about: Omit<LoggedRecord, 'seq'> = {}, priority = 3): void {
    this.#seq += 1;
    this.#log.push({ seq: this.#seq, ...about });
    this.#texts.push(`${priority},${this.#seq},${1_000_000 + this.#seq},-;${escaped(text)}\n${properties}`);
  }

  /** Records that were overwritten before anybody read them. */
  #lose(): void {
    const before = [this.#log.length, this.#texts.length];
    for (let count = 1 + this.#choose(3); count > 0; count -= 1) this.#print();
    [this.#log.length, this.#texts.length] = before as [number, number];
    this.story.push('these are lost');
    this.#add({ text: 'systemd[1]: Started a service.', properties: '' }, {}, 30);
  }

  /** Half of it is lines that count, more than are kept one by one. The others are forged, or mean nothing. */
  #flood(): void {
    this.story.push('a flood');
    const { counts, begins } = this.#subject.printers[0] as Printer;
    for (let count = 0; count < FLOOD; count += 1) {
      if (count % 2 === 0) this.#add(counts, { device: 0, what: 'counts' });
      else if (count % 4 === 1) this.#add({ ...begins, properties: '' }, {}, 11);
      else this.#add({ text: `${counts.text.slice(0, 20)} nothing`, properties: counts.properties });
    }
  }

  #toggleLog(): void {
    this.#isClosed = !this.#isClosed;
    this.story.push(this.#isClosed ? 'the log is closed' : 'the log is open');
    if (this.#isClosed) this.#node.tree.hide('closed', LOG, CLOSED[this.#choose(2)] as (typeof CLOSED)[number]);
    else this.#node.tree.take('closed');
  }

  /** `isForgetful`: the state is lost, so that lines are older than the first read of each device. */
  async #restart(isBoot: boolean, isForgetful: boolean): Promise<void> {
    this.story.push(isBoot ? 'boot' : isForgetful ? 'kill, and the state is lost' : 'kill');
    this.#node.kill();
    if (isForgetful) this.#node.loseState();
    for (const known of this.#known) {
      known.killed(this.#node.clock.monotonic());
      if (isBoot || isForgetful) known.forgotten(isBoot);
    }
    if (isBoot) this.#boot();
    await this.#down();
    await this.#node.startAgent();
    await this.#node.settle();
  }

  /** No agent runs. Drivers print, and the oldest records go. */
  async #down(): Promise<void> {
    for (let count = this.#choose(3); count > 0; count -= 1) this.#print();
    if (this.#choose(3) === 0) {
      const gone = this.#choose(this.#log.length);
      this.#log = this.#log.slice(gone);
      this.#texts = this.#texts.slice(gone);
      this.story.push(`the oldest ${gone} records are gone`);
    }
    this.#show();
    await this.#node.clock.advance(this.#choose(3) * INTERVAL_MS, () => this.#node.settle());
    this.story.push('the agent starts');
  }

  #boot(): void {
    this.#node.boot();
    this.#seq = 0;
    this.#log = [{ seq: 0 }];
    this.#texts = [FIRST_RECORD];
    this.#show();
  }

  #show(): void {
    const text = this.#texts.join('');
    this.#node.tree.write(LOG, () => text);
  }
}

const isAbout = (about: string, { id, pciAddress, physicalFunction }: Device): boolean =>
  [id, pciAddress, physicalFunction].includes(about);
