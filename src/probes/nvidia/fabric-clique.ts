import type { Finding } from '../../model/health.ts';
import { raise, raiseGrowth } from '../kit/finding.ts';
import { conditions } from './conditions.ts';
import type { FabricSample, GpuSample } from './sample.ts';

/** Clique and domain as one text; undefined for a GPU that is in none, or whose clique was not read. */
const cliqueOf = ({ clique, cluster }: FabricSample = {}): string | undefined =>
  clique === undefined || cluster === undefined ? undefined : `clique ${clique} of ${cluster}`;

/** Whether a GPU may be in a clique that was not read: it has joined the fabric, its state was not read either, or it is lost. */
const mayBeInOne = ({ fabric, unread = [] }: GpuSample): boolean =>
  cliqueOf(fabric) === undefined &&
  ((fabric?.state === 'completed' && fabric.hasFailed !== true) || unread.some(({ value, kind }) => value === 'fabric' || kind === 'lost'));

/** The clique of a GPU at the last read that had one, and how often it changed while a program used the GPU. */
interface Membership {
  readonly clique: string;
  readonly isUsed: boolean;
  readonly changes: number;
}

/** Judges the cliques of the GPUs of one node: against each other, and against the clique that each GPU had before. */
export class FabricCliques {
  readonly #members = new Map<string, Membership>();

  /**
   * Returns the findings of each GPU of one read. When the two largest cliques have the same number of GPUs, no clique is the usual one, and
   * each GPU gets the finding. A node without a domain of several nodes has one clique. GPUs whose clique was not read may be in any: when
   * they decide, there is no finding of the comparison. So may the GPUs that the driver does not show, `unshown` in number.
   */
  take(gpus: readonly GpuSample[], unshown = 0): (gpu: GpuSample) => readonly Finding[] {
    const counts = new Map<string, number>();
    for (const { fabric } of gpus) {
      const clique = cliqueOf(fabric);
      if (clique !== undefined) counts.set(clique, (counts.get(clique) ?? 0) + 1);
    }
    const unread = gpus.filter(mayBeInOne).length + unshown;
    const cliques = [...counts].sort(([, a], [, b]) => b - a);
    const findingsOf = (gpu: GpuSample): readonly Finding[] => {
      const clique = cliqueOf(gpu.fabric);
      if (clique === undefined) return [];
      const own = counts.get(clique) ?? 0;
      const [other, most] = cliques.find(([name]) => name !== clique) ?? ['', 0];
      const isUsual = own > most + unread;
      const isOpen = !isUsual && own + unread > most;
      const message = isUsual ? clique : `${clique}, while ${most} of ${gpus.length} GPUs are in ${other}`;
      return [
        ...(isOpen ? [] : [raise(conditions.FabricCliqueDiffers, isUsual ? 'SameClique' : 'OtherClique', { status: !isUsual, message })]),
        ...raiseGrowth(conditions.FabricCliqueChanged, this.#changes(gpu, clique), `changes of the clique during use, now ${clique}`),
      ];
    };
    const findings = new Map(gpus.map((gpu) => [gpu, findingsOf(gpu)]));
    return (gpu) => findings.get(gpu) ?? [];
  }

  /** Without a list of processes the GPU counts as used. Undefined for a GPU without UUID. */
  #changes({ identity, processes }: GpuSample, clique: string): number | undefined {
    if (identity?.uuid === undefined) return undefined;
    const isUsed = processes?.count !== 0;
    const before = this.#members.get(identity.uuid) ?? { clique, isUsed, changes: 0 };
    const changes = before.changes + Number(before.clique !== clique && (isUsed || before.isUsed));
    this.#members.set(identity.uuid, { clique, isUsed, changes });
    return changes;
  }
}
