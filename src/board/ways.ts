import type { PciePath } from '../model/locality.ts';

/** What a way between two devices passes. Pages, `top` and commands use these words; docs/locality.md explains them. */
export const WAYS: Readonly<Record<PciePath, string>> = {
  PIX: 'through one PCIe switch',
  PXB: 'through several PCIe switches',
  PHB: 'through one host bridge',
  NODE: 'through two host bridges of one NUMA node',
  SYS: 'through the link between NUMA nodes, the slowest way',
};

/** `through one PCIe switch (PIX)`. Other words are those of direct links. */
export const wayText = (path: string): string => `${WAYS[path as PciePath] ?? 'over direct links'} (${path})`;

/** `PIX to eth0, through one PCIe switch`: the word first, because a narrow column cuts the end. */
export const wayTo = (name: string, path: PciePath): string => `${path} to ${name}, ${WAYS[path]}`;
