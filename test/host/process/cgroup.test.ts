import { describe, expect, it } from 'vitest';
import { parseCgroup } from '../../../src/host/process/cgroup.ts';

const UID = '5b3c8f0e-1d2a-4c6b-9e7f-0123456789ab';
const SLICE = UID.replaceAll('-', '_');
const ID = '4f'.repeat(32);
const INNER = 'a7'.repeat(32);
/** UID of a static pod: hash of its manifest. */
const STATIC = 'd0c3a1b2'.repeat(4);

const owner = { podUid: UID, containerId: ID };

describe('parseCgroup', () => {
  it.each([
    ['cgroupfs, guaranteed', `/kubepods/pod${UID}/${ID}`],
    ['cgroupfs, burstable', `/kubepods/burstable/pod${UID}/${ID}`],
    ['cgroupfs, best effort', `/kubepods/besteffort/pod${UID}/${ID}`],
    ['systemd, guaranteed', `/kubepods.slice/kubepods-pod${SLICE}.slice/cri-containerd-${ID}.scope`],
    ['systemd, burstable', `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${SLICE}.slice/cri-containerd-${ID}.scope`],
    ['systemd, best effort', `/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod${SLICE}.slice/cri-containerd-${ID}.scope`],
    [
      'below a root of its own, systemd',
      `/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod${SLICE}.slice/cri-containerd-${ID}.scope`,
    ],
    ['below a root of its own, cgroupfs', `/kubelet/kubepods/burstable/pod${UID}/${ID}`],
    ['CRI-O, cgroupfs', `/kubepods/burstable/pod${UID}/crio-${ID}`],
    ['CRI-O, systemd', `/kubepods.slice/kubepods-pod${SLICE}.slice/crio-${ID}.scope`],
    ['CRI-O with crun', `/kubepods.slice/kubepods-pod${SLICE}.slice/crio-${ID}.scope/container`],
    ['cri-dockerd, systemd', `/kubepods.slice/kubepods-pod${SLICE}.slice/docker-${ID}.scope`],
    ['containerd with crun, cgroupfs', `/kubepods/pod${UID}/${ID}/container`],
    [
      'kubelet with systemd, containerd with cgroupfs',
      `/system.slice/containerd.service/kubepods-burstable-pod${SLICE}.slice:cri-containerd:${ID}`,
    ],
    ['seen from another cgroup namespace', `/../../kubepods-burstable-pod${SLICE}.slice/cri-containerd-${ID}.scope`],
    ['a guaranteed pod, seen from another cgroup namespace', `/../../pod${UID}/${ID}`],
    ['a burstable pod, seen from another cgroup namespace', `/../../../burstable/pod${UID}/${ID}`],
    ['a node in a container, cgroupfs', `/docker/${INNER}/kubelet/kubepods/burstable/pod${UID}/${ID}`],
    [
      'a node in a container, systemd',
      `/system.slice/docker-${INNER}.scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod${SLICE}.slice/cri-containerd-${ID}.scope`,
    ],
    ['a node below another cgroup', `/a/b/k8s-node-1-0f3c/kubepods/besteffort/pod${UID}/${ID}`],
    ['a kubelet in a service', `/system.slice/k3s.service/kubepods/pod${UID}/${ID}`],
    ['a user in the container', `/kubepods/pod${UID}/${ID}/user.slice/user-1000.slice/user@1000.service/app.slice`],
    ['a container in the container', `/kubepods/burstable/pod${UID}/${ID}/docker/${INNER}`],
    ['systemd in the container', `/kubepods.slice/kubepods-pod${SLICE}.slice/cri-containerd-${ID}.scope/init.scope`],
    ['a scope in the container', `/kubepods.slice/kubepods-pod${SLICE}.slice/cri-containerd-${ID}.scope/docker-${INNER}.scope`],
  ])('finds pod and container: %s', (_, path) => {
    expect(parseCgroup(`0::${path}\n`)).toEqual(owner);
  });

  it('takes the line of cgroup v1 that has the pod, not the line without a pod of a hybrid host', () => {
    const text = `0::/\n13:name=systemd:/kubepods/burstable/pod${UID}/${ID}\n12:cpu,cpuacct:/kubepods/burstable/pod${UID}/${ID}\n1:misc:/\n`;
    expect(parseCgroup(text)).toEqual(owner);
  });

  it('prefers a line with pod and container to one with the pod alone', () => {
    expect(parseCgroup(`5:rdma:/kubepods/pod${UID}\n4:memory:/kubepods/pod${UID}/${ID}\n`)).toEqual(owner);
  });

  it('recognizes the UID of a static pod by its 32 digits', () => {
    expect(parseCgroup(`0::/kubepods/burstable/pod${STATIC}/${ID}\n`)).toEqual({ podUid: STATIC, containerId: ID });
    const path = `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${STATIC}.slice/cri-containerd-${ID}.scope`;
    expect(parseCgroup(`0::${path}\n`)).toEqual({ podUid: STATIC, containerId: ID });
  });

  it('returns the container alone when the namespace hides the pod', () => {
    expect(parseCgroup(`0::/../cri-containerd-${ID}.scope\n`)).toEqual({ containerId: ID });
  });

  it('returns the pod alone for a process outside of every container', () => {
    expect(parseCgroup(`0::/kubepods/burstable/pod${UID}\n`)).toEqual({ podUid: UID });
  });

  it.each([`0::/kubepods.slice/kubepods-pod${SLICE}.slice/crio-conmon-${ID}.scope\n`, `0::/kubepods/pod${UID}/crio-conmon-${ID}\n`])(
    'does not take the monitor of CRI-O for the workload',
    (text) => {
      expect(parseCgroup(text)).toEqual({ podUid: UID });
    },
  );

  it.each([
    ['a service', '0::/system.slice/sshd.service\n'],
    ['a login', '0::/user.slice/user-0.slice/session-3.scope\n'],
    ['the root', '0::/\n'],
    ['a name of a user, cgroupfs', `0::/user.slice/user-1000.slice/user@1000.service/kubepods/burstable/pod${UID}/${ID}\n`],
    ['a name of a user, without the root of the kubelet', `0::/user.slice/user-1000.slice/user@1000.service/pod${UID}/${ID}\n`],
    [
      'a name of a user, systemd',
      `0::/user.slice/user-1000.slice/user@1000.service/app.slice/kubepods.slice/kubepods-pod${SLICE}.slice/cri-containerd-${ID}.scope\n`,
    ],
    ['a name of a user, from another namespace', `0::/../../../user.slice/user-1000.slice/user@1000.service/kubepods/pod${UID}/${ID}\n`],
    ['a name of a user who is that of a container', `0::/user.slice/user-1000.slice/user@1000.service/cri-containerd-${ID}.scope\n`],
    ['a user in a hierarchy of cgroup v1', `1:name=systemd:/user.slice/user-1000.slice/kubepods/pod${UID}/${ID}\n0::/\n`],
    ['a name of a machine', `0::/machine.slice/machine-web.scope/payload/kubepods/burstable/pod${UID}/${ID}\n`],
    ['a name of a machine, systemd', `0::/machine.slice/systemd-nspawn@web.service/payload/kubepods.slice/kubepods-pod${SLICE}.slice\n`],
    ['a named hierarchy that no controller shares', `2:name=own:/kubepods/pod${UID}/${ID}\n1:cpu,cpuacct:/system.slice/own.service\n`],
    ['nothing', ''],
    ['garbage', 'no cgroup file at all\n\0\n::::'],
    ['a name that only looks like a pod', `0::/kubepods/podium/${ID.slice(1)}\n`],
    ['an id of 63 digits', `0::/docker/${ID.slice(1)}\n`],
    ['an id of 65 digits', `0::/docker/${ID}0\n`],
  ])('finds nothing in %s', (_, text) => {
    expect(parseCgroup(text)).toEqual({});
  });

  it('finds no pod outside of the cgroup of the kubelet', () => {
    expect(parseCgroup(`0::/services/pod${UID}/${ID}\n`)).toEqual({ containerId: ID });
    expect(parseCgroup(`0::/services/mypod${SLICE}.slice/${ID}\n`)).toEqual({ containerId: ID });
  });

  it('finds the container of a runtime without Kubernetes', () => {
    expect(parseCgroup(`0::/system.slice/docker-${ID}.scope\n`)).toEqual({ containerId: ID });
  });
});
