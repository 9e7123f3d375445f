import type { PortMemory } from './port-memory.ts';

/** Devices that went and may come back: more than the functions that any node has. */
const MOST = 2_048;

/** Port memories, port number to memory, of devices that went, since a reset brings them back. Of too many the one that went first is forgotten. */
export class GonePorts {
  readonly #most: number;
  readonly #memories = new Map<string, Map<string, PortMemory>>();

  constructor(most = MOST) {
    this.#most = most;
  }

  /** Of a device that came: those that it left, else none yet. */
  take(device: string): Map<string, PortMemory> {
    const memories = this.#memories.get(device) ?? new Map<string, PortMemory>();
    this.#memories.delete(device);
    return memories;
  }

  /** Of a device that goes. */
  keep(device: string, memories: Map<string, PortMemory>): void {
    this.#memories.delete(device);
    this.#memories.set(device, memories);
    for (const oldest of this.#memories.keys()) {
      if (this.#memories.size <= this.#most) return;
      this.#memories.delete(oldest);
    }
  }
}
