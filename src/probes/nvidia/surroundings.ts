import type { Host } from '../../host/host.ts';
import { commonNodes, MIG_MINORS } from './devices.ts';

/**
 * What the description of a device takes from elsewhere, and may come later than the device: nodes that every program opens, and the list of
 * the nodes of instances.
 */
export class Surroundings {
  readonly #host: Pick<Host, 'dev' | 'proc'>;

  constructor(host: Pick<Host, 'dev' | 'proc'>) {
    this.#host = host;
  }

  /** As one text to be compared. */
  look(hasInstances: boolean): string {
    const { dev, proc } = this.#host;
    return `${commonNodes(dev).join(',')} ${hasInstances ? (proc.text(MIG_MINORS) ?? '') : ''}`;
  }
}
