/** Recognises addresses of this machine and of local networks, which web pages are not fetched from. */
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { ToolError } from './tool-definition.ts'

const PRIVATE = createPrivateAddresses()

function createPrivateAddresses(): BlockList {
  const list = new BlockList()
  const subnets = [
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['127.0.0.0', 8],
    ['169.254.0.0', 16],
    ['172.16.0.0', 12],
    ['192.0.0.0', 24],
    ['192.168.0.0', 16],
    ['198.18.0.0', 15],
    ['224.0.0.0', 3],
  ] as const
  for (const [network, bits] of subnets) list.addSubnet(network, bits, 'ipv4')
  for (const [network, bits] of [
    ['fc00::', 7],
    ['fe80::', 10],
    ['ff00::', 8],
  ] as const)
    list.addSubnet(network, bits, 'ipv6')
  // The first 96 bits are zero in the addresses `::` and `::1`, and in old forms of IPv4 addresses.
  list.addSubnet('::', 96, 'ipv6')
  // Translations of IPv4 addresses could lead anywhere.
  list.addSubnet('64:ff9b::', 96, 'ipv6')
  list.addSubnet('2002::', 16, 'ipv6')
  return list
}

/** Returns true for loopback, private, link-local, multicast and other addresses that are not on the public internet. */
export function isPrivateAddress(address: string): boolean {
  const plain = address.split('%')[0] ?? ''
  const mapped = readMappedAddress(plain)
  if (mapped !== null) return PRIVATE.check(mapped, 'ipv4')
  return PRIVATE.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4')
}

/** `::ffff:127.0.0.1` and `::ffff:7f00:1` stand for 127.0.0.1. */
function readMappedAddress(address: string): string | null {
  const dotted = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (dotted !== undefined) return dotted
  const hex = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/i.exec(address)
  if (hex === null) return null
  const [high, low] = [Number.parseInt(hex[1] ?? '', 16), Number.parseInt(hex[2] ?? '', 16)]
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}

export async function resolveBySystem(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

/** Throws a `ToolError` if a URL leads to this machine or a local network. */
export async function requirePublicHost(
  url: URL,
  resolveHost: (host: string) => Promise<readonly string[]>,
): Promise<void> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const addresses = isIP(host) === 0 ? await resolveName(host, resolveHost) : [host]
  if (addresses.some(isPrivateAddress))
    throw new ToolError(`${host} is an address of this machine or of a local network, which is not fetched.`)
}

async function resolveName(
  host: string,
  resolveHost: (host: string) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  if (/(?:^|\.)(?:localhost|local|internal)\.?$/i.test(host)) return ['127.0.0.1']
  try {
    return await resolveHost(host)
  } catch (error) {
    throw new ToolError(
      `The address of ${host} was not found: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}
