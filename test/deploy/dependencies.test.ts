import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

interface Locked {
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
}

it('pins each package that is shipped, for every platform, by its content', () => {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { readonly packages: Readonly<Record<string, Locked>> };
  const shipped = Object.entries(packages).filter(([path, { dev, devOptional }]) => path !== '' && dev !== true && devOptional !== true);
  expect(shipped.length).toBeGreaterThan(80);
  expect(shipped.filter(([, { integrity }]) => !/^sha512-/.test(integrity ?? ''))).toEqual([]);
});

it('pins the base of the image by its content', () => {
  const dockerfile = readFileSync('deploy/Dockerfile', 'utf8');
  expect(dockerfile.match(/^(?:ARG BASE=|FROM ).*$/gm)).toEqual([
    expect.stringMatching(/^ARG BASE=\S+@sha256:[0-9a-f]{64}$/),
    expect.stringMatching(/^FROM \$\{BASE\} AS build$/),
    expect.stringMatching(/^FROM \$\{BASE\}$/),
  ]);
});
