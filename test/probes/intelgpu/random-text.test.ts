import { describe, expect, it } from 'vitest';
import type { KmsgRecord } from '../../../src/host/kernel-log/record.ts';
import { parseMask, parseMegahertz, parseReasons } from '../../../src/probes/intelgpu/gts.ts';
import { logRows } from '../../../src/probes/intelgpu/log-rows.ts';
import { parseDrmClient } from '../../../src/probes/intelgpu/processes.ts';
import { parsePriority } from '../../../src/probes/intelgpu/sriov.ts';
import { shareOf } from '../../../src/probes/kit/drm/users.ts';
import { logLineOf } from '../../../src/probes/kit/log-row.ts';
import { mutatedText, seeded } from '../../support/seeded.ts';

const MUTATIONS = 10_000;

const XE =
  'drm-driver:\txe\ndrm-client-id:\t7\ndrm-pdev:\t0000:4d:00.0\ndrm-resident-vram0:\t4096 KiB\ndrm-total-vram0:\t8192 KiB\ndrm-cycles-ccs:\t4711\ndrm-total-cycles-ccs:\t98765\ndrm-engine-capacity-ccs:\t4\n';
const I915 =
  'drm-driver:\ti915\ndrm-client-id:\t3\ndrm-pdev:\t0000:03:00.0\ndrm-resident-local0:\t512 MiB\ndrm-engine-render:\t9288864723 ns\ndrm-engine-capacity-render:\t2\n';
const LINES = [
  'xe 0000:03:00.0: [drm] *ERROR* CRITICAL: Xe has declared device 0000:03:00.0 as wedged. IOCTLs and executions are blocked.',
  'xe 0000:03:00.0: [drm] *ERROR* [Hardware Error]: Tile0 reported FATAL error 0x1',
  '[drm] Initialized xe 1.1.0 for 0000:03:00.0 on minor 0',
];

describe('random changes', () => {
  it.each([
    ['xe', XE],
    ['i915', I915],
  ])(`of the fdinfo of %s give no value that the text does not hold (${MUTATIONS} mutations)`, (_driver, text) => {
    const random = seeded(5);
    let held = 0;
    for (let n = 0; n < MUTATIONS; n += 1) {
      const broken = mutatedText(text, random);
      const client = parseDrmClient(broken);
      if (client === undefined) continue;
      held += 1;
      const { memoryBytes, engines } = client;
      if (memoryBytes !== undefined) {
        const isHeld = [1, 1_024, 1_048_576, 1_073_741_824].some((unit) => broken.includes(String(memoryBytes / unit)));
        expect(isHeld, broken).toBe(true);
      }
      for (const { busy, total, capacity } of engines.values()) {
        for (const number of [busy, ...(total === undefined ? [] : [total])]) expect(broken).toMatch(new RegExp(`0*${number}`));
        expect(capacity === 1 || broken.includes(String(capacity)), broken).toBe(true);
      }
      const before = parseDrmClient(text);
      for (const [name, work] of engines) {
        const share = shareOf(before?.engines.get(name), work, 10_000);
        if (share !== undefined) expect(share >= 0 && share <= 1, broken).toBe(true);
      }
    }
    expect(held).toBeGreaterThan(MUTATIONS / 3);
  });

  it(`of files of a card give no impossible value (${MUTATIONS} mutations of each)`, () => {
    const random = seeded(6);
    for (let n = 0; n < MUTATIONS; n += 1) {
      const clock = mutatedText('2050\n', random);
      const hertz = parseMegahertz(clock);
      if (hertz !== undefined) expect(clock).toContain(String(hertz / 1e6));
      const list = mutatedText('thermal pl1 vr_tdc\n', random);
      for (const reason of parseReasons(list) ?? []) expect(list).toContain(reason);
      const mask = mutatedText('0x140\n', random);
      if (parseMask(mask) === true) expect(mask).toMatch(/[1-9a-f]/i);
      const priority = mutatedText('low [normal] high\n', random);
      const parsed = parsePriority(priority);
      if (parsed !== undefined) expect(priority).toContain(`[${parsed}]`);
    }
  });

  it(`of lines of the kernel log name no card that the line does not name (${MUTATIONS} mutations)`, () => {
    const random = seeded(8);
    let told = 0;
    for (let n = 0; n < MUTATIONS; n += 1) {
      const line = mutatedText(LINES[random(LINES.length)] as string, random);
      const parsed = logLineOf(logRows, ofCard(line));
      if (parsed === undefined) continue;
      told += 1;
      expect(line).toContain(parsed.address);
      if (parsed.row.name === 'wedged') expect(line).toContain('wedged');
      if (parsed.row.name === 'fatal') expect(line.toLowerCase()).toContain('fatal');
    }
    expect(told).toBeGreaterThan(MUTATIONS / 10);
  });
});

describe('lines of the kernel log', () => {
  it.each([
    ['xe 0000:03:00.0: [drm] device wedged, needs recovery', 'wedged'],
    ['i915 0000:00:02.0: [drm] *ERROR* GT0: Failed to initialize GPU, declaring it wedged!', 'wedged'],
    ['xe 0000:03:00.0: [drm] device wedged, but recovered through reset', 'recovered'],
    ['xe 0000:03:00.0: [drm] device wedged, but no recovery needed', 'recovered'],
    ['xe 0000:03:00.0: [drm] *ERROR* [Hardware Error]: Tile0 reported NONFATAL error 0x10', 'nonfatal'],
    ['xe 0000:03:00.0: [drm] *ERROR* [Hardware Error]: TILE1 reported SoC fabric CORRECTABLE error, bit[3] is set', 'correctable'],
    ['xe 0000:03:00.0: [drm] *ERROR* [Hardware Error]: Tile0 reported DEV_ERR_STAT_FATAL blank!', undefined],
    ['xe 0000:03:00.0: [drm] *ERROR* [Hardware Error]: Tile0 reported uncorrectable error', undefined],
    ['amdgpu 0000:03:00.0: [drm] device wedged, needs recovery', undefined],
    ['[drm] Initialized i915 1.6.0 for 0000:00:02.0 on minor 0', 'loaded'],
    ['[drm] Initialized i915 1.6.0 20230929 for 0000:00:02.0 on minor 0', 'loaded'],
    ['[drm] Initialized amdgpu 3.61.0 for 0000:00:02.0 on minor 0', undefined],
  ])('%s: %s', (line, event) => {
    expect(logLineOf(logRows, ofCard(line))?.row.name).toBe(event);
  });

  it.each([
    ['of no device, as the kernel writes about processes', ({ origin, text }) => ({ origin, text })],
    ['of another device', (record) => ({ ...record, device: '+pci:0000:04:00.0' })],
    ['of a device of another bus', (record) => ({ ...record, subsystem: 'usb' })],
    ['of a program', (record) => ({ ...record, origin: 'program' })],
  ] satisfies readonly [string, (record: CardRecord) => CardRecord][])('say nothing about a card when the record is %s', (_, changed) => {
    for (const line of LINES.filter((text) => text.startsWith('xe'))) {
      expect(logLineOf(logRows, ofCard(line))).toBeDefined();
      expect(logLineOf(logRows, changed(ofCard(line)))).toBeUndefined();
    }
  });
});

type CardRecord = Pick<KmsgRecord, 'origin' | 'text' | 'subsystem' | 'device'>;

/** The record of a line that a driver printed about the card that it names first. */
function ofCard(text: string): CardRecord {
  const [address = ''] = /[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]/.exec(text) ?? [];
  return { origin: 'kernel', text, subsystem: 'pci', device: `+pci:${address}` };
}
