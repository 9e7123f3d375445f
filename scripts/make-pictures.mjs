/**
 * Makes the pictures of the documentation from the demo: pages in Debian's chromium, and the terminal as it is drawn. `npm run pictures` builds first.
 * Each picture is small enough for a repository.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { apngOf } from './pictures/apng.mjs';
import { topScreen } from './pictures/screen.mjs';
import { svgOf } from './pictures/svg.mjs';

const MAIN = 'dist/cli/main.js';
const TO = 'docs/pictures';
const BROWSER = '/usr/bin/chromium';
const LARGEST = 200 * 1024;
/** Of the window; the picture is smaller by the scale. */
const SIZE = { width: 1_600, height: 900 };
const SCALE = 0.8;
/** A picture that is too large loses rows at its end. */
const SHORTER = 0.85;
/** Without these the browser asks its maker's servers at start. */
const QUIET = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update'];
const SICK = 'GPU-5e1f0000-0000-4000-8000-000000000001';
const FAULTS = [
  ['hot', SICK],
  ['port-down', 'mlx5_1'],
];
/** The charts of the page need readings from before the faults, and both faults count after half a minute. */
const HEALTHY_MS = 150_000;
const SICK_MS = 60_000;
/** The moving picture of the README: a fault, and what the page says of it. */
const STORY = { width: 1_280, height: 720, scale: 0.7 };
const LOST = 'GPU-5e1f0000-0000-4000-8000-000000000003';

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
  await sleep(HEALTHY_MS);
  const before = await frame('/');
  for (const words of FAULTS) spawnSync(process.execPath, [MAIN, 'demo', 'fault', ...words], { env, stdio: 'inherit' });
  await sleep(SICK_MS);
  await until('a sick GPU', async () =>
    (await (await fetch(`${url}/metrics`)).text()).includes(`device_health{device="${SICK}",state="degraded"} 1`),
  );
  mkdirSync(TO, { recursive: true });
  for (const colorScheme of ['light', 'dark']) {
    await picture(`overview-${colorScheme}`, colorScheme, '/');
    await picture(`device-${colorScheme}`, colorScheme, `/devices/nvidia/${SICK}`);
  }
  await picture('placement', 'light', '/?group=placement');
  spawnSync(process.execPath, [MAIN, 'demo', 'fault', 'clear'], { env, stdio: 'inherit' });
  const holder = await holderOf(LOST);
  spawnSync(process.execPath, [MAIN, 'demo', 'fault', 'xid79', LOST], { env, stdio: 'inherit' });
  await until('a lost GPU', async () => (await (await fetch(`${url}/metrics`)).text()).includes(`device_healthy{device="${LOST}"} 0`));
  const incidents = async () => (await (await fetch(`${url}/api/incidents`)).json()).incidents ?? [];
  await until('a record of the lost GPU', async () => (await incidents()).some(({ device }) => JSON.stringify(device).includes(LOST)));
  const { id } = (await incidents()).find(({ device }) => JSON.stringify(device).includes(LOST));
  const paths = ['/', `/devices/nvidia/${LOST}`, `/incidents/${id}`, `/pods/${holder}`];
  await picture('incident', 'light', paths[2]);
  await picture('incidents', 'light', '/incidents');
  await picture('pod', 'light', paths[3]);
  await picture('usage', 'light', '/usage');
  const story = [{ png: before, seconds: 2 }];
  for (const path of paths) story.push({ png: await frame(path), seconds: 3.5 });
  writeFileSync(join(TO, 'story.png'), apngOf(story));
  const screen = await topScreen(MAIN, env, /^ *\. .*\/env$/m.exec(welcome)?.[0]);
  writeFileSync(join(TO, 'terminal.svg'), svgOf(screen));
} finally {
  await browser.close();
  demo.kill('SIGINT');
  await new Promise((resolve) => demo.once('exit', resolve));
  rmSync(directory, { recursive: true, force: true });
}

async function picture(name, colorScheme, path) {
  const context = await browser.newContext({ viewport: SIZE, deviceScaleFactor: SCALE, colorScheme, reducedMotion: 'reduce' });
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

async function frame(path) {
  const { width, height, scale } = STORY;
  const context = await browser.newContext({
    viewport: { width, height },
    deviceScaleFactor: scale,
    colorScheme: 'light',
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  await page.goto(url + path, { waitUntil: 'load' });
  await sleep(2_500);
  const png = await page.screenshot();
  await context.close();
  return png;
}

/** `namespace/pod` of who holds a device. */
async function holderOf(device) {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith('container_device_allocation{') && one.includes(`device="${device}"`)) ?? '';
  return ['namespace', 'pod'].map((name) => new RegExp(`${name}="([^"]*)"`).exec(line)?.[1]).join('/');
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
