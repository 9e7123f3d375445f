import assert from 'node:assert/strict';
import { parseKmsgRecord, recordsIn } from '../../../dist/host/kernel-log/record.js';
import { childrenOf, parseDocument, textAt } from '../../../dist/probes/nvidia/smi/document.js';
import { gpuSampleOf } from '../../../dist/probes/nvidia/smi/sample.js';
import { parseListing, parseTopology, readSmi, surplusFaults } from '../../../dist/probes/nvidia/smi/source.js';
import { parseNvidiaLine } from '../../../dist/probes/nvidia/xid-line.js';
import { simulatedDocument, simulatedListing, simulatedTopology, simulateGpu } from '../../../dist/sim/families/nvidia/document.js';
import { mutate, pick, randomText } from '../random.mjs';

const gpus = Array.from({ length: 4 }, (_, index) => simulateGpu(index, { counts: { nvidia: 4 }, elapsedMs: 60_000 }));
const processOf = (pid) => `<process_info>
\t<gpu_instance_id>N/A</gpu_instance_id>
\t<compute_instance_id>N/A</compute_instance_id>
\t<pid>${pid}</pid>
\t<type>C</type>
\t<process_name>python</process_name>
\t<used_memory>${pid} MiB</used_memory>
</process_info>
`;
const DOCUMENT = simulatedDocument(gpus, new Map()).replaceAll(
  '<processes></processes>',
  `<processes>\n${[41, 42, 43].map(processOf).join('')}</processes>`,
);
const shown = (_, value) => (typeof value === 'bigint' ? `${value}n` : value);
const samplesOf = (text) => {
  const { log } = parseDocument(text);
  return log === undefined ? undefined : JSON.stringify(childrenOf(log, 'gpu').map(gpuSampleOf), shown);
};

/** A document that was changed anywhere: no exception, and never more GPUs than it announces. */
export function document() {
  return {
    make: (choose) => mutate(choose, DOCUMENT),
    check(text) {
      const smi = readSmi({ stdout: text, stderr: '', exitCode: 0 });
      surplusFaults(smi.surplus);
      if (smi.log === undefined) return assert.ok(smi.problem.code);
      const announced = Number(textAt(smi.log, 'attached_gpus'));
      const found = childrenOf(smi.log, 'gpu').map(gpuSampleOf);
      assert.ok(!(found.length > announced), `${found.length} GPUs of ${announced}`);
    },
  };
}

const FORGERIES = [
  '<supported_clocks>',
  '</nvidia_smi_log>',
  '</process_info>',
  '</process_name>',
  '<process_name>',
  '</process_name><used_memory>9 MiB</used_memory></process_info><process_info><pid>1</pid><process_name>',
  '</processes></gpu><gpu id="9">',
  '<used_memory>99 MiB</used_memory>',
  '<!--',
  ']]>',
  '\n',
];

/** Only the names of processes are hostile: all else is read as without them, or nothing is believed. */
export function processNames() {
  const slots = DOCUMENT.split(/(?<=<process_name>).*(?=<\/process_name>)/);
  assert.ok(slots.length > 2, 'the document has processes');
  const expected = samplesOf(DOCUMENT);
  return {
    make: (choose) =>
      slots.reduce((text, part) => {
        const name = Array.from({ length: choose(6) }, () => (choose(2) === 0 ? pick(choose, FORGERIES) : randomText(choose, 8))).join('');
        return `${text}${choose(3) === 0 ? name : 'python'}${part}`;
      }),
    check(text) {
      const found = samplesOf(text);
      if (found !== undefined) assert.equal(found, expected);
    },
  };
}

export function listings() {
  const [listing, topology] = [simulatedListing(gpus), simulatedTopology(gpus)];
  return {
    make: (choose) => mutate(choose, choose(2) === 0 ? listing : topology),
    check(text) {
      for (const [gpu, instances] of parseListing(text)) {
        assert.ok(text.includes(gpu));
        for (const { uuid } of instances.values()) assert.ok(text.includes(uuid));
      }
      for (const row of parseTopology(text) ?? []) for (const links of row) assert.ok(links >= 0);
    },
  };
}

const RECORDS = [
  '4,2,90000000,-;NVRM: Xid (PCI:0000:0f:00): 31, pid=4000, name=python, Ch 00000008, intr 00000000. MMU Fault\n',
  '4,3,91000000,-;NVRM: Xid (PCI:0000:0f:00): 79, pid=<unknown>, name=<unknown>, GPU has fallen off the bus.\n SUBSYSTEM=pci\n DEVICE=+pci:0000:0f:00.0\n',
  '4,4,92000000,c;NVRM: Xid (PCI:0000:0f:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 04 (0x00000000 0x00000000 0x00000000)\n',
  '6,5,93000000,-;nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error\n',
];

export function kernelLog() {
  return {
    make: (choose) => mutate(choose, Array.from({ length: 1 + choose(6) }, () => pick(choose, RECORDS)).join('')),
    check(text) {
      for (const part of recordsIn(text)) {
        const record = parseKmsgRecord(part);
        if (record === undefined) continue;
        assert.ok(Number.isSafeInteger(record.seq) && record.seq >= 0, `seq ${record.seq}`);
        const line = parseNvidiaLine(record);
        if (line?.kind === 'xid') assert.ok(text.includes(String(line.xid)), `Xid ${line.xid} is not in the text`);
      }
    },
  };
}
