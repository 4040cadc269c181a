/** Keeps the prompt cache of an idle session from expiring: decides whether that pays, and sends the request that does so. */

import { computePrefixExpiry, EMPTY_CACHE_MODEL, findNewestPrefixExpiry } from '../cache/cache-model.ts'
import type { TokenRates } from '../cost/prices.ts'
import type { CacheRenewal, TurnEvent } from '../engine/events.ts'
import { findCurrentRates } from '../engine/host.ts'
import type { SessionState } from '../engine/session-state.ts'
import type { TurnContext } from '../engine/session-writer.ts'
import { buildForkRequest, measureForkCacheRead, runSideCall } from '../engine/side-call.ts'
import { isKnownRecord, SYNTHETIC_MODEL } from '../log/record.ts'
import { requireRecordAt, type SessionLog } from '../log/session-log.ts'
import { findWritePriceClass } from '../request/cache-ttl.ts'
import type { ForkMessage } from '../request/fork-request.ts'

/** Query source (label) of requests that keep the cache alive. */
const KEEP_ALIVE_SOURCE = 'keep_alive'

/** The cache is renewed this many milliseconds before it expires, but at most a tenth of its lifetime before. */
const LEAD_MS = 30_000

function findRenewalLead(ttlMs: number): number {
  return Math.min(LEAD_MS, ttlMs / 10)
}

/** What the decision to renew an idle cache depends on. */
export interface RenewalInput {
  readonly mode: 'off' | 'keep-alive' | 'auto'
  /** Dollars per million tokens; null if prices are unknown: nothing is renewed then. */
  readonly rates: TokenRates | null
  /** Which of the two cache-write prices applies; it depends on the cache lifetime in use. */
  readonly write: 'writeShort' | 'writeLong'
  readonly ttlMs: number
  /** Maximum number of renewals after one response, by policy. */
  readonly maximum: number
  /** Returns the pauses between model calls of this session, in milliseconds. Called only in mode `auto`. */
  readonly readPauses: () => readonly number[]
}

/** The session's own pauses are used only if at least this many of them outlasted the cache. */
const MIN_PAUSES = 3

/**
 * Returns how many requests after one response may keep the cache alive. Each costs a cache read, r. Without them the
 * next request writes the cache again, for w − r more than a read. So they pay while there are fewer than w/r − 1. In
 * mode `auto`: the number that would have cost least in the session's earlier pauses; 0 if there were too few of these.
 */
export function countPayingRenewals(input: RenewalInput): number {
  return planRenewals(input)?.count ?? 0
}

/**
 * Returns true if a summary that is due should be written instead of the next renewal, since writing it reads, and so
 * renews, the cache. That is so if renewals pay, and the summary costs no more than the pause would cost with renewals.
 * `price`: dollars that the summary is expected to cost, null if unknown (never true then); `tokens`: size of the context.
 */
export function isSummaryCheaperThanPause(
  input: RenewalInput,
  { price, tokens }: { readonly price: number | null; readonly tokens: number },
): boolean {
  const renewals = planRenewals(input)
  if (renewals === null || renewals.count === 0 || price === null) return false
  return price <= (renewals.cost * tokens) / 1_000_000
}

/**
 * Returns the number of renewals that pay, and what a pause then costs for each million cached tokens. In mode
 * `keep-alive` that is the most that the pause may cost, because its length is unknown. Null if nothing shows that one pays.
 */
function planRenewals(input: RenewalInput): { readonly count: number; readonly cost: number } | null {
  const read = input.rates?.cacheRead ?? null
  const write = input.rates?.[input.write] ?? null
  if (input.mode === 'off' || read === null || write === null || read <= 0) return null
  const most = Math.min(input.maximum, Math.floor(write / read - 1))
  if (input.mode === 'keep-alive') return { count: Math.max(0, most), cost: write - read }
  if (most <= 0) return null
  const pauses = input.readPauses().filter((pause) => pause >= input.ttlMs)
  if (pauses.length < MIN_PAUSES) return null
  let best = { count: 0, cost: Number.POSITIVE_INFINITY }
  for (let count = 0; count <= most; count += 1) {
    const sum = pauses.reduce(
      (total, pause) => total + pricePausePerMillion(pause, count, input.ttlMs, { read, write }),
      0,
    )
    const cost = sum / pauses.length
    if (cost < best.cost) best = { count, cost }
  }
  return best
}

/**
 * Returns the dollars that a pause costs for each million cached tokens if the cache is renewed up to `count` times: a
 * read per renewal and, if the cache has expired by the end, what writing costs above reading. `read`, `write`: dollars
 * per million tokens.
 */
export function pricePausePerMillion(
  pauseMs: number,
  count: number,
  ttlMs: number,
  { read, write }: { readonly read: number; readonly write: number },
): number {
  const interval = ttlMs - findRenewalLead(ttlMs)
  const made = Math.min(count, Math.floor(pauseMs / interval))
  const isAlive = pauseMs < made * interval + ttlMs
  return made * read + (isAlive ? 0 : write - read)
}

/** Returns the times between the records of successive responses of the conversation, in milliseconds, oldest first. */
export function listPauses(session: SessionLog): readonly number[] {
  const pauses: number[] = []
  let last: { readonly id: string; readonly at: number } | null = null
  for (const index of session.branch) {
    const record = requireRecordAt(session, index)
    if (!isKnownRecord(record) || record.type !== 'assistant') continue
    const { id, model } = record.message
    const at = Date.parse(record.timestamp)
    if (model === SYNTHETIC_MODEL || Number.isNaN(at)) continue
    if (last !== null && last.id !== id) pauses.push(Math.max(0, at - last.at))
    last = { id, at }
  }
  return pauses
}

/** Returns when the cached conversation expires, in milliseconds since 1970; null if nothing is known to be cached. */
export function findCacheExpiry({ cacheModel }: SessionState): number | null {
  return findNewestPrefixExpiry(cacheModel ?? EMPTY_CACHE_MODEL)
}

/** Returns when an idle cache is to be renewed: shortly before it expires; null if nothing is known to be cached. */
export function findRenewalTime({ cacheModel }: Pick<SessionState, 'cacheModel'>): number | null {
  const last = cacheModel?.chains[0]?.prefixes.at(-1)
  return last === undefined ? null : computePrefixExpiry(last) - findRenewalLead(last.seconds * 1000)
}

/**
 * Reads the cached conversation with a small request, which renews its lifetime: the last request as it was sent, and a
 * message that asks for one word. Every other field stays as it was, since a changed one could miss the cache. Costs a
 * model call. Returns null if there is nothing to renew, or if the request failed. `count`: number of such requests since
 * the last response, including this one.
 */
export async function* renewCache(
  turn: TurnContext,
  count: number,
): AsyncGenerator<TurnEvent, CacheRenewal | null> {
  const { host, state } = turn
  const options = { source: KEEP_ALIVE_SOURCE, messages: [KEEP_ALIVE_MESSAGE], asSent: true }
  const fork = buildForkRequest(state, options, host)
  if (!fork.ok) return null
  let price: number | null = null
  const call = runSideCall(turn, { request: fork.request, source: KEEP_ALIVE_SOURCE, forkOf: host.source })
  for (;;) {
    const step = await call.next()
    if (step.done !== true) {
      if (step.value.type === 'priced') price = step.value.call.money.total
      yield step.value
      continue
    }
    const { answer } = step.value
    if (!answer.ok) return null
    const { read, missed } = measureForkCacheRead(KEEP_ALIVE_SOURCE, answer.reply, step.value)
    const isRead = missed === null && read > 0
    const rates = findCurrentRates(host, read)
    const write = rates?.[findWritePriceClass(fork.request.ttl, host.profile.cache)] ?? null
    const cacheRead = rates?.cacheRead ?? null
    const rewritePrice =
      write === null || cacheRead === null ? null : (read * (write - cacheRead)) / 1_000_000
    const expiresAt = isRead ? findCacheExpiry(turn.state) : null
    const kept = { tokensRead: read, isRead, count, expiresAt, price, rewritePrice }
    yield { type: 'cache-kept-warm', ...kept }
    return kept
  }
}

const KEEP_ALIVE_MESSAGE: ForkMessage = {
  role: 'user',
  content: [
    {
      type: 'text',
      text: 'A check of the connection, which is not part of the work. Answer with the single word ok, without thinking and without any tool.',
    },
  ],
}
