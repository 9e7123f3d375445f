import { copyFileSync, mkdirSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { Machine } from '../kubelet/real/support/machine.ts';
import { hopper, scriptOf } from '../probes/nvidia/scripted-script.ts';
import { compiledLibrary } from '../support/compiled-library.ts';
import { valuesOfPlatforms } from '../support/install-page.ts';
import { Cluster, whyNoCluster } from './support/cluster.ts';
import { makeImage, whyNoImage } from './support/oci-image.ts';

const missing = whyNoCluster() ?? whyNoImage();
const NODE = 'node-1';
const HCA = 'example.com/hca';
/** MicroK8s keeps everything below a directory that other machines do not have. */
const SNAP = '/var/snap';

/**
 * What two platforms make of an API server: Talos enforces a level of Pod Security wherever a namespace says nothing else, and GKE admits
 * the priority classes of the system only where a quota speaks of them.
 */
const ADMISSION = {
  apiVersion: 'apiserver.config.k8s.io/v1',
  kind: 'AdmissionConfiguration',
  plugins: [
    {
      name: 'PodSecurity',
      configuration: {
        apiVersion: 'pod-security.admission.config.k8s.io/v1',
        kind: 'PodSecurityConfiguration',
        defaults: { enforce: 'baseline', 'enforce-version': 'latest', audit: 'restricted', warn: 'restricted' },
        exemptions: { usernames: [], runtimeClasses: [], namespaces: ['kube-system'] },
      },
    },
    {
      name: 'ResourceQuota',
      configuration: {
        apiVersion: 'apiserver.config.k8s.io/v1',
        kind: 'ResourceQuotaConfiguration',
        limitedResources: [
          {
            resource: 'pods',
            matchScopes: [{ scopeName: 'PriorityClass', operator: 'In', values: ['system-node-critical', 'system-cluster-critical'] }],
          },
        ],
      },
    },
  ],
};

interface List<T> {
  readonly items: readonly T[];
}
interface Pod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly status: { readonly podIP?: string };
}
interface Event {
  readonly reason: string;
  readonly message: string;
}

describe.skipIf(missing !== undefined)(
  `the chart with what platforms do differently, on a stock cluster${missing === undefined ? '' : ` (skipped: ${missing})`}`,
  () => {
    const directory = missing === undefined ? mkdtempSync(join(tmpdir(), 'device-agent-platforms-')) : '';
    const admission = join(directory, 'admission.yaml');
    const cluster =
      missing === undefined ? new Cluster({ APISERVER_ARGS: `--admission-control-config-file=${admission}` }) : (undefined as never);
    const machine = missing === undefined ? new Machine({ infiniband: 2 }) : (undefined as never);

    /** Installs into a namespace of its own, with simulated adapters as hardware. */
    const install = async (namespace: string, values: object, ...words: readonly string[]): Promise<void> => {
      const files = [values, simulated].flatMap((each, index) => {
        const file = join(directory, `${namespace}-${index}.yaml`);
        writeFileSync(file, stringify(each));
        return ['-f', file];
      });
      await cluster.helm('upgrade', '--install', 'device-agent', 'deploy/chart', '-n', namespace, ...files, ...words);
    };
    const simulated = {
      image: { pullPolicy: 'Never' },
      extraVolumes: [{ name: 'simulation', hostPath: { path: join(machine?.root ?? '', 'sys') } }],
      extraVolumeMounts: [{ name: 'simulation', mountPath: '/simulation', readOnly: true }],
      extraEnv: [{ name: 'DEVICE_AGENT_PATH_SYSFS', value: '/simulation' }],
    };
    const namespaced = async (namespace: string, ...labels: readonly string[]): Promise<void> => {
      await cluster.kubectl('create', 'namespace', namespace);
      for (const label of labels) await cluster.kubectl('label', 'namespace', namespace, label);
    };
    const PRIVILEGED = 'pod-security.kubernetes.io/enforce=privileged';
    const running = async (namespace: string): Promise<readonly Pod[]> =>
      (await cluster.json<List<Pod>>('get', 'pods', '-n', namespace, '-l', 'app.kubernetes.io/name=device-agent')).items.filter(
        ({ metadata }) => metadata.deletionTimestamp === undefined,
      );
    const page = async (namespace: string): Promise<string> => {
      const [pod] = await running(namespace);
      return cluster.get(`http://${pod?.status.podIP}:9835/metrics`).catch(() => '');
    };
    /** What the controller of the DaemonSet was told when it wanted to create a pod. */
    const refusals = async (namespace: string): Promise<string> => {
      const { items } = await cluster.json<List<Event>>('get', 'events', '-n', namespace);
      return items
        .filter(({ reason }) => reason === 'FailedCreate')
        .map(({ message }) => message)
        .join('\n');
    };

    beforeAll(async () => {
      writeFileSync(admission, stringify(ADMISSION));
      expect(makeImage(join(directory, 'image'))).toBeUndefined();
      await cluster.start(1);
      await cluster.importImage(join(directory, 'image'));
    });

    afterAll(async () => {
      await cluster.stop();
      machine.remove();
      rmSync(directory, { recursive: true });
      try {
        rmdirSync(SNAP);
      } catch {
        // It was there before, or the test did not come so far.
      }
    });

    it('Talos: is not admitted while the namespace has no label, and is with it', async () => {
      await namespaced('talos');
      await install('talos', {});
      await expect.poll(() => refusals('talos'), { interval: 500 }).toMatch(/violates PodSecurity "baseline:latest": hostPath volumes/);
      expect(await running('talos')).toEqual([]);
      await cluster.kubectl('label', 'namespace', 'talos', PRIVILEGED);
      await install('talos', {}, '--wait', '--timeout=120s');
      expect(await page('talos')).toContain('device_agent_podresources_up 1');
      await cluster.helm('uninstall', 'device-agent', '-n', 'talos', '--wait');
    });

    it('GKE: is admitted by the quota of the chart, and not without it', async () => {
      await namespaced('gke', PRIVILEGED);
      await install('gke', { resourceQuota: { enabled: false } });
      await expect
        .poll(() => refusals('gke'), { interval: 500 })
        .toContain('insufficient quota to match these scopes: [{PriorityClass In [system-node-critical system-cluster-critical]}]');
      expect(await running('gke')).toEqual([]);
      await install('gke', {}, '--wait', '--timeout=120s');
      expect(await running('gke')).toHaveLength(1);
      await cluster.helm('uninstall', 'device-agent', '-n', 'gke', '--wait');
    });

    it('GKE: reads GPUs by the library of the driver in a folder of the host', async () => {
      const board = hopper(0, { bus_id: '00000000:C0:00.0' });
      const pci = join(machine.root, 'sys/bus/pci/devices/0000:c0:00.0');
      mkdirSync(pci, { recursive: true });
      for (const [file, text] of Object.entries({ vendor: '0x10de', class: '0x030200' })) writeFileSync(join(pci, file), `${text}\n`);
      const library = join(directory, 'libnvidia-ml.so.1');
      copyFileSync(compiledLibrary('test/probes/nvidia/stub/nvml.c'), library);
      writeFileSync(`${library}.script`, scriptOf({ gpus: [board] }));
      // The node has a /home of its own.
      const folder = '/home/kubernetes/bin/nvidia/lib64';
      await cluster.inNode(NODE, `set -e; mount -t tmpfs home /home; mkdir -p ${folder}; cp ${library} ${library}.script ${folder}`);
      await install('gke', valuesOfPlatforms().GKE as object, '--wait', '--timeout=120s');
      await expect.poll(() => page('gke'), { interval: 500 }).toMatch(/^device_info\{.*family="nvidia"/m);
      expect(await page('gke')).toMatch(/^device_temperature_celsius\{device="GPU-/m);
      await cluster.helm('uninstall', 'device-agent', '-n', 'gke', '--wait');
      rmSync(pci, { recursive: true });
    });

    /** `byDefault` is what the agent says of the kubelet's socket with the default values. */
    const ROOTS = [
      { platform: 'k0s', byDefault: 0, root: '/var/lib/k0s/kubelet', prepare: '' },
      // There /var/lib/kubelet is a link to that directory.
      {
        platform: 'MicroK8s',
        byDefault: 1,
        root: '/var/snap/microk8s/common/var/lib/kubelet',
        prepare: `set -e; mkdir -p ${SNAP}; mount -t tmpfs snap ${SNAP}; mkdir -p ${SNAP}/microk8s/common/var/lib/kubelet
          umount -l /var/lib/kubelet; rmdir /var/lib/kubelet; ln -s ${SNAP}/microk8s/common/var/lib/kubelet /var/lib/kubelet`,
      },
    ];
    it.each(ROOTS)(
      '$platform: attributes devices and registers its plugin where the kubelet has another root',
      async ({ platform, byDefault, root, prepare }) => {
        const namespace = platform.toLowerCase();
        if (prepare !== '') await cluster.inNode(NODE, prepare);
        await cluster.restartKubelet(NODE, { KUBELET_ARGS: `--root-dir=${root}` });
        // The kubelet has its two folders for the agent in different places.
        await cluster.inNode(NODE, `test -S ${root}/pod-resources/kubelet.sock && test -S /var/lib/kubelet/device-plugins/kubelet.sock`);
        await namespaced(namespace, PRIVILEGED);
        await install(namespace, {}, '--wait', '--timeout=120s');
        await expect.poll(() => page(namespace), { interval: 500 }).toContain(`device_agent_podresources_up ${byDefault}\n`);
        await cluster.helm('uninstall', 'device-agent', '-n', namespace, '--wait');
        const resources = [{ resource: HCA, select: { family: 'infiniband', kind: 'pf' }, allocation: { strategies: ['envvar'] } }];
        const values = { ...(valuesOfPlatforms()[platform] as object), plugin: { enabled: true }, config: { plugin: { resources } } };
        await install(namespace, values, '--wait', '--timeout=120s');
        const pod = {
          ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: `job-${namespace}` } },
          spec: {
            automountServiceAccountToken: false,
            terminationGracePeriodSeconds: 0,
            containers: [{ name: 'main', image: 'localhost/pause:1', imagePullPolicy: 'Never', resources: { limits: { [HCA]: 1 } } }],
          },
        };
        const file = join(directory, 'pod.json');
        writeFileSync(file, JSON.stringify(pod));
        await cluster.kubectl('apply', '-f', file);
        await cluster.kubectl('wait', '--for=condition=Ready', `pod/job-${namespace}`, '--timeout=90s');
        await expect
          .poll(() => page(namespace), { interval: 500 })
          .toMatch(new RegExp(`pod="job-${namespace}",container="main",resource="${HCA}",device="mlx5_[01]"`));
        await cluster.kubectl('delete', 'pod', `job-${namespace}`, '--wait');
        await cluster.helm('uninstall', 'device-agent', '-n', namespace, '--wait');
      },
    );
  },
);
