import type { Choose } from '../support/seeded.ts';
import { seeded } from '../support/seeded.ts';
import type { Blinding, Duplicate, OracleFamily } from './family.ts';
import { Knowledge } from './knowledge.ts';
import { INTERVAL_MS, OracleNode, RESOURCE } from './node.ts';

/** One action of a history. A present fault or blinding ends; an absent one begins. */
export type Action =
  | { readonly kind: 'tick'; readonly times: number }
  | { readonly kind: 'fault'; readonly fault: number; readonly device: number }
  | { readonly kind: 'blinding'; readonly blinding: number; readonly device: number }
  | { readonly kind: 'kill'; readonly downMs: number; readonly isStateLost?: true }
  /** The kernel gives the devices each other's names, or the first one a new name. */
  | { readonly kind: 'rename'; readonly device: number; readonly other?: number }
  /** The absent one of two pieces of hardware with one number appears, or one of them leaves. */
  | { readonly kind: 'duplicate'; readonly duplicate: number; readonly isFirst: boolean }
  | { readonly kind: 'replace'; readonly replacement: number }
  | { readonly kind: 'crash' }
  | { readonly kind: 'descriptors' }
  | { readonly kind: 'clock'; readonly byMs: number }
  | { readonly kind: 'pod'; readonly device: number }
  | { readonly kind: 'traffic'; readonly device: number; readonly by: number }
  | { readonly kind: 'kubelet' };

/** Number of actions in each history, without the ticks between them. */
const LENGTH = 12;
const HOUR_MS = 3_600_000;

/** Actions of one seed. Half of them affect one device. Histories with a kubelet are rarer, because its sockets take real time. */
export function makeHistory(family: OracleFamily, seed: number): readonly Action[] {
  const choose = seeded(seed);
  const first = choose(family.devices.length);
  const actions: Action[] = [{ kind: 'tick', times: 1 + choose(2) }];
  for (let count = 0; count < LENGTH; count += 1) {
    const device = choose(2) === 0 ? first : choose(family.devices.length);
    actions.push(anyEnd(actions, choose) ?? anyAction(family, choose, device, isWithKubelet(family, seed)));
    if (choose(4) > 0) actions.push({ kind: 'tick', times: choose(5) === 0 ? 8 + choose(6) : 1 + choose(3) });
  }
  actions.push({ kind: 'tick', times: 1 + choose(12) });
  return actions;
}

export const isWithKubelet = (family: OracleFamily, seed: number): boolean => family.counter !== undefined && seed % 6 === 0;

const LASTING: ReadonlySet<Action['kind']> = new Set(['fault', 'blinding', 'descriptors', 'duplicate']);

/** Often repeats an earlier action, so that a fault or blinding ends or begins again. */
function anyEnd(actions: readonly Action[], choose: Choose): Action | undefined {
  const lasting = actions.filter(({ kind }) => LASTING.has(kind));
  return lasting.length > 0 && choose(4) === 0 ? lasting[choose(lasting.length)] : undefined;
}

function anyAction(family: OracleFamily, choose: Choose, device: number, hasKubelet: boolean): Action {
  if (hasKubelet && choose(5) < 2) return anyUse(choose, device);
  const kind = choose(100);
  if (kind < 40) return { kind: 'fault', fault: choose(family.faults.length), device };
  if (kind < 80) return { kind: 'blinding', blinding: choose(family.blindings.length), device };
  if (kind < 86) return { kind: 'kill', downMs: choose(3) === 0 ? choose(200) * 1_000 : choose(5) * 1_000 };
  if (kind < 87) return { kind: 'kill', downMs: choose(5) * 1_000, isStateLost: true };
  if (kind < 91) return anyChangeOfWho(family, choose, device, hasKubelet);
  if (kind < 94) return { kind: 'crash' };
  if (kind < 98) return { kind: 'descriptors' };
  return { kind: 'clock', byMs: (choose(2) === 0 ? 1 : -1) * choose(48) * HOUR_MS };
}

/** Hardware under another name is another id for the kubelet, so it does not come beside pods. */
function anyChangeOfWho(family: OracleFamily, choose: Choose, device: number, hasKubelet: boolean): Action {
  const { kernelNames, replacements = [], duplicates = [] } = family;
  const replaced = replacements.flatMap(({ names }, at) => (names !== undefined && hasKubelet ? [] : [at]));
  const changes: (() => Action)[] = [
    ...(replaced.length === 0 ? [] : [(): Action => ({ kind: 'replace', replacement: replaced[choose(replaced.length)] as number })]),
    ...(kernelNames === undefined
      ? []
      : [(): Action => ({ kind: 'rename', device, ...(choose(3) === 0 ? {} : { other: choose(family.devices.length) }) })]),
    ...(duplicates.length === 0
      ? []
      : [(): Action => ({ kind: 'duplicate', duplicate: choose(duplicates.length), isFirst: choose(2) === 0 })]),
  ];
  return changes[choose(changes.length)]?.() ?? { kind: 'kill', downMs: choose(5) * 1_000 };
}

/** An action of a pod. */
function anyUse(choose: Choose, device: number): Action {
  const kind = choose(10);
  if (kind < 5) return { kind: 'traffic', device, by: 1 + choose(1_000_000) };
  return kind < 9 ? { kind: 'pod', device } : { kind: 'kubelet' };
}

/** Runs a history. Returns the first violations and the index of their action; undefined when there are none. */
export async function runHistory(
  family: OracleFamily,
  actions: readonly Action[],
  hasKubelet: boolean,
): Promise<{ readonly after: number; readonly violations: readonly string[] } | undefined> {
  const life = new Life(family, hasKubelet);
  await life.begin();
  try {
    for (const [at, action] of actions.entries()) {
      const violations = [...(await life.live(action)), ...life.differences];
      if (violations.length > 0) return { after: at, violations };
    }
    return undefined;
  } finally {
    await life.end();
  }
}

/** Shortens a failing history by leaving out actions. */
export async function shrink(family: OracleFamily, actions: readonly Action[], hasKubelet: boolean): Promise<readonly Action[]> {
  let shortest = actions;
  for (let size = Math.ceil(actions.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < shortest.length; ) {
      const candidate = [...shortest.slice(0, from), ...shortest.slice(from + size)];
      if ((await runHistory(family, candidate, hasKubelet)) === undefined) from += size;
      else shortest = candidate;
    }
  }
  return shortest;
}

/** Text for the failure message. */
export function describeActions(family: OracleFamily, actions: readonly Action[]): string {
  const nameOf = (device: number): string => family.devices[device % family.devices.length]?.id ?? '';
  return actions
    .map((action) => {
      if (action.kind === 'fault') return `fault ${family.faults[action.fault]?.name} on ${nameOf(action.device)}`;
      if (action.kind === 'blinding') return `blinding ${family.blindings[action.blinding]?.name} on ${nameOf(action.device)}`;
      if (action.kind === 'rename')
        return `rename ${nameOf(action.device)}${action.other === undefined ? '' : ` and ${nameOf(action.other)}`}`;
      if (action.kind === 'replace') return `replace ${family.replacements?.[action.replacement]?.devices.join(' and ')}`;
      if (action.kind === 'duplicate') {
        const { first, second } = family.duplicates?.[action.duplicate] ?? {};
        return `the absent one of ${first?.[0]} and ${second?.[0]} appears, or the ${action.isFirst ? 'first' : 'second'} one leaves`;
      }
      if (action.kind === 'pod') return `pod on ${nameOf(action.device)}`;
      if (action.kind === 'traffic') return `${action.by} units move on ${nameOf(action.device)}`;
      return JSON.stringify(action);
    })
    .join('\n');
}

class Life {
  readonly #family: OracleFamily;
  readonly #node: OracleNode;
  readonly #known: Knowledge;
  readonly #present = new Set<string>();
  readonly #pods = new Map<string, string>();
  readonly #hasKubelet: boolean;
  /** Present kernel name of each device that has one. */
  readonly #kernelNames: Map<string, string>;
  #podNumber = 0;
  #renames = 0;

  constructor(family: OracleFamily, hasKubelet: boolean) {
    this.#family = family;
    this.#hasKubelet = hasKubelet;
    this.#node = new OracleNode(family, hasKubelet);
    this.#known = new Knowledge(family, this.#node);
    this.#kernelNames = new Map(Object.entries(family.kernelNames?.first ?? {}));
  }

  get differences(): readonly string[] {
    return this.#node.differences;
  }

  async begin(): Promise<void> {
    for (const { second, ...duplicate } of this.#family.duplicates ?? []) this.#leave({ second, ...duplicate }, second);
    await this.#node.start();
  }

  async end(): Promise<void> {
    await this.#node.stop();
  }

  async live(action: Action): Promise<readonly string[]> {
    switch (action.kind) {
      case 'tick':
        return await this.#tick(action.times);
      case 'fault':
        this.#toggleFault(action.fault, action.device);
        break;
      case 'blinding':
        this.#toggleBlinding(action.blinding, action.device);
        break;
      case 'kill':
        this.#node.kill();
        this.#known.restarted(true);
        if (action.isStateLost && !this.#hasDuplicate) {
          this.#node.loseState();
          this.#known.forgotten();
        }
        await this.#node.clock.advance(action.downMs, () => this.#node.settle());
        await this.#node.startAgent();
        await this.#node.settle();
        this.#known.restarted(false);
        // Before the first read the verdict must not be better than the knowledge.
        return this.#known.violations();
      case 'rename':
        this.#rename(action.device, action.other);
        break;
      case 'replace':
        this.#replace(action.replacement);
        break;
      case 'duplicate':
        this.#toggleDuplicate(action.duplicate, action.isFirst);
        break;
      case 'crash':
        this.#node.threads.weather.isToCrash = true;
        break;
      case 'descriptors':
        this.#node.threads.weather.isOutOfDescriptors = !this.#node.threads.weather.isOutOfDescriptors;
        break;
      case 'clock':
        this.#node.clock.setWall(action.byMs);
        break;
      case 'pod':
        this.#togglePod(action.device);
        // The kubelet's checkpoint changed, so the agent queries the kubelet before it reads its devices again.
        await this.#node.ask();
        return await this.#tick(1);
      case 'traffic':
        this.#move(action.device, action.by);
        break;
      default:
        if (this.#hasKubelet) await this.#node.kubelet.restart();
    }
    return [];
  }

  async #tick(times: number): Promise<readonly string[]> {
    const { weather } = this.#node.threads;
    for (let count = 0; count < times; count += 1) {
      const isFailed = weather.isToCrash;
      this.#known.isWithoutDescriptors = weather.isOutOfDescriptors;
      await this.#node.refresh(0);
      this.#known.looked(isFailed && !weather.isToCrash);
      await this.#node.clock.advance(INTERVAL_MS, () => this.#node.settle());
      const violations = this.#known.violations();
      if (violations.length > 0) return violations;
    }
    return [];
  }

  #rename(deviceIndex: number, otherIndex: number | undefined): void {
    const { kernelNames } = this.#family;
    if (kernelNames === undefined) return;
    const ids = Object.keys(kernelNames.first);
    const [device, other] = [deviceIndex, otherIndex].map((index) => (index === undefined ? undefined : ids[index % ids.length]));
    if (device === undefined || device === other) return;
    this.#renames += 1;
    const nameOf = (id: string): string => this.#kernelNames.get(id) as string;
    const names: [string, string][] = [[device, other === undefined ? kernelNames.fresh(this.#renames) : nameOf(other)]];
    if (other !== undefined) names.push([other, nameOf(device)]);
    this.#node.tree.rename(new Map(names.flatMap(([id, name]) => Object.entries(kernelNames.entries(id, name)))));
    for (const [id, name] of names) {
      kernelNames.write?.(this.#node.tree, id, name);
      this.#kernelNames.set(id, name);
      this.#known.renamed(id, kernelNames.areIds ? name : this.#known.nameOf(id));
    }
    this.#node.threads.release();
  }

  #replace(index: number): void {
    const replacement = this.#family.replacements?.[index];
    if (replacement === undefined || this.#isCovered(replacement.toldIn)) return;
    for (const device of replacement.devices) this.#endFaults(device, replacement.isUnidentified === true);
    this.#renames += 1;
    replacement.begin(this.#node.tree, this.#renames);
    const names = replacement.names?.(this.#renames) ?? {};
    this.#node.tree.renew(replacement.directory);
    for (const device of replacement.isUnidentified ? [] : replacement.devices) this.#known.replaced(device, names[device]);
    for (const device of replacement.isUnidentified ? replacement.devices : []) this.#known.renamed(device, this.#known.nameOf(device));
    this.#node.threads.release();
  }

  /** Other hardware has no fault of the hardware before. `isEnd`: nobody can tell them apart, so that each fault just ends. */
  #endFaults(device: string, isEnd: boolean): void {
    for (const fault of this.#family.faults) {
      const layer = `${fault.name} ${device}`;
      if (!this.#present.delete(layer)) continue;
      if (isEnd) fault.end?.(this.#node.tree, device, layer);
      this.#node.tree.take(layer);
      if (isEnd) this.#known.faultBegan(device, fault.name, false);
    }
  }

  #isCovered(path: string | undefined): boolean {
    return path !== undefined && this.#node.tree.isCovered(path);
  }

  /** Which of two with one number has which name is remembered in the state. */
  get #hasDuplicate(): boolean {
    return (this.#family.duplicates ?? []).some(({ second }) => !this.#isAbsent(second));
  }

  #isAbsent(devices: readonly string[]): boolean {
    return this.#known.blindings.has(absenceOf(devices));
  }

  /** The second one appears, and the first one leaves, only when the others were read: names follow the order in which they are first seen. */
  #toggleDuplicate(index: number, isFirst: boolean): void {
    const duplicate = this.#family.duplicates?.[index];
    if (duplicate === undefined || this.#isCovered(duplicate.listedIn)) return;
    const { first, second } = duplicate;
    const absent = [first, second].find((devices) => this.#isAbsent(devices));
    if (absent === undefined) {
      if (!isFirst || this.#known.wereSeen([...first, ...second])) this.#leave(duplicate, isFirst ? first : second);
      return;
    }
    if (absent === second && !this.#known.wereSeen(first)) return;
    this.#node.tree.take(absenceOf(absent));
    this.#known.blindingEnded(absenceOf(absent));
    this.#known.joined(absent);
    this.#node.threads.release();
  }

  #leave(duplicate: Duplicate, devices: readonly string[]): void {
    const [layer, nowMs] = [absenceOf(devices), this.#node.clock.monotonic()];
    duplicate.leave(this.#node.tree, devices, layer);
    const { faults, counter } = this.#family;
    const files = (id: string): readonly string[] => [
      ...faults.flatMap((fault) => [...fault.shownBy(id), ...(fault.endShownBy?.(id) ?? [])]),
      ...(counter === undefined ? [] : [counter.path(id)]),
    ];
    const blinding: Blinding = {
      name: layer,
      scope: 'family',
      concerns: devices,
      leaves: 'gone',
      hides: (id) => (devices.includes(id) ? files(id) : []),
      covers: () => ({}),
    };
    this.#known.blindingBegan({ layer, blinding, device: devices[0] as string, blindFromMs: nowMs, fromMs: nowMs });
  }

  #toggleFault(index: number, deviceIndex: number): void {
    const fault = this.#family.faults[index];
    const allowed = this.#family.devices.filter(({ id }) => fault?.devices?.includes(id) ?? true);
    const device = allowed[deviceIndex % allowed.length]?.id;
    if (fault === undefined || device === undefined) return;
    const layer = `${fault.name} ${device}`;
    const isPresent = this.#present.has(layer);
    const rivals = this.#family.faults.filter(({ name, group }) => group !== undefined && group === fault.group && name !== fault.name);
    if (!isPresent && rivals.some(({ name }) => this.#present.has(`${name} ${device}`))) return;
    if (isPresent && fault.end === undefined) return;
    if (isPresent) {
      this.#present.delete(layer);
      fault.end?.(this.#node.tree, device, layer);
    } else {
      this.#present.add(layer);
      fault.begin(this.#node.tree, device, layer, this.#node.clock.now());
    }
    this.#known.faultBegan(device, fault.name, !isPresent);
  }

  #toggleBlinding(index: number, deviceIndex: number): void {
    const blinding = this.#family.blindings[index];
    const device = this.#family.devices[deviceIndex % this.#family.devices.length]?.id;
    if (blinding === undefined || device === undefined) return;
    const layer = blinding.scope === 'family' ? blinding.name : `${blinding.name} ${device}`;
    if (this.#known.blindings.has(layer)) {
      this.#node.tree.take(layer);
      this.#known.blindingEnded(layer);
      this.#node.threads.release();
    } else {
      const covers = Object.entries(blinding.covers(this.#node.tree, device));
      // Only one replacement is possible per path.
      if (covers.some(([path]) => this.#node.tree.isCovered(path))) return;
      for (const [path, overlay] of covers) this.#node.tree.hide(layer, path, overlay);
      blinding.begin?.(this.#node.tree, device, layer);
      const nowMs = this.#node.clock.monotonic();
      this.#known.blindingBegan({ layer, blinding, device, blindFromMs: nowMs, fromMs: nowMs });
    }
  }

  #togglePod(deviceIndex: number): void {
    const { counter, devices } = this.#family;
    const device = devices.find(({ id }) => id === counter?.devices[deviceIndex % (counter?.devices.length ?? 1)]);
    if (device === undefined) return;
    const present = this.#pods.get(device.id);
    if (present !== undefined) {
      this.#node.kubelet.removePod('oracle', present);
      this.#pods.delete(device.id);
      this.#known.podEnded(present);
      return;
    }
    this.#podNumber += 1;
    const name = `pod-${this.#podNumber}`;
    const held = [{ resource: RESOURCE, id: device.deviceId }];
    this.#node.kubelet.admitPod({ namespace: 'oracle', name, uid: name, containers: [{ name: 'main', devices: held }] });
    this.#pods.set(device.id, name);
    this.#known.podStarted(name, device.id);
  }

  #move(deviceIndex: number, by: number): void {
    const { counter } = this.#family;
    const device = counter?.devices[deviceIndex % counter.devices.length];
    if (counter === undefined || device === undefined) return;
    counter.move(this.#node.tree, device, by);
    this.#known.moved(device, by);
  }
}

const absenceOf = (devices: readonly string[]): string => `${devices.join(' and ')} absent`;
