import type { Device } from '../../../src/generated/deviceplugin/v1beta1/api.ts';
import { numaNodesOf } from '../../../src/sim/kubelet/resource-states.ts';

export type TopologyPolicy = 'none' | 'best-effort' | 'restricted' | 'single-numa-node';

/** Whether containers are put on nodes one by one, or all of a pod together. */
export type TopologyScope = 'container' | 'pod';

/** NUMA nodes as bits. Undefined: any will do. */
export type NodeMask = number | undefined;

export interface Hint {
  readonly nodes: NodeMask;
  readonly preferred: boolean;
}

/** What one container wants of one resource. */
export interface Wish {
  /** All that the plugin told of, healthy or not. */
  readonly devices: ReadonlyMap<string, Device>;
  readonly free: ReadonlySet<string>;
  /** Left over by an init container of the pod. */
  readonly reusable: ReadonlySet<string>;
  readonly count: number;
  /** NUMA nodes of the machine. */
  readonly numaNodes: number;
}

const bits = (mask: number): number => (mask === 0 ? 0 : (mask & 1) + bits(mask >>> 1));
const maskOf = (nodes: readonly number[]): number => nodes.reduce((mask, node) => (node < 31 ? mask | (1 << node) : mask), 0);
const isOn = (device: Device | undefined, mask: number): boolean =>
  device !== undefined && (maskOf(numaNodesOf(device) ?? []) & mask) !== 0;
const hasNodes = (device: Device | undefined): boolean => device !== undefined && (numaNodesOf(device) ?? []).length > 0;

/** Sets of nodes from which a wish can be met. Undefined when it does not matter, since no device says where it is. */
export function hintsFor({ devices, free, reusable, count, numaNodes }: Wish): readonly Hint[] | undefined {
  const all = [...devices.values()];
  if (!all.some(hasNodes)) return undefined;
  if (new Set([...free, ...reusable]).size < count) return [];
  const everywhere = (1 << numaNodes) - 1;
  // Nodes that the machine does not have are passed over.
  const nodes = maskOf(all.flatMap((device) => numaNodesOf(device) ?? [])) & everywhere || everywhere;
  let smallest = bits(nodes);
  const possible: number[] = [];
  for (const mask of subsetsOf(nodes)) {
    if (all.filter((device) => isOn(device, mask)).length >= count) smallest = Math.min(smallest, bits(mask));
    const kept = [...reusable].map((id) => devices.get(id)).filter(hasNodes);
    if (!kept.every((device) => isOn(device, mask))) continue;
    const found = kept.length + [...free].filter((id) => isOn(devices.get(id), mask)).length;
    if (found >= count) possible.push(mask);
  }
  return possible.map((mask) => ({ nodes: mask, preferred: bits(mask) === smallest }));
}

function subsetsOf(nodes: number): number[] {
  const subsets: number[] = [];
  for (let mask = 1; mask <= nodes; mask += 1) if ((mask & nodes) === mask) subsets.push(mask);
  return subsets.sort((a, b) => bits(a) - bits(b) || a - b);
}

/** The nodes that suit all wishes of a container best. `admitted` is false when the policy wants better ones than there are. */
export function mergeHints(
  all: readonly (readonly Hint[] | undefined)[],
  policy: TopologyPolicy,
  numaNodes: number,
): { readonly nodes: NodeMask; readonly admitted: boolean } {
  if (policy === 'none') return { nodes: undefined, admitted: true };
  const everywhere = (1 << numaNodes) - 1;
  const lists = all.map((hints): readonly Hint[] => {
    if (hints === undefined) return [{ nodes: undefined, preferred: true }];
    return hints.length === 0 ? [{ nodes: undefined, preferred: false }] : hints;
  });
  const isSingle = ({ nodes, preferred }: Hint): boolean => preferred && (nodes === undefined || bits(nodes) === 1);
  const allowed = policy === 'single-numa-node' ? lists.map((hints) => hints.filter(isSingle)) : lists;
  const wanted = Math.max(...allowed.map((hints) => Math.min(...hints.map(({ nodes }) => bits(nodes ?? everywhere)))), 0);
  let best: Hint | undefined;
  for (const hints of combinations(allowed)) {
    const candidate = combined(hints, everywhere);
    if (bits(candidate.nodes ?? 0) > 0 && (best === undefined || isBetter(candidate, best, wanted))) best = candidate;
  }
  const { nodes, preferred } = best ?? { nodes: everywhere, preferred: false };
  return {
    nodes: nodes === everywhere && policy === 'single-numa-node' ? undefined : nodes,
    admitted: preferred || policy === 'best-effort',
  };
}

function combinations(lists: readonly (readonly Hint[])[]): Hint[][] {
  return lists.reduce<Hint[][]>((sofar, hints) => sofar.flatMap((some) => hints.map((hint) => [...some, hint])), [[]]);
}

/** Preferred when each of them is and they name the same nodes. */
function combined(hints: readonly Hint[], everywhere: number): Hint {
  const named = hints.flatMap(({ nodes }) => nodes ?? []);
  const nodes = named.reduce((mask, each) => mask & each, everywhere);
  return { nodes, preferred: hints.every(({ preferred }) => preferred) && new Set(named).size <= 1 };
}

/** Fewer nodes are better, then lower ones; of what is not preferred, as many as the neediest resource takes at least, or fewer. */
function isBetter(candidate: Hint, best: Hint, wanted: number): boolean {
  if (candidate.preferred !== best.preferred) return candidate.preferred;
  const [a, b] = [candidate.nodes as number, best.nodes as number];
  const isNarrower = bits(a) < bits(b) || (bits(a) === bits(b) && a < b);
  if (candidate.preferred || bits(b) > wanted || bits(a) === bits(b)) return isNarrower;
  return bits(a) > bits(b) && bits(a) <= wanted;
}
