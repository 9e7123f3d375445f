import type { BoardRow } from './row.ts';

type Place = Pick<BoardRow, 'name' | 'pciPath' | 'numaNode'>;

/** What data passes between two devices, in words; undefined when the place of one is unknown. The vendor's tools say PIX, PHB, NODE, SYS. */
export function distanceText(above: Place, row: Place): string | undefined {
  const a = above.pciPath?.split('/');
  const b = row.pciPath?.split('/');
  if (a === undefined || b === undefined) return undefined;
  let common = 0;
  while (common < Math.min(a.length, b.length) && a[common] === b[common]) common += 1;
  if (common === a.length && common === b.length) return `same card as ${above.name}`;
  if (common > 1) return `behind the same PCIe bridge as ${above.name}`;
  if (common === 1) return `same root complex as ${above.name}`;
  if (above.numaNode === undefined || row.numaNode === undefined) return undefined;
  return above.numaNode === row.numaNode ? `same NUMA node as ${above.name}, other root complex` : `other NUMA node than ${above.name}`;
}
