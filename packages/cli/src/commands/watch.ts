/**
 * `tidemark watch`: a proxy on this machine for an agent that can only set a base URL, such as Claude Code. Until interrupted, prints the
 * cost of each request, and cache breaks, clearings and compactions as they happen.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PolicyOverrides } from '@tidemark/core/policy/create-policy'
import { describeEvent } from '@tidemark/terminal/render/describe-event'
import {
  formatCost,
  formatCount,
  formatDollars,
  formatTokens,
  formatWholePercent,
} from '@tidemark/terminal/render/format-numbers'
import { formatJson } from '@tidemark/terminal/render/json-output'
import { printError, printMisuse } from '@tidemark/terminal/render/print-errors'
import { createTimeFormat } from '@tidemark/terminal/render/screen'
import { formatPath, toSafeLine } from '@tidemark/terminal/render/text'
import { createColors, EXIT_CODES, type Terminal, waitForInterruption } from '@tidemark/terminal/terminal'
import type { EventOf, RunOptions, SessionEvent } from 'tidemark'
import { DIALECT_NAMES, serveLoopbackProxy, tidemarkHome } from 'tidemark/internal'
import type { PageServer } from '../ui/page-server.ts'
import type { UndoInProcess } from '../ui/page-undo.ts'
import { readPolicy } from './read-policies.ts'

export interface WatchCommandOptions {
  readonly port?: number
  readonly observe?: boolean
  readonly upstream?: string
  readonly upstreamOpenai?: string
  readonly session?: string
  /** Maximum megabytes of a request. */
  readonly maxBody?: number
  /** Maximum context window to use, in tokens. */
  readonly window?: number
  /** Name of a preset, or a file with a policy. */
  readonly policy?: string
  /** The dialect of the server behind `upstreamOpenai`, if it is not OpenAI. */
  readonly dialect?: string
  /** What each session may use of turns, tokens and dollars; then its requests are refused. */
  readonly limit?: RunOptions['limits']
  readonly json?: boolean
  /** True to also serve the page of its sessions. */
  readonly ui?: boolean
}

const DEFAULT_PORT = 8_787
/** Seconds without a request after which a session is closed until its next request, because each open session holds a file. */
const IDLE_SECONDS = 30 * 60
const DEFAULT_UPSTREAM = 'https://api.anthropic.com'
const DEFAULT_OPENAI_UPSTREAM = 'https://api.openai.com'

export async function runWatchCommand(choices: WatchCommandOptions, terminal: Terminal): Promise<number> {
  const home = tidemarkHome(terminal.env)
  const {
    upstream = DEFAULT_UPSTREAM,
    upstreamOpenai = DEFAULT_OPENAI_UPSTREAM,
    port = DEFAULT_PORT,
    session,
    window,
  } = choices
  const dialect = DIALECT_NAMES.find((name) => name === choices.dialect)
  if (choices.dialect !== undefined && (dialect === undefined || window === undefined)) {
    const wanted = dialect === undefined ? `one of ${DIALECT_NAMES.join(', ')}` : 'a --window beside it'
    printError(`--dialect ${choices.dialect}: expected ${wanted}.`, terminal)
    return EXIT_CODES.wrongUse
  }
  const policy = choices.policy === undefined ? null : await readPolicy(choices.policy)
  if (typeof policy === 'string') return printMisuse(policy, terminal)
  const printer = createPrinter(choices, terminal)
  const proxy = await serveLoopbackProxy({
    upstream: upstream.replace(/\/+$/, ''),
    upstreamOpenai: upstreamOpenai.replace(/(?:\/v1)?\/*$/, ''),
    port,
    token: await readToken(home),
    home,
    env: terminal.env,
    mode: choices.observe === true ? 'observe' : 'manage',
    idleSeconds: IDLE_SECONDS,
    ...(choices.maxBody === undefined ? {} : { maxBodyBytes: choices.maxBody * 1_000_000 }),
    ...(session === undefined ? {} : { session }),
    ...(choices.limit === undefined ? {} : { limits: choices.limit }),
    ...(policy === null && window === undefined ? {} : { policy: withWindow(policy?.policy ?? {}, window) }),
    ...(window === undefined || dialect === undefined ? {} : { chatServer: { dialect, window } }),
    onEvent: printer.printEvent,
    onError: printer.printError,
  })
  const page =
    choices.ui === true
      ? await startPage(home, proxy.undo, terminal).catch(async (error: unknown) => {
          await proxy.close()
          throw error
        })
      : null
  terminal.write(
    choices.json === true
      ? `${formatJson({ url: proxy.url, openaiUrl: `${proxy.url}/v1`, upstream, upstreamOpenai, home })}\n`
      : formatGreeting(proxy.url, { upstream, upstreamOpenai }, home, choices),
  )
  await waitForInterruption(terminal)
  printer.printEnd(proxy.running)
  await page?.close()
  await proxy.close()
  return EXIT_CODES.done
}

function withWindow(policy: PolicyOverrides, window: number | undefined): PolicyOverrides {
  return window === undefined ? policy : { ...policy, window: { ...policy.window, capTokens: window } }
}

/** Serves the page of the sessions. Its code is loaded only when needed. */
async function startPage(home: string, undo: UndoInProcess, terminal: Terminal): Promise<PageServer> {
  const { serveHomeSessions } = await import('../ui/serve-home-sessions.ts')
  const page = await serveHomeSessions({
    home,
    timeZone: terminal.env.TZ,
    undoHere: (session, target) => undo(session, target),
  })
  terminal.warn(`The page: ${page.url}\n`)
  return page
}

/** Returns the secret part of the address, created at the first use and stored, so that the address can be kept in settings. */
async function readToken(home: string): Promise<string> {
  const path = join(home, 'watch-token')
  const known = await readFile(path, 'utf8').catch(() => '')
  if (/^[\w-]{20,}$/.test(known.trim())) return known.trim()
  const token = randomBytes(18).toString('base64url')
  await mkdir(home, { recursive: true, mode: 0o700 })
  await writeFile(path, `${token}\n`, { mode: 0o600 })
  return token
}

function formatGreeting(
  url: string,
  { upstream, upstreamOpenai }: { readonly upstream: string; readonly upstreamOpenai: string },
  home: string,
  { observe, policy = 'default' }: WatchCommandOptions,
): string {
  const what =
    observe === true
      ? 'Observing: nothing is changed, everything is recorded.'
      : `Managing, policy ${toSafeLine(formatPath(policy))}: requests are those of a session, cached, cleared and compacted.`
  return [
    `${what} Press Ctrl-C to stop.`,
    `  ANTHROPIC_BASE_URL=${url} your-agent`,
    `  OPENAI_BASE_URL=${url}/v1 your-agent`,
    `  codex -c model_provider=tidemark -c 'model_providers.tidemark={name="tidemark",base_url="${url}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}'`,
    `  to ${upstream} and ${upstreamOpenai}; sessions in ${formatPath(join(home, 'sessions'))}`,
    '',
    '',
  ].join('\n')
}

interface WatchPrinter {
  printEvent(event: SessionEvent, id: string): void
  printError(status: number, message: string): void
  /** Prints the totals. `running`: number of responses that are still awaited. */
  printEnd(running: number): void
}

/** Prints a line for each call, each error and each event that users see: time, session, and what happened. Nothing with `--json`. */
function createPrinter({ json, observe }: WatchCommandOptions, terminal: Terminal): WatchPrinter {
  const colors = createColors(terminal)
  const time = createTimeFormat(terminal.env.TZ)
  const costs = new Map<string, CallCosts>()
  const uncached = new Map<string, number>()
  const print = (id: string, text: string): void => {
    if (json === true) return
    const at = time.time(new Date().toISOString())
    terminal.write(`${colors.dim(`${at} ${shortenId(id)}`)}  ${text}\n`)
  }
  return {
    printEvent(event, id) {
      const told = describeEvent(event)
      if (told !== null) print(id, told.tone === 'warning' ? colors.yellow(told.text) : told.text)
      if (event.type !== 'priced') return
      print(id, describeCall(event))
      costs.set(id, addCall(costs.get(id), event))
      const { cacheRead, writeShort, writeLong } = event.call.tokens
      const count = cacheRead + writeShort + writeLong > 0 ? 0 : (uncached.get(id) ?? 0) + 1
      uncached.set(id, count)
      if (count === UNCACHED_CALLS && observe === true) print(id, colors.yellow(NO_MARKERS))
    },
    printError(status, message) {
      print('', colors.red(toSafeLine(`The agent got an error: ${status} ${message}`)))
    },
    printEnd(running) {
      if (json === true) return
      const all = [...costs.values()]
      const calls = all.reduce((sum, cost) => sum + cost.calls, 0)
      const spent = all.reduce((sum, cost) => sum + cost.spent, 0)
      const waiting =
        running === 0
          ? ''
          : ` Waiting for ${formatCount(running, 'answer that is', 'answers that are')} being sent; Ctrl-C again ends ${running === 1 ? 'it' : 'them'}.`
      const look = calls === 0 ? '' : ' tidemark sessions lists them.'
      terminal.write(
        `${formatCount(calls, 'call')} in ${formatCount(all.length, 'session')}, ${formatDollars(spent)}.${look}${waiting}\n`,
      )
    },
  }
}

/** Successive calls without cache reads and writes after which a line says that the client does not ask for the cache. */
const UNCACHED_CALLS = 3
const NO_MARKERS =
  'This agent does not ask for the prompt cache, so each request is paid in full. Without --observe, Tidemark asks for it.'

interface CallCosts {
  readonly calls: number
  readonly spent: number
}

function addCall(before: CallCosts | undefined, { call }: EventOf<'priced'>): CallCosts {
  return { calls: (before?.calls ?? 0) + 1, spent: (before?.spent ?? 0) + (call.money.total ?? 0) }
}

const ID_CHARACTERS = 8

/** Returns the beginning of an id, which is enough to recognize and to open a session. */
function shortenId(id: string): string {
  const known = toSafeLine(id)
  return (known === '' ? '-' : /^[0-9a-f]{8}-/.test(known) ? known.slice(0, ID_CHARACTERS) : known).padEnd(
    ID_CHARACTERS,
  )
}

const NO_USAGE =
  'tokens and cost unknown: the answer has no usage, which clients of Chat Completions ask for with stream_options.include_usage'

function describeCall({ call, totals }: EventOf<'priced'>): string {
  const { input, cacheRead, writeShort, writeLong, output } = call.tokens
  const written = writeShort + writeLong
  const prompt = input + cacheRead + written
  if (prompt + output === 0) return `${NO_USAGE} (${formatCount(totals.calls, 'call')})`
  const cost = call.money.total === null ? 'price unknown' : formatDollars(call.money.total)
  const parts = [
    `${formatTokens(prompt)} tokens in, ${formatWholePercent(prompt === 0 ? 0 : cacheRead / prompt)} from the cache${cacheRead === 0 && written > 0 ? `, which is being written (${formatTokens(written)})` : ''}`,
    `${formatTokens(output)} out`,
    `${cost} (${formatCost(totals.spent.total, totals.spent.priced)} in ${formatCount(totals.calls, 'call')})`,
  ]
  return parts.join(', ')
}
