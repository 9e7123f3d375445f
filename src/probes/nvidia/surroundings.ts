import { DirectoryMark } from '../../host/directory-mark.ts';
import type { Host } from '../../host/host.ts';
import type { NativeFiles } from '../../host/native-files.ts';
import { commonNodes, MIG_MINORS } from './devices.ts';

/**
 * What the description of a device takes from elsewhere, and may come later than the device: nodes that every program opens, and the list of
 * the nodes of instances, some ten thousand words. They are looked up again where the directory or the list changed.
 */
export class Surroundings {
  readonly #host: Pick<Host, 'dev' | 'proc'>;
  readonly #nodes: DirectoryMark;
  readonly #minors: DirectoryMark;
  #hadInstances = false;
  #text: string | undefined;

  /** `native`: the direct way to the kernel, for those who have it loaded. */
  constructor(host: Pick<Host, 'dev' | 'proc'>, native?: NativeFiles) {
    this.#host = host;
    this.#nodes = new DirectoryMark(host.dev.path('.'), { native });
    this.#minors = new DirectoryMark(host.proc.path(MIG_MINORS), { native });
  }

  /** As one text to be compared: the same object as long as it is the same. */
  look(hasInstances: boolean): string {
    const isOther = [this.#nodes.renew(), hasInstances && this.#minors.renew(), hasInstances !== this.#hadInstances].includes(true);
    if (this.#text !== undefined && !isOther) return this.#text;
    this.#hadInstances = hasInstances;
    const { dev, proc } = this.#host;
    const text = `${commonNodes(dev).join(',')} ${hasInstances ? (proc.text(MIG_MINORS) ?? '') : ''}`;
    if (text !== this.#text) this.#text = text;
    return this.#text as string;
  }
}
