/**
 * The proxy through which sandboxed commands reach the hosts that the user has listed: HTTP CONNECT and plain HTTP. It runs outside the
 * sandbox, asks `checkHost` about each host, and connects only to the checked addresses.
 */
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import { connect, isIP, type LookupFunction } from 'node:net'
import { type Duplex, pipeline } from 'node:stream'

/** Decides whether a host may be reached. Returns the addresses to connect to, or a part of a sentence why it is refused. */
export type HostCheck = (host: string, port: number) => Promise<CheckedHost>

type CheckedHost =
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: false; readonly why: string }

export interface DomainProxy {
  /** Accepts connections by `listen`, or single ones by its event `connection`. */
  readonly server: Server
  /** Reasons for refused hosts, each once; no more than the first `MAX_REFUSALS`. */
  readonly refusals: ReadonlySet<string>
}

/** Maximum number of reasons for refusals that are kept, because a command may try any number of hosts. */
const MAX_REFUSALS = 20

/** Creates the proxy of one command. It does not listen yet. */
export function createDomainProxy(checkHost: HostCheck): DomainProxy {
  const refusals = new Set<string>()
  const check = async (target: URL | null): Promise<CheckedHost & { readonly port: number }> => {
    const port = Number(target?.port || 80)
    const checked: CheckedHost =
      target === null
        ? { ok: false, why: 'the request names no host' }
        : await checkHost(target.hostname, port)
    if (!checked.ok && refusals.size < MAX_REFUSALS) refusals.add(checked.why)
    return { ...checked, port }
  }
  const server = createServer((incoming, response) => {
    // Only requests with a whole URL are meant for a proxy; others are refused.
    const target = toUrl(incoming.url ?? '')
    check(target).then((checked) => {
      if (checked.ok && target !== null) forward(incoming, response, { target, addresses: checked.addresses })
      else response.writeHead(403, { 'content-type': 'text/plain' }).end(`${checked.ok ? '' : checked.why}\n`)
    }, response.destroy.bind(response))
  })
  server.on('connect', (incoming, client, head) => {
    client.on('error', () => undefined)
    check(toUrl(`http://${incoming.url ?? ''}`)).then((checked) => {
      if (checked.ok) openTunnel(client, head, checked)
      else endTunnel(client, '403 Forbidden', checked.why)
    }, client.destroy.bind(client))
  })
  server.on('clientError', (_, client) => client.destroy())
  return { server, refusals }
}

function toUrl(text: string): URL | null {
  const url = URL.canParse(text) ? new URL(text) : null
  return url?.protocol === 'http:' && url.hostname !== '' ? url : null
}

/** Forwards a request to its host, and the response to the client. */
function forward(
  incoming: IncomingMessage,
  response: ServerResponse,
  { target, addresses }: { readonly target: URL; readonly addresses: readonly string[] },
): void {
  const headers = Object.entries(incoming.headersDistinct).filter(([name]) => !HOP_HEADERS.has(name))
  const sent = request(target, {
    method: incoming.method ?? 'GET',
    // The checked host, whatever the client has written in this header.
    headers: { ...Object.fromEntries(headers), host: target.host },
    agent: false,
    lookup: createFixedLookup(addresses),
  })
  sent.on('response', (message) => {
    response.writeHead(message.statusCode ?? 502, message.headersDistinct)
    pipeline(message, response, () => undefined)
  })
  sent.on('error', (error) => {
    if (response.headersSent) response.destroy()
    else response.writeHead(502, { 'content-type': 'text/plain' }).end(`${describeError(error)}\n`)
  })
  response.on('close', () => sent.destroy())
  pipeline(incoming, sent, () => undefined)
}

/** Headers for the proxy itself, which are not forwarded. */
const HOP_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'upgrade',
])

function openTunnel(
  client: Duplex,
  head: Buffer,
  { addresses, port }: { readonly addresses: readonly string[]; readonly port: number },
): void {
  const host = connect({ host: 'checked', port, lookup: createFixedLookup(addresses) })
  const fail = (error: Error): void => endTunnel(client, '502 Bad Gateway', describeError(error))
  host.on('error', fail).on('connect', () => {
    host.off('error', fail)
    client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    host.write(head)
    pipeline(client, host, client, () => undefined)
  })
  client.on('close', () => host.destroy())
}

function endTunnel(client: Duplex, status: string, text: string): void {
  client.end(`HTTP/1.1 ${status}\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n${text}\n`)
}

/** Returns the message of an error. If several addresses were tried, the message is empty and the errors are in a list. */
function describeError(error: Error): string {
  const [first] = error instanceof AggregateError ? error.errors : [error]
  return first instanceof Error ? first.message : String(first)
}

/** Returns a resolver that gives these addresses for every host, so that a connection goes to what was checked. */
export function createFixedLookup(addresses: readonly string[]): LookupFunction {
  const known = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_host, options, callback) => {
    const [first = { address: '', family: 0 }] = known
    if (options.all === true) callback(null, known)
    else callback(null, first.address, first.family)
  }
}
