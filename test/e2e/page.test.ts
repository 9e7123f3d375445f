import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { serve } from '../support/serve.ts';

const BROWSER = '/usr/bin/chromium';
const isThere = existsSync(BROWSER);
/** Without these the browser asks its maker's servers at start. */
const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

describe.skipIf(!isThere)(`the page in a real browser${isThere ? '' : ` (skipped: ${BROWSER} is not there)`}`, () => {
  it('shows devices, holders and health without any script, and leads to each device', async () => {
    const demo = await serve(['--refresh.interval=1s', '--sim.gpus=4', '--sim.pods=8'], 'demo');
    await demo.until('all three families', (page) =>
      ['nvidia', 'infiniband', 'fpga'].every((family) => page.includes(`family="${family}"`)),
    );
    const browser = await chromium.launch({ executablePath: BROWSER, args: QUIET });
    try {
      const context = await browser.newContext({ javaScriptEnabled: false, viewport: { width: 1_280, height: 900 } });
      const page = await context.newPage();
      const complaints: string[] = [];
      page.on('console', (message) => complaints.push(message.text()));
      page.on('requestfailed', (request) => complaints.push(request.url()));
      await page.goto(demo.url);
      const rows = page.locator('tr', { has: page.getByRole('link') });
      expect(await rows.count()).toBeGreaterThanOrEqual(10);
      for (const text of ['mlx5_0', 'NVIDIA H100', 'u250', 'training', 'Healthy'])
        expect(await page.getByText(text).count(), text).toBeGreaterThan(0);
      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect(Number(width), 'nothing sticks out at the side').toBeLessThanOrEqual(1_280);
      await page.getByRole('link', { name: 'mlx5_0', exact: true }).click();
      await page.waitForURL(/\/devices\/infiniband\/mlx5_0$/);
      expect(await page.getByText('0000:10:00.0').count()).toBeGreaterThan(0);
      await page.setViewportSize({ width: 375, height: 800 });
      for (const path of ['', '/devices/infiniband/mlx5_0', '/devices/fpga/0010%3A21%3A00.0']) {
        await page.goto(demo.url + path);
        const beyond = '[...document.querySelectorAll("html, .scroll")].filter((one) => one.scrollWidth > one.clientWidth).length';
        expect(await page.evaluate(beyond), `nothing of "${path}" is to be looked for at the side on a phone`).toBe(0);
      }
      expect(complaints, 'the content security policy blocks nothing of the page').toEqual([]);
    } finally {
      await browser.close();
      expect(await demo.stop('SIGINT')).toBe(0);
    }
  }, 90_000);
});
