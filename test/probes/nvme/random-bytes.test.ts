import { describe, expect, it } from 'vitest';
import { parseCount, parseFlag } from '../../../src/probes/kit/text.ts';
import { parseDiskStat } from '../../../src/probes/nvme/namespace.ts';
import { decodeSmartLog, LOG_FIELDS, parseSmartJson, smartReadings } from '../../../src/probes/nvme/smart-log.ts';
import { type Choose, seeded } from '../../support/seeded.ts';

const MUTATIONS = 10_000;

const JSON_LOG = `{ "critical_warning": { "value": 5, "spare": 1 }, "temperature": 310, "avail_spare": "97", "spare_thresh": 10.0,
  "percent_used": 3, "data_units_read": 9898518, "media_errors": "18446744073709551617", "power_on_hours": 4974.0 }`;

function mutatedText(text: string, random: Choose): string {
  const letters = [...text];
  for (let n = random(6); n >= 0; n -= 1) {
    const at = random(letters.length + 1);
    const letter = ['\0', '\n', ':', ' ', '-', '"', '{', '9', '99999999999999999999', 'é', '1e9', '', '.5', 'null'][random(14)] as string;
    letters.splice(at, random(3), letter);
  }
  return letters.join('');
}

describe('random bytes', () => {
  it(`in SMART logs give no value that the bytes do not hold (${MUTATIONS} mutations)`, () => {
    const random = seeded(5);
    let decoded = 0;
    for (let n = 0; n < MUTATIONS; n += 1) {
      const fill = [0x00, 0xff, undefined][random(3)];
      let bytes = Buffer.from(Array.from({ length: 512 }, () => fill ?? random(256)));
      for (let change = random(8); change > 0; change -= 1) bytes[random(240)] = random(256);
      if (random(20) === 0) bytes = bytes.subarray(0, random(513));
      const log = decodeSmartLog(bytes);
      if (log === undefined) {
        expect(bytes.length < 512 || bytes.every((byte) => byte === bytes[0])).toBe(true);
        continue;
      }
      decoded += 1;
      for (const { field, offset, bytes: width } of LOG_FIELDS) {
        const held = BigInt(
          `0x${Buffer.from(bytes.subarray(offset, offset + width))
            .reverse()
            .toString('hex')}`,
        );
        if ((log[field] ?? held) !== held) expect.fail(`mutation ${n}: ${field} is ${log[field]}, and the bytes hold ${held}`);
      }
      if ((log.avail_spare ?? 0n) > 100n) expect.fail(`mutation ${n}: spare ${log.avail_spare}`);
      for (const { value } of smartReadings(log)) if (value < 0 || Number.isNaN(value)) expect.fail(`mutation ${n}`);
    }
    expect(decoded).toBeGreaterThan(MUTATIONS / 2);
  });

  it(`in JSON give no number that the text does not hold (${MUTATIONS} mutations)`, () => {
    const random = seeded(6);
    let parsed = 0;
    for (let n = 0; n < MUTATIONS; n += 1) {
      const text = mutatedText(JSON_LOG, random);
      const log = parseSmartJson(text);
      if (log !== undefined) parsed += 1;
      for (const [name, value] of Object.entries(log ?? {})) {
        if (!text.includes(String(value))) expect.fail(`mutation ${n}: ${name} is ${value} in ${text}`);
      }
    }
    expect(parsed).toBeGreaterThan(500);
  });

  it.each(['[]', 'null', '5', '"x"', '{"critical_warning":{"value":{"value":1}}}', '{"temperature":true}', '{"temperature":[310]}', ''])(
    'of JSON %s is no log',
    (text) => {
      expect(parseSmartJson(text)).toBeUndefined();
    },
  );

  it(`in stat give no number that the text does not hold (${MUTATIONS} mutations)`, () => {
    const random = seeded(7);
    let parsed = 0;
    for (let n = 0; n < MUTATIONS; n += 1) {
      const text = mutatedText('61050 16774 4202091 25036 83902 46848 2302530 32404 3 20551 64225 46 7 5751632 80 3461 6703', random);
      const stat = parseDiskStat(text);
      if (stat === undefined) continue;
      parsed += 1;
      for (const number of stat)
        if (!new RegExp(`(?<!\\d)0*${BigInt(number)}(?!\\d)`).test(text)) expect.fail(`mutation ${n}: ${number} in ${text}`);
    }
    expect(parsed).toBeGreaterThan(500);
  });

  it(`in counts and flags give no number that the text does not hold (${MUTATIONS} mutations)`, () => {
    const random = seeded(8);
    for (let n = 0; n < MUTATIONS; n += 1) {
      const text = mutatedText(['3907029168\n', '1\n', '0\n'][random(3)] as string, random);
      const count = parseCount(text);
      if (count !== undefined && !text.includes(String(count))) expect.fail(`mutation ${n}: ${count} in ${JSON.stringify(text)}`);
      const flag = parseFlag(text);
      if (flag !== undefined && !text.includes(flag ? '1' : '0')) expect.fail(`mutation ${n}: ${flag} in ${JSON.stringify(text)}`);
    }
  });
});
