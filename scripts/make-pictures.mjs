/**
 * Makes the pictures of the README from the demo: pages in Debian's chromium, and the terminal as it is drawn. `npm run pictures` builds first.
 * Each picture is small enough for a repository.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { listScreen, topScreen } from './pictures/screen.mjs';
import { svgOf } from './pictures/svg.mjs';

const MAIN = 'dist/cli/main.js';
const TO = 'docs/pictures';
const BROWSER = '/usr/bin/chromium';
const LARGEST = 200 * 1024;
const SIZE = { width: 1_280, height: 720 };
/** A picture that is too large loses rows at its end. */
const SHORTER = 0.85;
/** Without these the browser asks its maker's servers at start. */
const QUIET = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update'];
const SICK = 'GPU-5e1f0000-0000-4000-8000-000000000001';
const FAULTS = [
  ['xid79', '0008:01:00.0'],
  ['hot', '0008:03:00.0'],
  ['errors', 'mlx5_2'],
];
/** The charts of the page need readings, and a hot GPU counts after half a minute. */
const HISTORY_MS = 75_000;

if (!existsSync(BROWSER)) throw new Error(`${BROWSER} is missing: install the package chromium`);
const directory = mkdtempSync(join(tmpdir(), 'pictures-'));
const port = await freePort();
const address = `127.0.0.1:${port}`;
const url = `http://${address}`;
const env = { ...process.env, TMPDIR: directory, DEVICE_AGENT_WEB_LISTEN_ADDRESS: address };
const demo = spawn(process.execPath, [MAIN, 'demo', '--sim.story=off'], { env, stdio: ['ignore', 'pipe', 'ignore'] });
let welcome = '';
demo.stdout.setEncoding('utf8').on('data', (text) => {
  welcome += text;
});
const browser = await chromium.launch({ executablePath: BROWSER, args: QUIET });
try {
  await until('a page with holders', async () => (await (await fetch(`${url}/metrics`)).text()).includes('container_device_allocation{'));
  await sleep(HISTORY_MS / 2);
  for (const words of FAULTS) spawnSync(process.execPath, [MAIN, 'demo', 'fault', ...words], { env, stdio: 'inherit' });
  await until('a sick GPU', async () => (await (await fetch(`${url}/metrics`)).text()).includes(`device_healthy{device="${SICK}"} 0`));
  await sleep(HISTORY_MS / 2);
  mkdirSync(TO, { recursive: true });
  for (const colorScheme of ['light', 'dark']) {
    await picture(`overview-${colorScheme}`, colorScheme, '/');
    await picture(`device-${colorScheme}`, colorScheme, `/devices/nvidia/${SICK}`);
  }
  const screen = (await topScreen(MAIN, env)) ?? listScreen(MAIN, welcome);
  writeFileSync(join(TO, 'terminal.svg'), svgOf(screen));
} finally {
  await browser.close();
  demo.kill('SIGINT');
  await new Promise((resolve) => demo.once('exit', resolve));
  rmSync(directory, { recursive: true, force: true });
}

async function picture(name, colorScheme, path) {
  const context = await browser.newContext({ viewport: SIZE, colorScheme, reducedMotion: 'reduce' });
  const page = await context.newPage();
  // A live page never stops loading.
  await page.goto(url + path, { waitUntil: 'load' });
  await sleep(2_500);
  let { height } = SIZE;
  let png = await page.screenshot({ clip: { x: 0, y: 0, width: SIZE.width, height } });
  while (png.length > LARGEST) {
    height = Math.floor(height * SHORTER);
    png = await page.screenshot({ clip: { x: 0, y: 0, width: SIZE.width, height } });
  }
  writeFileSync(join(TO, `${name}.png`), png);
  await context.close();
}

async function until(what, condition) {
  const endMs = Date.now() + 60_000;
  for (;;) {
    if (await condition().catch(() => false)) return;
    if (Date.now() > endMs) throw new Error(`never seen: ${what}`);
    await sleep(500);
  }
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port: found } = server.address();
      server.close(() => resolve(found));
    });
  });
}
