/**
 * `tidemark watch`: a proxy on this machine under an agent that can only set a base URL, such as Claude Code. Prints what
 * each request costs, and cache breaks, clearings and compactions as they happen, until interrupted.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { SessionEvent } from 'tidemark'
import { serveLoopbackProxy, tidemarkHome } from 'tidemark/internal'
import { formatCount, formatDollars, formatTokens, formatWholePercent } from '../render/format-numbers.ts'
import { formatPath, sanitizeText } from '../render/text.ts'
import type { Terminal } from '../terminal.ts'
import { EXIT_CODES } from './exit-codes.ts'

export interface WatchCommandOptions {
  readonly port?: number
  readonly observe?: boolean
  readonly upstream?: string
  readonly session?: string
  readonly json?: boolean
}

const DEFAULT_PORT = 8_787
const DEFAULT_UPSTREAM = 'https://api.anthropic.com'

export async function runWatchCommand(choices: WatchCommandOptions, terminal: Terminal): Promise<number> {
  const home = tidemarkHome(terminal.env)
  const { upstream = DEFAULT_UPSTREAM, port = DEFAULT_PORT, session } = choices
  const proxy = await serveLoopbackProxy({
    upstream: upstream.replace(/\/+$/, ''),
    port,
    token: await readToken(home),
    home,
    env: terminal.env,
    mode: choices.observe === true ? 'observe' : 'manage',
    ...(session === undefined ? {} : { session }),
    onEvent: (event, id) => printEvent(event, id, choices, terminal),
  })
  terminal.write(
    choices.json === true
      ? `${JSON.stringify({ url: proxy.url, upstream, home })}\n`
      : formatGreeting(proxy.url, upstream, home, choices),
  )
  await new Promise<void>((resolve) => {
    if (terminal.interrupted?.aborted === true) resolve()
    terminal.interrupted?.addEventListener('abort', () => resolve(), { once: true })
  })
  await proxy.close()
  return EXIT_CODES.done
}

/** Returns the token of this user. It stays the same, so that the address can be kept in settings. */
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
  upstream: string,
  home: string,
  { observe }: WatchCommandOptions,
): string {
  const what =
    observe === true
      ? 'Observing: nothing is changed, everything is recorded.'
      : 'Managing: requests are those of a session, cached, cleared and compacted.'
  return [
    `${what} Press Ctrl-C to stop.`,
    `  ANTHROPIC_BASE_URL=${url} your-agent`,
    `  to ${upstream}; sessions in ${formatPath(join(home, 'sessions'))}`,
    '',
    '',
  ].join('\n')
}

function printEvent(event: SessionEvent, id: string, choices: WatchCommandOptions, terminal: Terminal): void {
  const text = describeWatchEvent(event)
  if (text === null || choices.json === true) return
  terminal.write(`${sanitizeText(id === '' ? '-' : id)}  ${sanitizeText(text)}\n`)
}

/** Returns the line that tells of an event; null for events that a user need not see. */
export function describeWatchEvent(event: SessionEvent): string | null {
  switch (event.type) {
    case 'priced':
      return describeCall(event)
    case 'cache-break':
      return event.event.sentence
    case 'microcompact': {
      const { tokensBefore, tokensAfter } = event
      return `Cleared old tool results: ${formatTokens(tokensBefore)} → ${formatTokens(tokensAfter)} tokens.`
    }
    case 'compact': {
      const { tokensBefore, tokensAfter } = event.compaction
      return `Compacted: ${formatTokens(tokensBefore)} → ${formatTokens(tokensAfter)} tokens.`
    }
    case 'host-history-changed':
    case 'request-passed':
    case 'notice':
      return event.message
    default:
      return null
  }
}

function describeCall({ call, totals }: Extract<SessionEvent, { readonly type: 'priced' }>): string {
  const { input, cacheRead, write5m, write1h, output } = call.tokens
  const prompt = input + cacheRead + write5m + write1h
  const cost = call.money.total === null ? 'price unknown' : formatDollars(call.money.total)
  const parts = [
    `${formatTokens(prompt)} tokens in, ${formatWholePercent(prompt === 0 ? 0 : cacheRead / prompt)} from the cache`,
    `${formatTokens(output)} out`,
    `${cost} (${formatDollars(totals.spent.total ?? 0)} in ${formatCount(totals.calls, 'call')})`,
  ]
  return parts.join(', ')
}
