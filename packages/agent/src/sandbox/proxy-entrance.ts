/**
 * How a command in the sandbox gets to the proxy outside. Linux: it has a network of its own, from which a bridge leads
 * through named pipes. macOS: the profile leaves one port of the loopback network open.
 */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { constants, openSync } from 'node:fs'
import { copyFile, mkdir, rm } from 'node:fs/promises'
import { performServerHandshake } from 'node:http2'
import { type AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import { Duplex, duplexPair, pipeline } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { DomainProxy } from './domain-proxy.ts'

export interface ProxyEntrance {
  /** The port at which commands find the proxy, on 127.0.0.1. */
  readonly port: number
  /** The folder of the bridge, which commands have as `BRIDGE_FOLDER`; null if they need none. */
  readonly folder: string | null
  close(): Promise<void>
}

/** Where the folder of the bridge is in the sandbox. */
export const BRIDGE_FOLDER = '/run/tidemark'

/** Each sandbox has a loopback network of its own, so that all of them can use the same port. */
const BRIDGE_PORT = 47_128

/** A command cannot have more connections at once: each is an open file of this process. */
const MAX_CONNECTIONS = 100

const isSource = import.meta.url.endsWith('.ts')
/** A name that says that the file is a module, wherever it is. */
const BRIDGE_NAME = isSource ? 'bridge.mts' : 'bridge.mjs'

/** Returns the call that runs another one behind the bridge. */
export function createBridgeCall(port: number, program: string, args: readonly string[]): readonly string[] {
  const bridge = join(BRIDGE_FOLDER, BRIDGE_NAME)
  return [process.execPath, '--no-warnings', bridge, BRIDGE_FOLDER, String(port), program, ...args]
}

/** Opens a bridge for one command. Rejects if the pipes cannot be made. */
export async function openBridge(ownFolder: string, { server }: DomainProxy): Promise<ProxyEntrance> {
  const folder = join(ownFolder, `network-${randomUUID()}`)
  await mkdir(folder, { mode: 0o700 })
  const [up, down] = [join(folder, 'up'), join(folder, 'down')]
  await promisify(execFile)('mkfifo', ['-m', '600', up, down])
  const source = new URL(isSource ? './network-bridge.ts' : './network-bridge.mjs', import.meta.url)
  await copyFile(fileURLToPath(source), join(folder, BRIDGE_NAME))
  const readable = new Socket({ fd: openPipe(up), writable: false })
  const writable = new Socket({ fd: openPipe(down), readable: false })
  const pipes = Duplex.from({ readable, writable })
  const session = performServerHandshake(pipes, { settings: { maxConcurrentStreams: MAX_CONNECTIONS } })
  session.on('error', () => undefined)
  session.on('stream', (stream) => {
    stream.respond({ ':status': 200 })
    // A stream of HTTP/2 cannot take the writes of an HTTP server itself: it mixes texts and bytes up.
    const [inner, outer] = duplexPair()
    pipeline(stream, inner, stream, () => outer.destroy())
    server.emit('connection', outer)
  })
  return {
    port: BRIDGE_PORT,
    folder,
    async close() {
      session.destroy()
      for (const pipe of [readable, writable]) pipe.destroy()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Opens a pipe for reading and writing, which does not wait for the other side and does not end with it. */
function openPipe(path: string): number {
  return openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
}

/** Opens a port for one command. */
export async function openPort({ server }: DomainProxy): Promise<ProxyEntrance> {
  await new Promise<void>((resolve, reject) =>
    server.once('error', reject).listen(0, '127.0.0.1', () => resolve()),
  )
  server.unref()
  return {
    port: (server.address() as AddressInfo).port,
    folder: null,
    async close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** The variables by which programs find a proxy. */
export function createProxyVariables(port: number): Readonly<Record<string, string>> {
  const address = `http://127.0.0.1:${port}`
  const own = 'localhost,127.0.0.1,::1'
  const names = ['http_proxy', 'https_proxy', 'all_proxy']
  return {
    ...Object.fromEntries(names.flatMap((name) => [name, name.toUpperCase()].map((each) => [each, address]))),
    no_proxy: own,
    NO_PROXY: own,
    // Node's own `fetch` and `http` look at the others only with this.
    NODE_USE_ENV_PROXY: '1',
  }
}
