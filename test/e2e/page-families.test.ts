import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../cli/command-line.ts';
import { hasBrowser, newPage, startBrowser, unlessBrowser } from '../support/browser.ts';
import { PROGRAM } from '../support/program.ts';
import { type ServedAgent, startAgent } from '../support/serve.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const FAMILIES = ['amdgpu', 'intelgpu', 'netdev', 'nvme'];
/** The narrowest column in which the name of a condition and what to do are read without effort, in pixels. */

describe.skipIf(!hasBrowser)(`graphics cards, network functions and drives on the page${unlessBrowser}`, () => {
  let directory = '';
  let demo: ServedAgent;
  let browser: Browser;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'device-agent-families-'));
    const flags = ['--sim.devices=amdgpu=1,intelgpu=1,netdev=1,nvme=1', '--sim.pods=0', '--sim.story=off', '--refresh.interval=1s'];
    const env = { ...process.env, TMPDIR: directory };
    demo = await startAgent([process.execPath, PROGRAM, 'demo', ...flags], { env });
    await demo.until('all families', (page) =>
      FAMILIES.every((family) => new RegExp(`^device_info\\{.*family="${family}"`, 'm').test(page)),
    );
    const device = /^device_info\{device="([^"]+)".*family="netdev",kind="pf"/m.exec(await demo.metrics())?.[1] ?? '';
    expect(await run(['demo', 'fault', 'port-down', `netdev/${device}`, `--demo=${demo.child.pid}`], env)).toMatchObject({ status: 0 });
    browser = await startBrowser();
  });

  afterAll(async () => {
    await browser?.close();
    expect(await demo?.stop('SIGINT')).toBe(0);
    rmSync(directory, { recursive: true, force: true });
  });

  async function open(path: string, width: number): Promise<Page> {
    const page = await newPage(browser, { viewport: { width, height: 900 }, bypassCSP: true });
    await page.goto(demo.url + path);
    return page;
  }

  /** Keys of the devices of a family and kind. */
  const keysOf = async (wanted: string): Promise<readonly string[]> => {
    const { devices } = (await (await fetch(`${demo.url}/api/v1/devices?readings=shown`)).json()) as {
      readonly devices: readonly { readonly key: string; readonly family: string; readonly kind: string }[];
    };
    return devices.filter(({ family, kind }) => `${family} ${kind}` === wanted).map(({ key }) => key);
  };
  const rowOf = (page: Page, key = '') => page.locator(`#devices tr[data-key="${key}"]`);

  /** The labels of the readings of the first device of a kind. */
  const labelsOf = async (page: Page, kind: string): Promise<readonly string[]> =>
    rowOf(page, (await keysOf(kind))[0])
      .locator('.read > span')
      .allTextContents();

  it('show the readings that their families declare', async () => {
    const page = await open('/', 1_440);
    const told = async (): Promise<object> =>
      Object.fromEntries(
        await Promise.all(
          ['amdgpu gpu', 'intelgpu gpu', 'netdev pf', 'netdev vf', 'nvme controller', 'nvme namespace'].map(
            async (kind) => [kind, await labelsOf(page, kind)] as const,
          ),
        ),
      );
    // Power and use of an Intel card need two reads.
    await expect.poll(told).toEqual({
      'amdgpu gpu': ['Busy', 'Memory', 'Power'],
      // The sensor that is nearest to its limit, by its name when it is not the first one.
      'intelgpu gpu': ['Busy', 'Power', expect.stringMatching(/^Temp(?:erature|\. \w+)$/)],
      'netdev pf': ['Traffic', 'Link', 'Drops'],
      'netdev vf': ['Traffic', 'Link', 'Drops'],
      'nvme controller': [expect.stringMatching(/^Temp(?:erature|\. [\w ]+)$/), 'Wear', 'Written'],
      'nvme namespace': ['Busy', 'Read', 'Written'],
    });
    for (const name of ['ens1f0', 'nvme0', 'nvme0n1']) expect(await page.getByText(name).count(), name).toBeGreaterThan(0);
  });

  it('tell a fault of a port once, and refer to it from its virtual functions', async () => {
    const page = await open('/?family=netdev', 1_280);
    const port = (await keysOf('netdev pf'))[0];
    await page.locator(`tr[data-key="${port}"] + tr.why`).getByText('Check cable').waitFor();
    const functions = await keysOf('netdev vf');
    const told = await Promise.all(
      functions.map(async (key) => [
        await rowOf(page, key).locator('td').first().textContent(),
        await page.locator(`tr[data-key="${key}"] + tr.why`).count(),
      ]),
    );
    const ofPort = told.filter(([text]) => String(text).includes(' as '));
    expect(ofPort.length).toBeGreaterThan(1);
    for (const [, reasons] of ofPort) expect(reasons, 'what to do stands at the port').toBe(0);
  });

  it('have pages without a violation that axe finds, and that a phone shows without moving them sideways', async () => {
    const page = await open('/', 375);
    const paths = await page.locator('#devices a.id').evaluateAll((links) => links.map((link) => link.getAttribute('href') ?? ''));
    const own = FAMILIES.map((family) => paths.find((path) => path.startsWith(`/devices/${family}/`)) ?? '');
    for (const path of ['/', ...own]) {
      await page.goto(demo.url + path);
      const beyond =
        '[...document.querySelectorAll("html, .scroll")].filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.className || one.tagName)';
      expect(await page.evaluate(beyond), path).toEqual([]);
      await page.evaluate(AXE);
      const { violations } = (await page.evaluate('axe.run()')) as { readonly violations: readonly { readonly id: string }[] };
      expect(
        violations.map(({ id }) => `${path} ${id}`),
        path,
      ).toEqual([]);
    }
  });
});
