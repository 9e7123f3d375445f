import { PHRASES } from '../board/words.ts';
import type { Fleet, FleetNode, NodeState } from './fleet.ts';

/** Nodes that a person has to do something about. */
export const needsHands = ({ state }: FleetNode): boolean => state === 'unhealthy' || state === 'missing' || state === 'degraded';

/** What a person has to know first: `3 of 1,240 nodes need hands: gpu-17: GPU 3 is lost, training/llm-0 is hit; 2 do not answer`. */
export function sentenceOf({ nodes, problems }: Fleet): string {
  if (nodes.length === 0)
    return problems.length === 0
      ? 'Prometheus knows no node with an agent: it scrapes none, or it lacks the rules of deploy/rules-fleet.yaml'
      : 'Nothing is known of the fleet';
  const hands = nodes.filter(needsHands);
  const count = (...states: readonly NodeState[]): number => nodes.filter(({ state }) => states.includes(state)).length;
  const rest = [
    sayOf(count('silent'), 'does not answer', 'do not answer'),
    sayOf(count('old', 'unknown'), 'is not known', 'are not known'),
  ].filter((text) => text !== '');
  const [first] = hands;
  const of = `of ${amount(nodes.length)} ${nodes.length === 1 ? 'node' : 'nodes'}`;
  if (first !== undefined)
    return [`${amount(hands.length)} ${of} ${hands.length === 1 ? 'needs' : 'need'} hands: ${faultText(first)}`, ...rest].join('; ');
  if (rest.length > 0) return [`No fault is known ${of}`, ...rest].join('; ');
  if (problems.length > 0) return `No fault is known ${of}, but not everything was read`;
  return nodes.length === 1 ? 'The only node is well' : `All ${amount(nodes.length)} nodes are well`;
}

function faultText({ name: node, state, faults: [fault] }: FleetNode): string {
  if (fault === undefined) return `${node} is ${state}`;
  const { name, condition, hit } = fault;
  const [pod] = hit;
  const hits = pod === undefined ? '' : `, ${pod}${hit.length > 1 ? ` and ${hit.length - 1} more are` : ' is'} hit`;
  return `${node}: ${name} ${PHRASES[condition] ?? `has ${condition}`}${hits}`;
}

const sayOf = (count: number, one: string, several: string): string =>
  count === 0 ? '' : `${amount(count)} ${count === 1 ? one : several}`;
const amount = (count: number): string => count.toLocaleString('en-US');
