/** Refuses requests from web pages. A page of another site in a browser on this machine could add or use up faults, or read requests. */
import { isIP } from 'node:net'

/**
 * Returns an error text if a request comes from a web page of another site; otherwise null. There are two signs: an `Origin` other than the
 * simulator's own, and a `Host` that somebody else's DNS could point to this machine (DNS rebinding). `ownHost` is the host on which the
 * server listens. A request without these headers is not from a page.
 */
export function findForeignCaller(headers: Headers, ownHost: string | undefined): string | null {
  const host = headers.get('host')
  if (host !== null && !isOwnHost(host, ownHost))
    return `Host ${host}: expected an address, localhost, a name without dots, or the host that was given to listen on`
  const origin = headers.get('origin')
  if (origin !== null && (host === null || origin.toLowerCase() !== `http://${host.toLowerCase()}`))
    return `Origin ${origin}: the simulator does not answer pages of other sites`
  return null
}

/**
 * Checks whether a `Host` header names this simulator. An address cannot be rebound. Nor can a name without dots, such
 * as that of a container, or a name below `.localhost` and `.internal`, which no public DNS has.
 */
function isOwnHost(header: string, ownHost: string | undefined): boolean {
  const { hostname } = URL.parse(`http://${header}`) ?? { hostname: '' }
  const name = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (name === '') return false
  if (isIP(name) !== 0 || name === ownHost?.toLowerCase()) return true
  return !name.includes('.') || /\.(?:localhost|internal)$/.test(name)
}
