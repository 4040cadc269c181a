/**
 * The hosts that commands in the sandbox may reach, as the user lists them: `registry.npmjs.org`, `*.example.com` (every
 * name below it), `localhost:3000`, `10.1.2.3:8080`. Without a port, 80 and 443 are meant.
 */
import { isIP } from 'node:net'
import type { HostCheck } from '../sandbox/domain-proxy.ts'
import { type HostResolver, isNonPublicAddress } from './network-address.ts'

interface ListedHost {
  readonly host: string
  /** True if only the names below `host` are listed, not `host` itself. */
  readonly isBelow: boolean
  readonly ports: readonly number[]
}

const USUAL_PORTS: readonly number[] = [80, 443]

/** Parses an entry of the list. Returns null if it is invalid. */
export function parseListedHost(text: string): ListedHost | null {
  const [, star, name = '', port] =
    /^(\*\.)?(\[[\da-f:.]+\]|[^\s:/?#@[\]*\\]+)(?::(\d{1,5}))?$/i.exec(text) ?? []
  const url = URL.canParse(`http://${name}`) ? new URL(`http://${name}`) : null
  const host = toName(url?.hostname ?? '')
  const isBelow = star !== undefined
  if (host === '' || (isBelow && isIP(host) !== 0) || Number(port ?? 1) < 1 || Number(port ?? 1) > 65_535)
    return null
  return { host, isBelow, ports: port === undefined ? USUAL_PORTS : [Number(port)] }
}

/** Returns a name without a dot at its end, or an address without brackets. */
function toName(hostname: string): string {
  return hostname.toLowerCase().replace(/^\[|\]$|\.$/g, '')
}

/**
 * Returns a check of hosts against the list. Addresses of this machine and of local networks are refused, even behind a listed name, unless
 * the address itself is listed. `localhost` in the list allows the addresses of this machine.
 */
export function createHostCheck(entries: readonly string[], resolveHost: HostResolver): HostCheck {
  const listed = entries.flatMap((entry) => parseListedHost(entry) ?? [])
  return async (hostname, port) => {
    const host = toName(hostname).slice(0, MAX_NAME)
    const shown = USUAL_PORTS.includes(port) ? host : `${host}:${port}`
    const isListed = (name: string): boolean =>
      listed.some(
        (each) =>
          each.ports.includes(port) && (each.isBelow ? name.endsWith(`.${each.host}`) : name === each.host),
      )
    if (!isListed(host)) return { ok: false, why: `host ${shown} is not in sandbox.domains` }
    const addresses = isIP(host) === 0 ? await resolveHost(host).catch(() => []) : [host]
    if (addresses.length === 0) return { ok: false, why: `the address of ${host} was not found` }
    const refused = addresses.find(
      (each) => isNonPublicAddress(each) && host !== 'localhost' && !isListed(each),
    )
    if (refused === undefined) return { ok: true, addresses }
    const why = `host ${shown} has the address ${refused} of a local network, which is not in sandbox.domains`
    return { ok: false, why }
  }
}

/** No host name is longer. A request may give any text, which is part of the refusal. */
const MAX_NAME = 253
