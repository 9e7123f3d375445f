import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Claim } from '../../../src/model/allocation.ts';
import { claimDeviceKey } from '../../../src/model/claim-hardware.ts';
import { repetitions } from '../../support/repetitions.ts';
import { seededRandom } from '../../support/seeded.ts';
import { until } from '../../support/until.ts';
import { ClaimTree, claimOf, held, objectText, PCI, type Written } from './claim-tree.ts';

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');
const addressOf = (index: number): string => `${hex(index >> 13, 4)}:${hex((index >> 5) & 255, 2)}:${hex(index & 31, 2)}.0`;

/** What happened to the files of a claim. The address of a claim that is `sure` must be found. */
const FATES = ['whole', 'reordered', 'truncated', 'late', 'rewritten', 'orphaned', 'foreign', 'contradicted', 'damaged'] as const;
const SURE: ReadonlySet<string> = new Set(['whole', 'reordered', 'rewritten']);

function written(index: number, part: Partial<Written> = {}): string {
  return objectText({
    claim: `c-${index}`,
    uid: `uid-${index}`,
    devices: [{ name: 'gpu', attributes: { [PCI]: addressOf(index) } }],
    ...part,
  });
}

/** Writes the files of a claim as a driver, or an accident, may leave them. Every wrong address is one of another claim. */
function write(tree: ClaimTree, claim: Claim, index: number, fate: (typeof FATES)[number], random: () => number): void {
  const wrong = [{ name: 'gpu', attributes: { [PCI]: addressOf(index + 1) } }];
  const path = tree.metadataPath(claim);
  const stream = [written(index, { version: 'v1beta1' }), written(index), written(index, { version: 'v7', devices: wrong })];
  const cut = (text: string): string => text.slice(0, Math.floor(random() * text.length));
  const texts: Readonly<Record<(typeof FATES)[number], () => string>> = {
    whole: () => stream.join('\n'),
    reordered: () => stream.toSorted(() => random() - 0.5).join(''),
    truncated: () => cut(stream.join('\n')),
    late: () => '',
    rewritten: () => written(index, { generation: 3 }) + written(index, { generation: 2, devices: wrong }),
    orphaned: () => written(index, { uid: 'of-an-ended-claim', devices: wrong }),
    foreign: () => written(index + 1),
    contradicted: () => written(index),
    damaged: () => cut(stream.join('')) + cut(stream.join('')),
  };
  writeFileSync(path, texts[fate]());
  if (fate === 'orphaned') writeFileSync(tree.metadataPath(claim, 'second'), written(index));
  if (fate === 'contradicted') writeFileSync(tree.metadataPath(claim, 'second'), written(index, { devices: wrong }));
}

async function wrongAndLost(seed: number, count: number): Promise<{ wrong: readonly string[]; lost: readonly string[]; found: number }> {
  const random = seededRandom(seed);
  const tree = new ClaimTree();
  const claims = Array.from({ length: count }, (_, index) => claimOf({ name: `c-${index}`, device: 'gpu' }));
  const fates = claims.map(() => FATES[Math.floor(random() * FATES.length)] as (typeof FATES)[number]);
  claims.forEach((claim, index) => void write(tree, claim, index, fates[index] as (typeof FATES)[number], random));
  // The files of every third claim are orphans: no container holds the claim.
  const isHeld = (index: number): boolean => index % 3 !== 0;
  await tree.reader.read(claims.filter((_, index) => isHeld(index)).map(held));
  await until(() => !tree.reader.isPending, 'the tree is read');
  const index = tree.reader.current();
  const wrong: string[] = [];
  const lost: string[] = [];
  claims.forEach((claim, at) => {
    const [hardware] = index.get(claimDeviceKey(claim)) ?? [];
    const name = `${claim.name} ${fates[at]}`;
    if (hardware !== undefined && (!isHeld(at) || hardware.pciAddress !== addressOf(at))) wrong.push(name);
    if (hardware === undefined && isHeld(at) && SURE.has(fates[at] as string)) lost.push(name);
  });
  return { wrong, lost, found: index.size };
}

describe('random trees of metadata', () => {
  it.each(Array.from({ length: repetitions(4, 12) }, (_, seed) => seed))('name no wrong hardware, seed %i', async (seed) => {
    expect(await wrongAndLost(seed, 150)).toMatchObject({ wrong: [], lost: [] });
  });

  it('name no wrong hardware with 10,000 claims', async () => {
    const { wrong, lost, found } = await wrongAndLost(1, 10_000);
    expect({ wrong, lost }).toEqual({ wrong: [], lost: [] });
    expect(found).toBeGreaterThan(2_000);
  });
});
