import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compare, hashSync } from 'bcryptjs';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPEN_ACCESS } from '../../src/server/access/access.ts';
import { start } from '../server/start.ts';
import { hasBrowser, newPage, startBrowser, unlessBrowser } from '../support/browser.ts';
import { PROGRAM } from '../support/program.ts';
import { type ServedAgent, startAgent } from '../support/serve.ts';
import { until } from '../support/until.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PAGES = [
  '/',
  '/?group=pod',
  '/?group=placement',
  '/devices/infiniband/mlx5_0',
  '/devices/fpga/0010%3A21%3A00.0',
  '/pods/training/llm-0-0',
  '/agent',
  '/incidents',
  '/usage',
  '/usage?by=namespace&since=1h',
  '/conditions',
  '/docs/page.md',
  '/docs/runbooks/devices.md?node=n1&device=mlx5_0',
  '/devices/infiniband/no-such-device',
  '/pods/training/nobody',
  '/incidents/none',
  '/nowhere',
  '/?sort=nothing',
  '/usage?since=x',
];
/** What the pages promise. Some of these rules are off where nobody asks for them. */
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** Links of less than 24 pixels. The table has those of a map with many parts again. */
const LOW_LINKS = `[...document.querySelectorAll('a:not(.many *), button, summary')]
  .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 24 && !one.matches('.skip')).map((one) => one.outerHTML)`;

const DEVICE_PAGES = PAGES.filter((name) => /^\/devices\/.*\d$/.test(name));
/** Texts of one drawing that lie over each other, by more than the space between lines. */
const COVERED = `[...document.querySelectorAll('svg.plot')].flatMap((plot) => {
  const texts = [...plot.querySelectorAll('text')].map((one) => ({ name: one.textContent, box: one.getBoundingClientRect() }));
  return texts.flatMap(({ name, box }, at) =>
    texts.slice(at + 1)
      .filter((one) => one.box.left < box.right - 1 && one.box.right > box.left + 1 && one.box.top < box.bottom - 3 && one.box.bottom > box.top + 3)
      .map((one) => [plot.ariaLabel, name, one.name]));
})`;

describe.skipIf(!hasBrowser)(`the page in a real browser${unlessBrowser}`, () => {
  let directory = '';
  let demo: ServedAgent;
  let browser: Browser;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'device-agent-page-'));
    const flags = ['--sim.devices=nvidia=4', '--sim.pods=8', '--sim.pod-change=0'];
    demo = await startAgent([process.execPath, PROGRAM, 'demo', ...flags], { env: { ...process.env, TMPDIR: directory } });
    await demo.until('all three families', (page) =>
      ['nvidia', 'infiniband', 'fpga'].every((family) => page.includes(`family="${family}"`)),
    );
    // A page that is opened before there are two readings gets its charts only when it is loaded again.
    const charts = async (path: string): Promise<number> => (await (await fetch(demo.url + path)).text()).split('<svg').length - 1;
    for (const path of DEVICE_PAGES) await until(async () => (await charts(path)) > 2, `${path} has charts`);
    browser = await startBrowser();
  });

  afterAll(async () => {
    await browser?.close();
    expect(await demo?.stop('SIGINT')).toBe(0);
    rmSync(directory, { recursive: true, force: true });
  });

  /** A page whose complaints are kept: whatever the content security policy blocks is one. */
  async function open(path: string, options: BrowserContextOptions = {}): Promise<{ page: Page; complaints: string[] }> {
    const page = await newPage(browser, { viewport: { width: 1_280, height: 900 }, ...options });
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    const response = await page.goto(demo.url + path);
    expect(response?.headers()['content-security-policy']).not.toContain('unsafe');
    return { page, complaints };
  }

  const live = (page: Page) => page.locator('#live[data-state=live]').waitFor();
  const ids = (page: Page) => page.locator('#devices a.id').allTextContents();
  /** Files of the port as the kernel has them. */
  const portFile = (name: string): string => {
    const [root = ''] = readdirSync(directory).filter((entry) => entry.startsWith('device-agent-node-'));
    return join(directory, root, 'sys/class/infiniband/mlx5_1/ports/1', name);
  };

  it('shows devices, holders and health without any script, and leads to each device', async () => {
    const { page, complaints } = await open('/', { javaScriptEnabled: false });
    for (const text of ['mlx5_0', 'NVIDIA H100', 'u250', 'training', 'Healthy', 'by parts'])
      expect(await page.getByText(text).count(), text).toBeGreaterThan(0);
    expect(Number(await page.evaluate('document.documentElement.scrollWidth')), 'nothing sticks out').toBeLessThanOrEqual(1_280);
    await page.getByLabel('Filter', { exact: true }).fill('family:infiniband');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.waitForURL(/text=family%3Ainfiniband/);
    expect((await ids(page)).every((id) => id.startsWith('mlx5_'))).toBe(true);
    await page.getByRole('link', { name: 'mlx5_0', exact: true }).click();
    await page.waitForURL(/\/devices\/infiniband\/mlx5_0$/);
    expect(await page.locator('svg[data-from]').count(), 'charts are drawn by the server').toBeGreaterThan(1);
    await page.getByText('Facts and other names').click();
    expect(await page.getByText('0000:10:00.0', { exact: true }).count()).toBeGreaterThan(0);
    expect(complaints).toEqual([]);
  });

  it('shows a fault and its end, without being loaded again', async () => {
    const { page, complaints } = await open('/');
    await live(page);
    await page.evaluate('window.isSamePage = true');
    const row = page.locator('tr[data-key="infiniband/mlx5_1"], tr[data-key="infiniband/mlx5_1"] + tr.why');
    expect((await row.allTextContents()).join(' ')).not.toContain('PortDown');
    const files = { state: '1: DOWN\n', phys_state: '2: Polling\n' };
    const before = Object.keys(files).map((name) => [portFile(name), readFileSync(portFile(name), 'utf8')] as const);
    for (const [name, text] of Object.entries(files)) writeFileSync(portFile(name), text);
    await row.getByText('PortDown').first().waitFor();
    expect((await row.allTextContents()).join(' ')).toContain('Link');
    expect((await row.allTextContents()).join(' ')).toContain('down');
    for (const [path, text] of before) writeFileSync(path, text);
    await row.getByText('PortDown').first().waitFor({ state: 'detached' });
    expect(await page.evaluate('window.isSamePage')).toBe(true);
    expect(complaints).toEqual([]);
  });

  it('filters and sorts at once, and has the view in the address', async () => {
    const { page, complaints } = await open('/?sort=name');
    await live(page);
    await page.locator('select[name=group]').focus();
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent'), 'a button that is not needed is no stop').not.toBe('Show');
    const all = await ids(page);
    expect(all.indexOf('GPU 0')).toBeLessThan(all.indexOf('mlx5_0'));
    await page.getByLabel('Filter', { exact: true }).fill('training gpu');
    await expect.poll(async () => (await ids(page)).every((id) => /^GPU \d$/.test(id))).toBe(true);
    expect(page.url()).toContain('?text=training+gpu&sort=name');
    const shown = await ids(page);
    expect(shown.length).toBeGreaterThan(0);
    expect(shown.length).toBeLessThan(all.length);
    await page.reload();
    expect(await ids(page), 'the server has the same view').toEqual(shown);
    await page.goto(demo.url);
    await live(page);
    await page.getByRole('columnheader', { name: 'Device' }).getByRole('link').click();
    await expect.poll(() => ids(page)).toEqual(all);
    await page.locator('select[name=group]').selectOption('pod');
    await page.locator('tr.group', { hasText: 'training/llm-0-0' }).waitFor();
    expect(await page.locator('tr.group').allTextContents()).toContain('Free');
    expect(complaints).toEqual([]);
  });

  it('is used by keys alone', async () => {
    const { page } = await open('/');
    await live(page);
    await page.keyboard.press('?');
    expect(await page.getByRole('dialog', { name: 'Keys' }).getByRole('term').allTextContents()).toContain('Escape');
    await page.keyboard.press('/');
    await page.keyboard.press('Escape');
    expect(await page.getByRole('dialog').count()).toBe(0);
    await page.keyboard.press('/');
    expect(await page.evaluate('document.activeElement.id')).toBe('filter');
    await page.keyboard.type('mlx5');
    await expect.poll(async () => (await ids(page)).every((id) => id.startsWith('mlx5'))).toBe(true);
    await page.keyboard.press('Escape');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('j');
    const [, second] = await ids(page);
    const focused = async () => page.evaluate('document.activeElement.textContent');
    expect(await focused()).toBe(second);
    const now = await page.locator('#live').textContent();
    await expect.poll(() => page.locator('#live').textContent()).not.toBe(now);
    expect(await focused(), 'a change leaves the focus where it is').toBe(second);
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/devices\/infiniband\/mlx5_/);
    expect(await page.locator('h1').textContent()).toContain(second);
  });

  it('draws charts of a device with axes, and keeps them and the verdict live', async () => {
    const { page, complaints } = await open('/devices/infiniband/mlx5_0');
    await live(page);
    const plot = page.locator('figure svg[data-metric]').first();
    const value = page.locator('figure .legend b').first();
    const before = await plot.getAttribute('data-until');
    await expect.poll(() => plot.getAttribute('data-until')).not.toBe(before);
    const present = await value.textContent();
    const at = page.locator('figure .at').first();
    expect(await at.textContent(), 'how far the chart reaches back').toMatch(/^last \d/);
    await plot.hover({ position: { x: 5, y: 50 } });
    expect(await at.textContent()).toMatch(/^\d\d:\d\d:\d\d UTC$/);
    await page.mouse.move(0, 0);
    expect(await at.textContent()).toMatch(/^last \d/);
    expect(await value.textContent()).toMatch(present === 'unknown' ? /./ : /\d/);
    const now = page.locator('[data-part=numbers] dd').first();
    expect(await now.textContent()).toMatch(/\d/);
    expect(complaints).toEqual([]);
  });

  it.each([390, 1440])('covers no text of a chart by another one, %i pixels wide', async (width) => {
    for (const path of DEVICE_PAGES) {
      const { page } = await open(path, { viewport: { width, height: 900 } });
      await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true");
      expect(await page.locator('svg.plot text').count()).toBeGreaterThan(5);
      expect(await page.evaluate(COVERED), path).toEqual([]);
    }
  });

  /** The page of an incident is there after a fault. */
  async function allPages(): Promise<readonly string[]> {
    const incident = async () =>
      ((await (await fetch(`${demo.url}/api/incidents`)).json()) as { readonly incidents: readonly { readonly id: string }[] }).incidents[0]
        ?.id;
    if ((await incident()) === undefined) {
      const env = { PATH: process.env.PATH, TMPDIR: directory };
      spawnSync(process.execPath, [PROGRAM, 'demo', 'fault', 'xid79', 'GPU-5e1f0000-0000-4000-8000-000000000002'], { env });
    }
    await until(async () => (await incident()) !== undefined, 'a fault has a record');
    return [...PAGES, `/incidents/${await incident()}`, '/devices/nvidia/GPU-5e1f0000-0000-4000-8000-000000000002'];
  }

  async function violationsOf(page: Page, path: string): Promise<readonly string[]> {
    await page.evaluate(AXE);
    const { violations } = (await page.evaluate(`axe.run({ runOnly: ${JSON.stringify(RULES)} })`)) as {
      readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
    };
    return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${path} ${id}: ${node.html}`));
  }

  it.each([
    ['light', 1_440],
    ['dark', 1_440],
    ['light', 390],
    ['dark', 390],
  ] as const)('has no violation that axe finds, %s, %i pixels wide', async (colorScheme, width) => {
    const { page } = await open('/', { colorScheme, bypassCSP: true, viewport: { width, height: 900 } });
    for (const path of await allPages()) {
      await page.goto(demo.url + path);
      expect(await violationsOf(page, path)).toEqual([]);
      expect(Number(await page.evaluate('document.documentElement.scrollWidth')), `${path} sticks out`).toBeLessThanOrEqual(width);
      if (width === 390) expect(await page.evaluate(LOW_LINKS), `${path} has links that a thumb misses`).toEqual([]);
    }
    const back = await page.evaluate('getComputedStyle(document.body).backgroundColor');
    expect(back).toBe(colorScheme === 'dark' ? 'rgb(12, 16, 22)' : 'rgb(245, 246, 248)');
  });

  it.each(['light', 'dark'] as const)('tells in the same frame that somebody is not let in, %s', async (colorScheme) => {
    const users = new Map([['reader', hashSync('r', 4)]]);
    const access = { current: { ...OPEN_ACCESS, users }, subscribe: () => undefined };
    const closed = await start({ parts: { access, comparePassword: compare } });
    const page = await newPage(browser, { colorScheme, bypassCSP: true, viewport: { width: 390, height: 900 } });
    const look = async (status: number): Promise<void> => {
      expect(await violationsOf(page, String(status))).toEqual([]);
      expect(await page.locator('small').textContent()).toContain(String(status));
      expect(Number(await page.evaluate('document.documentElement.scrollWidth'))).toBeLessThanOrEqual(390);
      const back = await page.evaluate('getComputedStyle(document.body).backgroundColor');
      expect(back).toBe(colorScheme === 'dark' ? 'rgb(12, 16, 22)' : 'rgb(245, 246, 248)');
    };
    // A browser without a head ends at the question for a password; one with a head shows this page when its user gives none.
    await page.setContent(await (await fetch(closed.url, { headers: { accept: 'text/html' } })).text());
    await look(401);
    const authorization = `Basic ${Buffer.from('reader:r').toString('base64')}`;
    await page.setExtraHTTPHeaders({ authorization });
    await page.goto(`${closed.url}/nothing`);
    await look(404);
    const strict = await newPage(browser, { colorScheme, extraHTTPHeaders: { authorization } });
    await strict.goto(`${closed.url}/nothing`);
    expect(await strict.evaluate('getComputedStyle(document.body).margin'), 'its policy allows its style').toBe('0px');
    await closed.server.close();
  });

  it('is read on a phone without moving it sideways', async () => {
    const { page, complaints } = await open('/', { viewport: { width: 375, height: 800 } });
    const cut = (selector: string, rule: string): string =>
      `[...document.querySelectorAll("${selector}")].filter((one) => ${rule}).map((one) => one.outerHTML)`;
    const isBeyond = 'one.scrollWidth > one.clientWidth';
    const isInPlot = 'one.getBoundingClientRect().right > one.closest(".draw").querySelector("[role=img]").getBoundingClientRect().left';
    for (const path of await allPages()) {
      await page.goto(demo.url + path);
      expect(await page.evaluate(cut('html, .scroll, .stat dd', isBeyond)), path).toEqual([]);
      expect(await page.evaluate(cut('.draw > svg:first-child text', isInPlot)), path).toEqual([]);
      expect(await page.evaluate(cut('time', 'one.getClientRects().length > 1')), `${path} breaks a time`).toEqual([]);
    }
    expect(
      complaints.filter((text) => !/40[04]/.test(text)),
      'an error page answers with its status',
    ).toEqual([]);
  });

  it('keeps the focus when the first live rows take the place of those of the server', async () => {
    const page = await newPage(browser);
    let begin = (): void => {};
    const isFocused = new Promise<void>((resolve) => {
      begin = resolve;
    });
    await page.route('**/api/v1/devices/watch*', async (route) => {
      await isFocused;
      await route.continue();
    });
    await page.goto(demo.url);
    const server = await page.locator('#devices a.id').first().elementHandle();
    await server?.focus();
    const path = await server?.getAttribute('href');
    begin();
    await expect.poll(() => server?.evaluate((one) => one.isConnected)).toBe(false);
    expect(await page.evaluate('document.activeElement.getAttribute("href")')).toBe(path);
  });

  it('has four stops at most before the first device, a visible focus, and one command to copy', async () => {
    const { page } = await open('/');
    await live(page);
    const focused = async () => page.evaluate('document.activeElement.textContent');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('Skip to devices');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe((await ids(page))[0]);
    expect(await page.evaluate('getComputedStyle(document.activeElement).outlineWidth')).toBe('2px');
    await page.locator('.tile > a').first().focus();
    await page.keyboard.press('ArrowRight');
    expect(
      await page
        .locator('.tile > a')
        .nth(1)
        .evaluate((one) => one.matches(':focus')),
    ).toBe(true);
  });

  it('says so when the agent is gone, and keeps what it showed', async () => {
    const other = await startAgent([process.execPath, PROGRAM, 'demo', '--sim.devices=nvidia=1']);
    const page = await newPage(browser);
    await other.until('devices of all families', (text) =>
      ['nvidia', 'infiniband', 'fpga'].every((family) => new RegExp(`^device_info\\{.*family="${family}"`, 'm').test(text)),
    );
    await page.goto(other.url);
    await live(page);
    const shown = await ids(page);
    await other.stop('SIGINT');
    await page.locator('#live[data-state=lost]').waitFor();
    expect(await page.locator('#live').textContent()).toContain('No answer since ');
    expect(await page.evaluate(`getComputedStyle(document.querySelector('.say h1'), '::before').content`)).toBe('"Last known: "');
    expect(await ids(page)).toEqual(shown);
  });
});
