/** Resolves hosts of web pages, and recognizes addresses that are not on the public internet. */
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { ToolError } from './tool-definition.ts'

type Network = readonly [address: string, bits: number]

/** Networks of IPv4 that are not on the public internet. */
const PRIVATE_IPV4: readonly Network[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // At this address, virtual machines of Azure reach services of their host.
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
]

/** The IPv6 range of public addresses. Below: the parts of it for documentation, and for access to IPv4. */
const PUBLIC_IPV6: readonly Network[] = [['2000::', 3]]
const EXCEPTIONS_IPV6: readonly Network[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]
const MAPPED_IPV4: readonly Network[] = [['::ffff:0:0', 96]]

const privateIpv4 = createList(PRIVATE_IPV4, 'ipv4')
const publicIpv6 = createList(PUBLIC_IPV6, 'ipv6')
const exceptionsIpv6 = createList(EXCEPTIONS_IPV6, 'ipv6')
const mappedIpv4 = createList(MAPPED_IPV4, 'ipv6')

function createList(networks: readonly Network[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const [address, bits] of networks) list.addSubnet(address, bits, family)
  return list
}

/**
 * Returns true for addresses that are not on the public internet: loopback, private, link-local, multicast and the like. An IPv4 address
 * that is written as IPv6 counts as the IPv4 address. A text that is not an address counts as not public.
 */
export function isNonPublicAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return privateIpv4.check(address, 'ipv4')
  // An address with a zone, as in `fe80::1%eth0`, is local to one network.
  if (family !== 6 || address.includes('%')) return true
  // A list of IPv4 networks also recognizes mapped addresses, in every spelling.
  if (mappedIpv4.check(address, 'ipv6')) return privateIpv4.check(address, 'ipv6')
  return !publicIpv6.check(address, 'ipv6') || exceptionsIpv6.check(address, 'ipv6')
}

/** Returns the IP addresses of a host name. Rejects if there are none. */
export type HostResolver = (host: string) => Promise<readonly string[]>

export async function resolveHostBySystem(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

/** Returns the IP addresses of the host of a URL, public or not. Throws a `ToolError` if it has none. */
export async function resolveAnyHost(url: URL, resolveHost: HostResolver): Promise<readonly string[]> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) !== 0) return [host]
  try {
    return await resolveHost(host)
  } catch (error) {
    throw new ToolError(
      `The address of ${host} was not found: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}

/** Like `resolveAnyHost`, but throws a `ToolError` if an address belongs to this machine or a local network. */
export async function resolvePublicHost(url: URL, resolveHost: HostResolver): Promise<readonly string[]> {
  const isLocalName = /(?:^|\.)(?:localhost|local|internal)\.?$/i.test(url.hostname)
  const addresses = isLocalName ? [] : await resolveAnyHost(url, resolveHost)
  if (addresses.length > 0 && !addresses.some(isNonPublicAddress)) return addresses
  throw new ToolError(
    `${url.hostname.replace(/^\[|\]$/g, '')} is an address of this machine or of a local network, which is not fetched.`,
  )
}
