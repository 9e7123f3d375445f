import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { unless } from './skipped.ts';
import { DEADLINE_MS } from './until.ts';

const PATH = '/usr/bin/chromium';
export const hasBrowser = existsSync(PATH);
/** What the title of a group of tests says where there is no browser. */
export const unlessBrowser = unless(hasBrowser, `${PATH} is not there`);
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

export const startBrowser = (): Promise<Browser> => chromium.launch({ executablePath: PATH, args: QUIET });

/** A page of a new session, whose waits have the deadline of all tests. */
export async function newPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(DEADLINE_MS);
  return context.newPage();
}
