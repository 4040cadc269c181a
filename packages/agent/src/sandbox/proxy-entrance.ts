/**
 * How a sandboxed command reaches the proxy outside. Linux: the sandbox has its own network, connected by a bridge over named pipes. macOS:
 * the profile leaves one port of the loopback network open.
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

/** The way of one command to its proxy. */
export interface ProxyEntrance {
  /** The port at which commands find the proxy, on 127.0.0.1. */
  readonly port: number
  /** The folder of the bridge, which commands see as `BRIDGE_FOLDER`; null if no bridge is needed. */
  readonly folder: string | null
  close(): Promise<void>
}

/** The path of the bridge's folder inside the sandbox. */
export const BRIDGE_FOLDER = '/run/tidemark'

/** Each sandbox has its own loopback network, so all can use the same port. */
const BRIDGE_PORT = 47_128

/** Maximum connections of a command at once, because each is an open file of this process. */
const MAX_CONNECTIONS = 100

const isSource = import.meta.url.endsWith('.ts')
/** The extension marks the file as a module, wherever it is. */
const BRIDGE_NAME = isSource ? 'bridge.mts' : 'bridge.mjs'

/** Returns the command line that starts the bridge in the sandbox, which then runs the given command. */
export function createBridgeCommand(
  port: number,
  program: string,
  args: readonly string[],
): readonly string[] {
  const bridge = join(BRIDGE_FOLDER, BRIDGE_NAME)
  return [process.execPath, '--no-warnings', bridge, BRIDGE_FOLDER, String(port), program, ...args]
}

/** Opens the outer side of a bridge for one command (Linux). Rejects if the pipes cannot be created. */
export async function openProxyBridge(ownFolder: string, { server }: DomainProxy): Promise<ProxyEntrance> {
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
    // An HTTP server cannot write to an HTTP/2 stream directly, because the stream mixes up texts and bytes.
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

/** Opens a pipe for reading and writing, so that opening does not wait for the other side and the pipe stays open without it. */
function openPipe(path: string): number {
  return openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
}

/** Makes the proxy of one command listen on a free port of this machine (macOS). */
export async function openProxyPort({ server }: DomainProxy): Promise<ProxyEntrance> {
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

/** Returns the environment variables by which programs find the proxy on this port. */
export function createProxyEnvironment(port: number): Readonly<Record<string, string>> {
  const address = `http://127.0.0.1:${port}`
  const own = 'localhost,127.0.0.1,::1'
  const names = ['http_proxy', 'https_proxy', 'all_proxy']
  return {
    ...Object.fromEntries(names.flatMap((name) => [name, name.toUpperCase()].map((each) => [each, address]))),
    no_proxy: own,
    NO_PROXY: own,
    // Node's own `fetch` and `http` use the other variables only if this one is set.
    NODE_USE_ENV_PROXY: '1',
  }
}
