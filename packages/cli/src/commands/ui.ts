/** `tidemark ui`: serves a page on this machine that shows sessions, and opens it in the browser. */
import { spawn } from 'node:child_process'
import { formatJson } from '@tidemark/terminal/render/json-output'
import { EXIT_CODES, type Terminal, waitForInterruption } from '@tidemark/terminal/terminal'
import { tidemarkHome } from 'tidemark/logs'
import { servePage } from '../ui/page-server.ts'
import { PageSessionStore } from '../ui/page-session-store.ts'
import { createPageUndo } from '../ui/page-undo.ts'
import { createNoSessionError, findSessionLogs } from './inspect.ts'

export interface UiCommandOptions {
  readonly port?: number
  /** False with `--no-open`. */
  readonly open?: boolean
  readonly limit?: number
  readonly json?: boolean
}

export async function runUiCommand(
  paths: readonly string[],
  choices: UiCommandOptions,
  terminal: Terminal,
): Promise<number> {
  const { limit, port } = choices
  const ended = new AbortController()
  const store = new PageSessionStore({
    find: () => findSessionLogs(paths, limit === undefined ? {} : { limit }, terminal),
    undo: createPageUndo(tidemarkHome(terminal.env)),
    timeZone: terminal.env.TZ,
    signal: AbortSignal.any([
      ended.signal,
      ...(terminal.interrupted === undefined ? [] : [terminal.interrupted]),
    ]),
  })
  const found = await store.start()
  if (found === 0 && paths.length > 0) throw createNoSessionError('ui', paths, {}, terminal)
  const server = await servePage({ store, ...(port === undefined ? {} : { port }) })
  if (choices.json === true) terminal.write(`${formatJson({ url: server.url })}\n`)
  else terminal.write(`${server.url}\nOnly this machine can open it. Press Ctrl-C to stop.\n`)
  if (choices.open !== false && choices.json !== true) openBrowser(server.createLink(), terminal)
  await waitForInterruption(terminal)
  ended.abort()
  await server.close()
  return EXIT_CODES.done
}

/** Opens the address in the browser, if output goes to a terminal. A failure is ignored: the user has the printed address. */
function openBrowser(url: string, { isTty, env }: Terminal): void {
  if (!isTty) return
  const [command, ...args] =
    process.platform === 'darwin'
      ? ['open', url]
      : process.platform === 'win32'
        ? ['rundll32', 'url.dll,FileProtocolHandler', url]
        : ['xdg-open', url]
  const child = spawn(command ?? '', args, { stdio: 'ignore', detached: true, env: { ...env } })
  child.on('error', () => {})
  child.unref()
}
