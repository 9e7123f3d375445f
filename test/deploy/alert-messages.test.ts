import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type RunningAlertmanager, startAlertmanager } from '../support/alertmanager.ts';
import { isInstalled } from '../support/installed.ts';
import { eventually } from '../support/until.ts';

const isThere = isInstalled('prometheus-alertmanager');
const TEMPLATE = resolve('deploy/alertmanager/device-agent.tmpl');

/** The receivers of docs/runbooks/README.md. */
function receivers(): Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>> {
  const [, block = ''] = /^```yaml\n(templates:[\s\S]*?)^```$/m.exec(readFileSync('docs/runbooks/README.md', 'utf8')) ?? [];
  const { receivers } = parse(block) as { receivers: readonly { readonly name: string }[] };
  return Object.assign({}, ...receivers.map(({ name: _, ...configs }) => configs));
}

const LOST = {
  labels: { alertname: 'DeviceUnhealthy', node: 'gpu-17', device: 'GPU-5e1f', severity: 'critical' },
  annotations: {
    summary: 'GPU 3 (NVIDIA H100, 0000:3b:00.0) on node gpu-17 is out of service: GpuFallenOffBus.',
    description: 'GpuFallenOffBus: FallenOff. The fault stays until an operator acts.',
    holder: 'Held by ml/train-0/main.',
    remedy: 'Drain and reboot the node.',
    since: '2026-11-29 09:33:39 UTC',
    record_url: 'http://agent.example/incidents/latest?device=GPU-5e1f',
    runbook_url: 'http://agent.example/docs/runbooks/devices.md#deviceunhealthy',
  },
  startsAt: '2026-11-29T09:34:44Z',
};
const HOT = {
  ...LOST,
  labels: { ...LOST.labels, alertname: 'DeviceDegraded' },
  annotations: { ...LOST.annotations, summary: 'It is hot.' },
};
const TEXT = [
  'GpuFallenOffBus: FallenOff. The fault stays until an operator acts.',
  'Who: Held by ml/train-0/main.',
  'Since: 2026-11-29 09:33:39 UTC',
  'To do: Drain and reboot the node.',
  'Record: http://agent.example/incidents/latest?device=GPU-5e1f',
  'Runbook: http://agent.example/docs/runbooks/devices.md#deviceunhealthy',
  'Evidence: kubectl -n device-agent exec $(kubectl -n device-agent get pods -l app.kubernetes.io/name=device-agent --field-selector spec.nodeName=gpu-17 -o name) -- device-agent incidents GPU-5e1f',
].join('\n');

describe.skipIf(!isThere)(`messages for people${isThere ? '' : ' (skipped: prometheus-alertmanager is not installed)'}`, () => {
  let alertmanager: RunningAlertmanager;
  const mails: string[] = [];
  const smtp = createServer((socket) => {
    let mail = '';
    let isData = false;
    socket.on('error', () => undefined);
    socket.write('220 test\r\n');
    socket.on('data', (bytes) => {
      for (const line of bytes.toString().split('\r\n').slice(0, -1)) {
        if (isData && line === '.') {
          mails.push(mail);
          isData = false;
          socket.write('250 ok\r\n');
        } else if (isData) mail += `${line}\n`;
        else if (line === 'DATA') {
          isData = true;
          socket.write('354 go on\r\n');
        } else socket.write(line === 'QUIT' ? '221 bye\r\n' : '250 ok\r\n');
      }
    });
  });
  const send = (...alerts: readonly object[]): Promise<Response> =>
    fetch(`http://${alertmanager.address}/api/v2/alerts`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(alerts),
    });

  beforeAll(async () => {
    smtp.listen(0, '127.0.0.1');
    await once(smtp, 'listening');
    const smarthost = `127.0.0.1:${(smtp.address() as AddressInfo).port}`;
    const { slack_configs, pagerduty_configs, email_configs } = receivers();
    alertmanager = await startAlertmanager(
      (url) => ({
        slack_configs: slack_configs?.map((one) => ({ ...one, api_url: `${url}slack`, api_url_file: undefined })),
        pagerduty_configs: pagerduty_configs?.map((one) => ({
          ...one,
          url: `${url}v2/enqueue`,
          routing_key: 'key',
          routing_key_file: undefined,
        })),
        email_configs: email_configs?.map((one) => ({
          ...one,
          smarthost,
          from: 'a@example.org',
          require_tls: false,
          auth_username: undefined,
        })),
      }),
      [TEMPLATE],
    );
    await eventually(async () => expect((await send(LOST)).status).toBe(200));
  });
  afterAll(async () => {
    await alertmanager?.stop();
    smtp.close();
  });

  it('reach Slack with the sentence, who is hit, what to do and a command', async () => {
    await eventually(() => expect(alertmanager.posted['/slack']).toBeDefined());
    const { attachments } = JSON.parse(alertmanager.posted['/slack']?.[0] ?? '') as {
      attachments: readonly { title: string; text: string }[];
    };
    expect(attachments[0]).toMatchObject({ title: LOST.annotations.summary, text: TEXT });
  });

  it('reach PagerDuty', async () => {
    await eventually(() => expect(alertmanager.posted['/v2/enqueue']).toBeDefined());
    const { payload } = JSON.parse(alertmanager.posted['/v2/enqueue']?.[0] ?? '') as {
      payload: { summary: string; severity: string; custom_details: Record<string, string> };
    };
    expect(payload).toMatchObject({ summary: LOST.annotations.summary, severity: 'critical' });
    expect(payload.custom_details.text).toBe(TEXT);
  });

  it('reach a mailbox', async () => {
    await eventually(() => expect(mails).not.toHaveLength(0));
    const mail = (mails[0] ?? '').replaceAll('=\n', '').replaceAll('=3D', '=');
    expect(mail).toContain(LOST.annotations.summary);
    for (const line of TEXT.split('\n')) expect(mail).toContain(line);
  });

  it('tell of a second alert of the device in one message, and of the end with its times', async () => {
    await send(LOST, HOT);
    const last = (): { title: string; text: string } => JSON.parse(alertmanager.posted['/slack']?.at(-1) ?? '').attachments[0];
    await eventually(() => expect(last().title).toBe(`${LOST.annotations.summary} (2 alerts)`));
    expect(last().text).toContain(`${HOT.annotations.summary}\n`);
    expect(last().text).toContain(`\n\n${LOST.annotations.summary}\n`);
    await send(...[LOST, HOT].map((alert) => ({ ...alert, endsAt: '2026-11-29T10:00:00Z' })));
    await eventually(() => expect(last().title).toMatch(/^Ended: /));
    expect(last().text).toContain('From 2026-11-29 09:33:39 UTC to 2026-11-29 10:00 UTC\n');
    expect(last().text).not.toContain('To do:');
  });
});
