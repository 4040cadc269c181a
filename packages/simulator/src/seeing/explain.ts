/** Why a request read less from the cache than an earlier one had left there for it. */
import type { CacheKey } from '../cache/key.ts'
import { keyAt, LOOK_BACK } from '../cache/look-up.ts'
import { levelAt, type Prompt } from '../cache/prompt.ts'
import { tokensAt } from '../cache/split.ts'
import type { CacheStore } from '../cache/store.ts'
import { divergenceAt } from './divergence.ts'
import { type Kin, kinOf } from './kin.ts'
import type { CacheMiss, MissReason } from './record.ts'
import type { Seen } from './request-log.ts'

export interface MissInput {
  readonly prompt: Prompt
  readonly key: CacheKey
  readonly scope: Seen['scope']
  /** The position that was read, if any. */
  readonly hit: number | null
  readonly earlier: readonly Seen[]
  readonly store: CacheStore
  readonly now: number
}

export function explainMiss(input: MissInput): CacheMiss | null {
  const kin = kinOf(input.prompt, input.scope, input.earlier)
  const { cachedUpTo } = kin?.seen ?? {}
  if (kin === null || cachedUpTo === null || cachedUpTo === undefined) return null
  const there = tokensAt(kin.seen.prompt, cachedUpTo)
  const tokens = there - (input.hit === null ? 0 : tokensAt(input.prompt, input.hit))
  if (tokens <= 0) return null
  const found = reasonOf(input, kin, cachedUpTo)
  const divergence =
    found.reason === 'content-changed' ? divergenceAt(input.prompt, kin.seen.prompt, kin.common) : null
  return {
    ...found,
    tokens,
    comparedWith: kin.seen.number,
    ...(divergence === null ? {} : { divergence }),
  }
}

interface Found {
  readonly reason: MissReason
  readonly why: string
}

function reasonOf(input: MissInput, kin: Kin, cachedUpTo: number): Found {
  const { prompt, key } = input
  if (prompt.breakpoints.length === 0)
    return { reason: 'no-breakpoint', why: 'the request has no cache_control, so nothing was looked for' }
  const changed = changedParts(kin.seen.key, key, prompt, cachedUpTo)
  if (changed.length > 0) return { reason: 'key-changed', why: changed.join('; ') }
  if (kin.common <= cachedUpTo)
    return { reason: 'content-changed', why: `the prompt changed at ${placeOf(prompt, kin)}` }
  return entryReason(input, kin, cachedUpTo)
}

function placeOf(prompt: Prompt, kin: Kin): string {
  return kin.common < prompt.positions.length
    ? prompt.pathOf(kin.common)
    : 'its end, which is no longer there'
}

/** Differences on the levels that the cached prefix reaches into. */
function changedParts(before: CacheKey, now: CacheKey, prompt: Prompt, upTo: number): readonly string[] {
  const reached = { tools: 0, system: 1, messages: 2 }
  const level = reached[levelAt(prompt, Math.min(upTo, prompt.positions.length - 1))]
  const names = new Set([...before.parts, ...now.parts].map((part) => part.name))
  return [...names].flatMap((name) => {
    const was = before.parts.find((part) => part.name === name)
    const is = now.parts.find((part) => part.name === name)
    if (was?.value === is?.value || reached[(was ?? is)?.level ?? 'messages'] > level) return []
    return [`${name}: ${was?.value ?? '(default)'} → ${is?.value ?? '(default)'}`]
  })
}

function entryReason({ prompt, key, store, now }: MissInput, kin: Kin, upTo: number): Found {
  if (!kin.seen.begun())
    return { reason: 'not-yet-written', why: 'the response that would have written it had not begun' }
  const entry = store.peek(keyAt(prompt, key, upTo))
  if (entry === null) return { reason: 'unknown', why: 'no entry was written there' }
  if (now >= entry.expiresAt) {
    const late = Math.round((now - entry.expiresAt) / 1_000)
    return { reason: 'expired', why: `its lifetime (${entry.ttl}) was over ${late} s ago` }
  }
  const last = prompt.breakpoints.findLast(({ explicit }) => explicit)?.position ?? 0
  return {
    reason: 'beyond-look-back',
    why: `the entry is ${last - upTo} blocks before the nearest breakpoint; ${LOOK_BACK} positions are looked at`,
  }
}
