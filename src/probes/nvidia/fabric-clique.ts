import type { Finding } from '../../model/health.ts';
import { raise } from '../kit/finding.ts';
import { conditions } from './conditions.ts';
import type { FabricSample, GpuSample } from './sample.ts';

/** Clique and domain as one text; undefined for a GPU that is in none, or whose clique was not read. */
const cliqueOf = ({ clique, cluster }: FabricSample = {}): string | undefined =>
  clique === undefined || cluster === undefined ? undefined : `clique ${clique} of ${cluster}`;

/**
 * Compares the cliques of the GPUs of one node. When the two largest cliques have the same number of GPUs, no clique is the usual one, and
 * each GPU gets the finding. A node without a domain of several nodes has one clique.
 */
export function cliqueFindings(gpus: readonly GpuSample[]): (gpu: GpuSample) => readonly Finding[] {
  const counts = new Map<string, number>();
  for (const { fabric } of gpus) {
    const clique = cliqueOf(fabric);
    if (clique !== undefined) counts.set(clique, (counts.get(clique) ?? 0) + 1);
  }
  const [[usual, most] = ['', 0], [, next] = ['', 0]] = [...counts].sort(([, a], [, b]) => b - a);
  return ({ fabric }) => {
    const clique = cliqueOf(fabric);
    if (clique === undefined) return [];
    const isUsual = clique === usual && most > next;
    const message = isUsual ? clique : `${clique}, while ${most} of ${gpus.length} GPUs are in ${usual}`;
    return [raise(conditions.FabricCliqueDiffers, isUsual ? 'SameClique' : 'OtherClique', { status: !isUsual, message })];
  };
}
