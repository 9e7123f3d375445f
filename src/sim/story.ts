import { hours, minutes, seconds } from '../model/duration.ts';
import type { FaultyFamily, NodeFault, NodeFaults } from './faults.ts';

/** One fault of the story and the devices that have it in turn. */
interface Act {
  readonly family: string;
  readonly name: string;
  readonly devices: readonly string[];
  readonly lastsMs: number;
  /** Time between the end of the fault and the beginning of the next act. */
  readonly recoversMs: number;
}

/** A fault at its time of the story, in milliseconds since the node's start. */
export interface Scene {
  readonly family: string;
  readonly name: string;
  readonly device: string;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** All devices are healthy at the beginning of a round and at its end. */
const FIRST_MS = seconds(20);
const LAST_MS = seconds(30);
const SHORTEST_ROUND_MS = minutes(6);
/** The condition `Flapping` counts the beginnings of a condition for so long. */
const REST_MS = hours(12);

/** The acts of the families: each has one fault at a time, on one device. */
function actsOf(families: readonly FaultyFamily[]): readonly Act[] {
  return families.flatMap(({ family, faults, targets }) =>
    faults.flatMap(({ name, kinds, story }) => {
      const devices = targets.filter(({ kind, lacks = [] }) => kinds.includes(kind) && !lacks.includes(name)).map(({ id }) => id);
      return story === undefined || devices.length === 0 ? [] : [{ family, name, devices, ...story }];
    }),
  );
}

/**
 * Returns the scene at a moment; undefined while the story lets all devices be healthy. Each round shows the faults of all families one after
 * the other, on another device than the round before. A device that had its turn rests for half a day, so that nothing flaps.
 */
export function sceneAt(families: readonly FaultyFamily[], elapsedMs: number): Scene | undefined {
  const acts = actsOf(families);
  const wholeMs = acts.reduce((sum, { lastsMs, recoversMs }) => sum + lastsMs + recoversMs, FIRST_MS + LAST_MS);
  const roundMs = Math.max(wholeMs, SHORTEST_ROUND_MS);
  const round = Math.floor(elapsedMs / roundMs);
  const restRounds = Math.ceil(REST_MS / roundMs);
  let fromMs = round * roundMs + FIRST_MS;
  for (const { family, name, devices, lastsMs, recoversMs } of acts) {
    const device = devices[round % Math.max(devices.length, restRounds)];
    const untilMs = fromMs + lastsMs;
    if (device !== undefined && elapsedMs >= fromMs && elapsedMs < untilMs) return { family, name, device, fromMs, untilMs };
    fromMs = untilMs + recoversMs;
  }
  return undefined;
}

/** Begins and ends the faults of the story. A fault that somebody cleared does not begin again in its scene. */
export class Story {
  readonly #faults: NodeFaults;
  readonly #families: () => readonly FaultyFamily[];
  #scene: Scene | undefined;
  /** The fault of the scene; undefined when it is not of the story. */
  #fault: NodeFault | undefined;

  constructor(faults: NodeFaults, families: () => readonly FaultyFamily[]) {
    this.#faults = faults;
    this.#families = families;
  }

  step(elapsedMs: number): void {
    const scene = sceneAt(this.#families(), elapsedMs);
    if (this.#scene?.fromMs === scene?.fromMs) return;
    if (this.#fault !== undefined) this.#faults.end([this.#fault], elapsedMs);
    this.#scene = scene;
    this.#fault = scene === undefined ? undefined : this.#begin(scene, elapsedMs);
  }

  /** Leaves a fault alone that somebody began before. */
  #begin({ family, name, device }: Scene, elapsedMs: number): NodeFault | undefined {
    if (this.#faults.isRunning(family, name, device)) return undefined;
    return this.#faults.begin(name, `${family}/${device}`, elapsedMs);
  }
}
