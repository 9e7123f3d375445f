// The real probes on trees of files, of which each input changes some.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../dist/host/clock.js';
import { createHost } from '../../../dist/host/host.js';
import { defaultValues } from '../../../dist/model/options.js';
import { family as fpgaFamily } from '../../../dist/probes/fpga/index.js';
import { family as infinibandFamily } from '../../../dist/probes/infiniband/index.js';
import { simulatedFamilies } from '../../../dist/sim/families.js';
import { TreeWriter } from '../../../dist/sim/tree-writer.js';
import { content, mutate, pick } from '../random.mjs';

/** Bounds of what a counter of the kernel can hold. Bytes are counted in words of four bytes. */
const MOST = 4n * 2n ** 64n;

function tree(family, counts, checkOf) {
  const root = mkdtempSync(join(tmpdir(), 'device-agent-fuzz-'));
  process.on('exit', () => rmSync(root, { recursive: true, force: true }));
  const hardware = simulatedFamilies.find(({ name }) => name === family.name).simulation.simulate({ counts, elapsedMs: 60_000 });
  new TreeWriter(root).apply(hardware);
  const roots = { sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') };
  const probe = family.createProbe(createHost(roots, systemClock), { ...defaultValues(family.options), ...hardware.options });
  const paths = Object.keys(hardware.files);
  const specs = new Map(family.metrics.map((spec) => [spec.name, spec]));
  const conditions = new Set(family.conditions.map(({ type }) => type));
  const codes = new Set(family.problems.map(({ code }) => code));
  return {
    make(choose) {
      const changed = Array.from({ length: 1 + choose(5) }, () => pick(choose, paths));
      return JSON.stringify(
        Object.fromEntries(changed.map((path) => [path, choose(2) === 0 ? content(choose) : mutate(choose, hardware.files[path])])),
      );
    },
    async check(input) {
      const changed = JSON.parse(input);
      for (const [path, text] of Object.entries(changed)) writeFileSync(join(root, path), text);
      try {
        const collection = await probe.collect();
        for (const { code } of collection.problems) assert.ok(codes.has(code), `undeclared problem ${code}`);
        for (const { device, read, aside } of collection.reports) {
          for (const { metric, labels = {}, value } of [...(read?.readings ?? []), ...(aside?.readings ?? [])]) {
            const spec = specs.get(metric);
            assert.ok(spec, `undeclared metric ${metric}`);
            for (const name of Object.keys(labels)) assert.ok(spec.labels.includes(name), `${metric} has an undeclared label ${name}`);
            assert.ok(typeof value === 'bigint' || Number.isFinite(value), `${metric} ${value}`);
            if (spec.type === 'counter') assert.ok(value >= 0 && value <= MOST, `${metric} ${value}`);
            if (metric.endsWith('_ratio')) assert.ok(value >= 0 && value <= 1, `${metric} ${value}`);
          }
          for (const { type } of [...(read?.findings ?? []), ...(aside?.findings ?? [])])
            assert.ok(conditions.has(type), `undeclared condition ${type}`);
          checkOf?.(changed, device, read);
        }
      } finally {
        for (const path of Object.keys(changed)) writeFileSync(join(root, path), hardware.files[path]);
        // The probe keeps files open; a tree that an input made larger is no longer that of the hardware.
        assert.ok(statSync(root).isDirectory() && readdirSync(root).length > 0);
      }
    },
  };
}

const COUNTER = /infiniband\/(\w+)\/ports\/(\d+)\/counters\/port_(rcv|xmit)_data$/;

/** A byte counter is four times the whole number in its file, or absent. */
function checkBytes(changed, device, read) {
  for (const [path, text] of Object.entries(changed)) {
    const [, id, port, direction] = COUNTER.exec(path) ?? [];
    if (id !== device.id || read === undefined) continue;
    const metric = direction === 'rcv' ? 'device_received_bytes_total' : 'device_transmitted_bytes_total';
    const found = [...read.readings].find(({ metric: name, labels }) => name === metric && labels?.port === port)?.value;
    if (found === undefined) continue;
    assert.match(text.trim(), /^\d+$/, `${metric} from ${JSON.stringify(text.slice(0, 50))}`);
    assert.equal(BigInt(found), 4n * BigInt(text.trim()), path);
  }
}

export const infiniband = () => tree(infinibandFamily, { infiniband: 2, 'infiniband.vf': 2 }, checkBytes);
export const fpga = () => tree(fpgaFamily, { fpga: 4 });
