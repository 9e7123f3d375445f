import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import express from 'express';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fleetPages } from '../../src/fleet/pages/router.ts';
import { hasBrowser, newPage, startBrowser, unlessBrowser } from '../support/browser.ts';
import { fleetOf, sourcesOf } from './told-fleet.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const PATHS = ['/', '/?text=state%3Asilent', '/nodes/gpu-node-0', '/pods/training/llm-0', '/namespaces/training', '/nodes/none'];

describe.skipIf(!hasBrowser)(`pages of a fleet in a real browser${unlessBrowser}`, () => {
  let browser: Browser;
  let server: Server;
  beforeAll(async () => {
    server = createServer(express().use(fleetPages(sourcesOf(fleetOf(200)))));
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    server?.close();
  });

  it.each([
    ['light', 1440],
    ['dark', 390],
  ] as const)('have no violation that axe finds, and do not move sideways, %s, %i pixels wide', async (colorScheme, width) => {
    const page = await newPage(browser, { colorScheme, viewport: { width, height: 900 }, bypassCSP: true });
    for (const path of PATHS) {
      await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`);
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), path).toBeLessThanOrEqual(0);
      const laidOut = (await page.evaluate(
        '[...document.querySelectorAll("table")].map((one) => getComputedStyle(one).display)',
      )) as string[];
      if (width > 1_000) expect(new Set([...laidOut, 'table']), `${path}: heads above their columns`).toEqual(new Set(['table']));
      await page.addScriptTag({ content: AXE });
      const found = (await page.evaluate(`axe.run({ runOnly: ${JSON.stringify(RULES)} })`)) as {
        readonly violations: readonly { readonly id: string }[];
      };
      expect(
        found.violations.map(({ id }) => id),
        path,
      ).toEqual([]);
    }
    await page.context().close();
  });
});
