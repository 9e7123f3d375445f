import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import express from 'express';
import { afterAll, expect, it } from 'vitest';
import { documentHtml } from '../../../scripts/document-html.mjs';
import { createDocuments } from '../../../src/server/pages/documents.ts';

const folder = mkdtempSync(join(tmpdir(), 'device-agent-documents-'));
mkdirSync(join(folder, 'runbooks'));
const source = readFileSync('docs/runbooks/devices.md', 'utf8');
writeFileSync(join(folder, 'runbooks/devices.md'), source);
writeFileSync(join(folder, 'runbooks/devices.html'), documentHtml(source));
const documents = createDocuments((_, response, { body }) => Promise.resolve(void response.send(body.text)), pathToFileURL(`${folder}/`));
const server = express().use(documents).listen(0, '127.0.0.1');
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

async function page(query: string, accept = 'text/html'): Promise<string> {
  const { port } = server.address() as { port: number };
  return await (await fetch(`http://127.0.0.1:${port}/docs/runbooks/devices.md${query}`, { headers: { accept } })).text();
}
const words = (markup: string): string =>
  markup
    .replace(/<[^>]*>/g, '')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
    .replaceAll('&#39;', "'");

it('puts the names of the link into commands and queries, and passes them on to other pages', async () => {
  const found = await page('?node=gpu-7&device=0000:3b:00.0');
  const text = words(found);
  expect(text).toContain('--field-selector spec.nodeName=gpu-7 -o name) -- device-agent health -o text --device=0000:3b:00.0');
  expect(text).toContain('device_health_condition{node="gpu-7",device="0000:3b:00.0"}');
  expect(text).not.toMatch(/\$(?:NODE|DEVICE|POD)\b|mlx5_0/);
  expect(found).toContain('href="README.md?node=gpu-7&amp;device=0000%3A3b%3A00.0#remedies"');
});

it('takes the pod of the agent from the link, where it has one', async () => {
  expect(words(await page('?node=gpu-7&pod=pod/device-agent-x'))).toContain('exec pod/device-agent-x -- device-agent health');
});

it.each([
  'node=x;reboot',
  'node=$(reboot)',
  'node=`reboot`',
  'node=a%20b',
  'node=a%0Areboot',
  'node=--kubeconfig',
  'node="x"',
  "node='x'",
  'node=<script>',
  'node=a&node=b',
  `node=${'x'.repeat(300)}`,
])('shows the example instead of what is no name: %s', async (query) => {
  const shown = await page(`?${query}`);
  expect(words(shown)).toContain('spec.nodeName=$NODE');
  expect(shown).toBe(await page(''));
});

it('shows commands, tables, anchors and links as elements, and the text to every other client', async () => {
  const found = await page('');
  for (const part of ['<div class="cmd"><code>', '<table>', '<h2 id="deviceunhealthy">', '<a href="../health.md">'])
    expect(found).toContain(part);
  expect(await page('', 'text/plain')).toBe(source);
});

it('renders no markup of a page, no script in a link and no picture of another server', () => {
  const markup = documentHtml('<script>x</script>\n\n[a](javascript:x) ![b](http://example.org/x.png) <!-- c -->\n\n<!-- d -->');
  expect(markup).not.toMatch(/<script|<a|<img|<!--/);
});
