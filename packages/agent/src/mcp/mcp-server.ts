/**
 * One MCP server: started in the background, and started again if it has ended and is needed. Each fault is reported to the user once; the
 * model sees it as the result of its call.
 */
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { ServerConnection } from './server-connection.ts'
import { type McpServerSettings, resolveServerEndpoint } from './server-settings.ts'
import type { ServerListing } from './tool-catalogue.ts'
import type { ServerResult } from './tool-results.ts'

/** Shows a sentence to the user, unless one with the same key was shown before. */
export type NotifyUser = (key: string, message: string) => void

interface McpServerOptions {
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly startTimeout: number
  /** Aborted at the end of the session. */
  readonly signal: AbortSignal
  readonly notify: NotifyUser
  /** Returns a reason not to start the server; null if it may be started. */
  readonly findObjection: () => Promise<string | null>
  readonly onListing: (listing: ServerListing) => void
  /** Returns how the server's process is confined. If omitted, it is not confined. */
  readonly confine?: Sandbox['enter']
}

export interface McpServer {
  /** Starts the server, unless it is running or starting. Callers that do not wait may ignore a rejection. */
  start(): Promise<ServerConnection>
  /** Starts the server in the background if it does not run and its last start was some time ago. */
  restart(): void
  isStarting(): boolean
  /** Waits for a server that a call needs, after starting it if necessary. Rejects with a text for the model. */
  waitForStart(): Promise<ServerConnection>
  /** Runs `work`, which sends a request, after starting the server if necessary; once more if it was not delivered. */
  send(work: (connection: ServerConnection, timeout: number) => Promise<ServerResult>): Promise<ServerResult>
  close(): Promise<void>
}

const CALL_TIMEOUT = 600_000
/** Minimum milliseconds between two starts of a failing server, unless one of its tools is called. */
const RESTART_PAUSE = 10_000

/** Creates a server, which is not started yet. Its faults are passed to `notify`. */
export function createMcpServer(
  name: string,
  settings: McpServerSettings,
  options: McpServerOptions,
): McpServer {
  let starting: Promise<ServerConnection> | null = null
  let open: ServerConnection | null = null
  let startedAt = Number.NEGATIVE_INFINITY
  /** What the server printed before it ended, as the end of a sentence; null if it never ended. Reported when it is started again. */
  let ended: string | null = null
  const start = (): Promise<ServerConnection> => {
    if (open?.isOpen() === true) return Promise.resolve(open)
    if (starting === null) {
      startedAt = Date.now()
      if (ended !== null)
        options.notify(`ended ${name}`, `The MCP server ${name} had ended${ended}. It is started again.`)
      const onEnded = (why: string): void => {
        ended = why === '' ? '' : `; it printed: ${why}`
      }
      starting = startServer(name, settings, { ...options, onEnded })
        .then((connection) => {
          open = connection
          return connection
        })
        .finally(() => {
          starting = null
        })
      starting.catch(() => undefined)
    }
    return starting
  }
  const waitForStart = () => waitForCall(start())
  return {
    start,
    waitForStart,
    restart() {
      if (!options.signal.aborted && Date.now() - startedAt > RESTART_PAUSE) start()
    },
    isStarting: () => starting !== null,
    async send(work) {
      const timeout = settings.timeout ?? CALL_TIMEOUT
      const connection = await waitForStart()
      try {
        return await work(connection, timeout)
      } catch (error) {
        const { UndeliveredCallError } = await import('./server-connection.ts')
        if (!(error instanceof UndeliveredCallError)) throw error
        await connection.close()
        return await work(await waitForStart(), timeout)
      }
    },
    async close() {
      await starting?.catch(() => undefined)
      await open?.close()
    },
  }
}

/** Waits for a server that a call needs. If it cannot be started, the error tells the model that nothing was done. */
async function waitForCall(starting: Promise<ServerConnection>): Promise<ServerConnection> {
  try {
    return await starting
  } catch (error) {
    throw new Error(`It does not run: ${(error as Error).message} The call was not made.`)
  }
}

async function startServer(
  name: string,
  settings: McpServerSettings,
  options: McpServerOptions & { readonly onEnded: (why: string) => void },
): Promise<ServerConnection> {
  const { folder, env, notify, onListing } = options
  const onProblems = (problems: readonly string[]): void => {
    for (const problem of problems) notify(problem, `MCP server ${name}: ${problem}`)
  }
  try {
    const objection = await options.findObjection()
    if (objection !== null) throw new Error(objection)
    const { connectServer } = await import('./server-connection.ts')
    const connection = await connectServer({
      ...options,
      address: resolveServerEndpoint(settings, { ...env, CLAUDE_PROJECT_DIR: folder }),
      onEnded: options.onEnded,
      onProblems,
    })
    onProblems(connection.problems)
    onListing(connection.listing)
    return connection
  } catch (error) {
    notify(`failed ${name}`, `The MCP server ${name} could not be started: ${(error as Error).message}`)
    throw error
  }
}
