import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import { NetlinkSocket } from '../../../src/probes/kit/netlink.ts';
import { family } from '../../../src/probes/netdev/index.ts';
import { askLink, NETLINK_ROUTE } from '../../../src/probes/netdev/link-message.ts';
import { LinkSource, parseIpText } from '../../../src/probes/netdev/link-source.ts';
import { probeOptions } from '../../support/probe-options.ts';

/*
 * The kernel of this machine answers. Its interfaces have no virtual functions, so the attributes of functions come from bytes in another
 * test; all others come from the kernel.
 */
const hasIp = spawnSync('ip', ['-V']).error === undefined;
const sysfs = (name: string, file: string): string => readFileSync(`/sys/class/net/${name}/${file}`, 'utf8').trim();
const indexOf = (name: string): number => Number(sysfs(name, 'ifindex'));

let socket: NetlinkSocket;
beforeAll(() => {
  const opened = NetlinkSocket.open(NETLINK_ROUTE);
  if (!(opened instanceof NetlinkSocket)) throw new Error(opened.message);
  socket = opened;
});
afterAll(() => {
  socket.close();
});

describe('netlink of this kernel', () => {
  it('tells the name and the number of the loopback interface', () => {
    expect(askLink(socket, indexOf('lo')).link).toMatchObject({ name: 'lo', index: indexOf('lo'), functions: [] });
  });

  it('answers ENODEV for a number that no interface has', () => {
    const { error } = askLink(socket, 0x7fff_fffe);
    expect(socket.nameOf(error as number)).toBe('ENODEV');
  });

  it('answers each of 300 requests, with the same text each time', () => {
    const answers = Array.from({ length: 300 }, () => JSON.stringify(askLink(socket, indexOf('lo'))));
    expect(new Set(answers).size).toBe(1);
  });

  it('tells what sysfs tells of each interface', () => {
    for (const name of readdirSync('/sys/class/net').filter((each) => existsSync(`/sys/class/net/${each}/ifindex`))) {
      const hardwareAddress = sysfs(name, 'address');
      const address = hardwareAddress === '' ? {} : { hardwareAddress };
      expect(askLink(socket, indexOf(name)).link).toMatchObject({ name, index: indexOf(name), ...address });
    }
  });

  it.skipIf(!hasIp)(`and the command ip tell the same of each interface${hasIp ? '' : ' (skipped: there is no command ip)'}`, () => {
    const links = parseIpText(execFileSync('ip', ['-s', '-d', 'link'], { encoding: 'utf8' }));
    expect(links.length).toBeGreaterThan(0);
    for (const { name, index, hardwareAddress } of links) {
      const link = askLink(socket, index).link;
      expect([link?.name, link?.index, link?.hardwareAddress]).toEqual([name, index, hardwareAddress]);
    }
  });
});

describe('a source of links', () => {
  const host = createHost({ sysfs: '/sys', procfs: '/proc', dev: '/dev' }, systemClock);
  const sourceOf = (name: string) => new LinkSource(host, probeOptions(family, { source: name }));
  const lo = { name: 'lo', index: 1, pciAddress: '0000:3b:00.0' };
  const sources = ['netlink', ...(hasIp ? ['ip'] : [])];

  it.each(sources)('%s finds the interface of this namespace', async (name) => {
    const source = sourceOf(name);
    expect(await source.ask({ ...lo, index: indexOf('lo'), hardwareAddress: sysfs('lo', 'address') })).toEqual({ functions: [] });
    source.close();
  });

  it.each(sources)('%s takes no other interface for it', async (name) => {
    const source = sourceOf(name);
    const others = [
      { ...lo, name: 'ens1f0' },
      { ...lo, index: 0x7fff_fffe },
      { ...lo, hardwareAddress: 'b4:96:91:e5:c8:a9' },
    ];
    for (const other of others) expect((await source.ask(other)).problem?.code).toBe('other-network-namespace');
    source.close();
  });

  it('opens one socket and closes it', async () => {
    const count = (): number => {
      const netlink = new Set(readFileSync('/proc/net/netlink', 'utf8').match(/\d+(?= *$)/gm));
      const own = readdirSync('/proc/self/fd').flatMap((fd) => /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/self/fd/${fd}`))?.[1] ?? []);
      return own.filter((inode) => netlink.has(inode)).length;
    };
    const linkOf = (path: string): string => {
      try {
        return readlinkSync(path);
      } catch {
        // The runner closed it meanwhile.
        return '';
      }
    };
    const source = sourceOf('netlink');
    await source.ask(lo);
    const open = count();
    for (let n = 0; n < 20; n += 1) await source.ask(lo);
    expect(count()).toBe(open);
    source.close();
    expect(count()).toBe(open - 1);
  });

  it('names a module that does not load', () => {
    const failure = NetlinkSocket.open(NETLINK_ROUTE, () => {
      throw new Error('no native part\nfor this machine');
    });
    expect(failure).toEqual({ failure: 'module', message: 'no native part' });
  });
});
