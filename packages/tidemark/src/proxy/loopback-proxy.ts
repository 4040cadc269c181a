/**
 * A proxy on this machine for clients that can only set a base URL. Requests for messages go through sessions, as with
 * `tidemark.fetch`; everything else is passed on. A token in the address keeps other users of the machine out.
 */
import { timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type ChatServerOptions,
  type ClientTidemark,
  type ClientTidemarkOptions,
  createClientTidemark,
} from '../library/client-tidemark.ts'
import {
  type ClientServerOptions,
  closeServer,
  createClientServer,
  createUpstreamFinder,
  listenOn,
  PROVIDER_UPSTREAMS,
  sendUpstream,
} from './client-server.ts'

interface LoopbackProxyOptions
  extends ClientTidemarkOptions,
    Pick<ClientServerOptions, 'maxBodyBytes' | 'onError'> {
  /** Address of the Messages API, without `/v1`. */
  readonly upstream: string
  /** Address of OpenAI's APIs, without `/v1`. Default: OpenAI's own. */
  readonly upstreamOpenai?: string
  /** The server behind `upstreamOpenai`, if it speaks Chat Completions and is not OpenAI. */
  readonly chatServer?: ChatServerOptions
  /** The first part of the path of every request; a request without it is refused. */
  readonly token: string
  /** Default: one that is free. */
  readonly port?: number
}

interface LoopbackProxy {
  /** The base URL for clients. */
  readonly url: string
  /** Number of responses that are being sent. */
  readonly running: number
  /** Undoes a compaction or clearing of a session that is open here; null if it is not. */
  undo: ClientTidemark['undo']
  /** Accepts no more requests, waits briefly for running responses, and closes the sessions. */
  close(): Promise<void>
}

export async function serveLoopbackProxy(options: LoopbackProxyOptions): Promise<LoopbackProxy> {
  const { token, port = 0, maxBodyBytes, onError, ...rest } = options
  const { upstream, upstreamOpenai = PROVIDER_UPSTREAMS.openai, chatServer, ...own } = rest
  const tide = createClientTidemark(own, chatServer)
  const findUpstream = createUpstreamFinder({ anthropic: upstream, openai: upstreamOpenai })
  const host = createClientServer({
    ...(maxBodyBytes === undefined ? {} : { maxBodyBytes }),
    ...(onError === undefined ? {} : { onError }),
    ...(own.pingSeconds === undefined ? {} : { interimSeconds: own.pingSeconds }),
    async admit({ url = '', headers: given }, headers) {
      const [, secret = '', ...parts] = url.split('/')
      if (!isSameText(secret, token))
        return { ok: false, status: 404, message: 'The address lacks the token that tidemark printed.' }
      const foreign = findForeignCaller(given)
      if (foreign !== null) return { ok: false, status: 403, message: foreign }
      const path = `/${parts.join('/')}`
      const upstreamAddress = findUpstream(path, given)
      // OpenAI has no other paths. Other servers may.
      if (upstreamAddress === PROVIDER_UPSTREAMS.openai && !path.startsWith('/v1/'))
        return {
          ok: false,
          status: 404,
          message: `The path ${path} lacks /v1: give this client a base URL that ends in /v1.`,
        }
      return {
        ok: true,
        url: `${upstreamAddress}${path}`,
        headers,
        answer: (address, init) => tide.answer(address, init, sendUpstream),
      }
    },
  })
  const server = createServer((request, response) => void host.handle(request, response))
  await listenOn(server, '127.0.0.1', port)
  const address = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${address.port}/${token}`,
    get running() {
      return host.running
    },
    undo: tide.undo,
    async close() {
      await closeServer(server)
      await tide.close()
    },
  }
}

function isSameText(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/**
 * Returns an error text for a request of a web page: its `Origin` is not an address of this proxy, or its `Host` is
 * another name that resolves to this machine. Clients other than browsers send the address as `Host`, and no `Origin`.
 */
function findForeignCaller({ host = '', origin }: IncomingHttpHeaders): string | null {
  const { hostname } = URL.parse(`http://${host}`) ?? { hostname: '' }
  if (!OWN_HOSTS.has(hostname)) return `Host ${host}: expected 127.0.0.1 or localhost.`
  if (origin === undefined || origin === `http://${host}`) return null
  return `Origin ${origin}: pages of other sites are not answered.`
}

const OWN_HOSTS: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]'])
