import { createUsage } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import { messages, withText } from '../../test/breaks/mutations.ts'
import { RULES } from '../../test/breaks/rules.ts'
import { longTalk, requestOf, rounded, type Talk, TEXT } from '../../test/breaks/talk.ts'
import { createWatcher, type Watcher } from '../../test/breaks/watcher.ts'
import type { CacheCheckOutcome } from '../cache/cache-monitor.ts'
import { findSentBlockText, type SentRequest } from '../cache/sent-request.ts'
import { countMessages, findMessageAt } from '../request/block-index.ts'
import type { TokenUsage } from './reply-report.ts'

const STEP = 128
const RULES_OF_PREFIXES = {
  ...RULES,
  profile: defineMessagesProfile({
    cache: {
      kind: 'prefix',
      stepTokens: STEP,
      softSeconds: 300,
      minimumTokens: 1_024,
      maxMarkers: 0,
      ttls: [{ name: '24h', seconds: 86_400 }],
      defaultTtl: '24h',
    },
  }),
}

/** The texts that a provider sees one after the other. */
function textsIn({ tools, system, messages }: SentRequest): readonly string[] {
  const blocks = Array.from({ length: countMessages(messages) }, (_, message) => {
    const content = findMessageAt(messages, message)?.message.content
    const count = Array.isArray(content) ? content.length : 1
    return Array.from({ length: count }, (__, block) => findSentBlockText(messages, { message, block }))
  })
  return [...tools.map(({ text }) => text), ...system.map(({ text }) => text), ...blocks.flat()]
}

const countTokens = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + Math.ceil(text.length / 4), 0)

/** A provider that caches each prompt by itself and reads the longest common beginning, in steps. */
class PrefixCache {
  readonly #prompts: (readonly string[])[] = []
  readonly #reports: boolean
  isEmptied = false

  constructor(reports = true) {
    this.#reports = reports
  }

  answer(sent: SentRequest): TokenUsage {
    const texts = textsIn(sent)
    const all = countTokens(texts)
    const shared = this.isEmptied
      ? 0
      : Math.max(0, ...this.#prompts.map((prompt) => countShared(prompt, texts)))
    const read = shared < 1_024 ? 0 : shared - (shared % STEP)
    this.#prompts.push(texts)
    return this.#reports
      ? createUsage({ input: all - read, read, output: 10 })
      : createUsage({ input: all, output: 10 })
  }
}

function countShared(one: readonly string[], other: readonly string[]): number {
  const differs = one.findIndex((text, index) => text !== other[index])
  return countTokens(differs === -1 ? one : one.slice(0, differs))
}

const unmarked = (talk: Talk, at: number): SentRequest => ({ ...requestOf(talk, at), markers: [] })

function exchange(watcher: Watcher, cache: PrefixCache, sent: SentRequest): CacheCheckOutcome {
  return watcher.exchange(sent, cache.answer(sent))
}

/** A conversation of two requests; `change` is applied to the second. */
function runTwo(
  change: (sent: SentRequest) => SentRequest,
  { at = 1_000, cache = new PrefixCache(), befall = (_: PrefixCache) => {} } = {},
): CacheCheckOutcome {
  const watcher = createWatcher(RULES_OF_PREFIXES)
  const talk = longTalk()
  const grown = rounded(talk, 2, TEXT)
  exchange(watcher, cache, unmarked(talk, 0))
  exchange(watcher, cache, unmarked(talk, 10))
  befall(cache)
  return exchange(watcher, cache, change(unmarked(grown, at)))
}

describe('a provider that caches any prefix by itself', () => {
  it('is forecast to the step over a growing conversation, without a marker', () => {
    const watcher = createWatcher(RULES_OF_PREFIXES)
    const cache = new PrefixCache()
    let talk = longTalk()
    const outcomes = [0, 1, 2, 3, 4, 5].map((call) => {
      const outcome = exchange(watcher, cache, unmarked(talk, call * 1_000))
      talk = rounded(talk, 2, TEXT)
      return outcome
    })
    expect(outcomes[0]).toEqual({ kind: 'first' })
    for (const outcome of outcomes.slice(1)) {
      if (outcome.kind !== 'read') throw new Error(JSON.stringify(outcome))
      expect(outcome.read).toBe(outcome.expected)
      expect(outcome.read % STEP).toBe(0)
    }
  })

  it('keeps what stands before a change: a removed tool is a break, with its cause', () => {
    const outcome = runTwo((sent) => ({ ...sent, tools: sent.tools.slice(1) }))
    expect(outcome).toMatchObject({ kind: 'broke', event: { reason: { kind: 'tools-removed' }, read: 0 } })
  })

  it('reads the shared beginning again after a change of the system prompt, and the next request all', () => {
    const watcher = createWatcher(RULES_OF_PREFIXES)
    const cache = new PrefixCache()
    const talk = longTalk()
    const changed = (sent: SentRequest): SentRequest => ({
      ...sent,
      system: sent.system.map((piece, index) => (index === 2 ? { ...piece, text: `${piece.text}!` } : piece)),
    })
    exchange(watcher, cache, unmarked(talk, 0))
    exchange(watcher, cache, unmarked(talk, 10))
    const broke = exchange(watcher, cache, changed(unmarked(rounded(talk, 2, TEXT), 1_000)))
    expect(broke).toMatchObject({ kind: 'broke', event: { reason: { kind: 'section-changed' } } })
    const next = exchange(watcher, cache, changed(unmarked(rounded(rounded(talk, 2, TEXT), 2, TEXT), 2_000)))
    expect(next.kind).toBe('read')
    if (next.kind === 'read') expect(next.read).toBe(next.expected)
  })

  it('charges a clearing with what stands behind it, and reads all of the rest', () => {
    const watcher = createWatcher(RULES_OF_PREFIXES)
    const cache = new PrefixCache()
    const cleared = messages((all) =>
      all.map((sent, index) => (index === 4 ? withText(sent, TEXT, 'cleared') : sent)),
    )
    exchange(watcher, cache, unmarked(longTalk(), 0))
    exchange(watcher, cache, unmarked(longTalk(), 10))
    watcher.announce('repl_main_thread', { kind: 'clearing', act: 'cleared 1 result', freedTokens: 1_000 })
    const charged = exchange(watcher, cache, cleared(unmarked(longTalk(), 1_000)))
    expect(charged).toMatchObject({ kind: 'ours', act: { act: 'cleared 1 result' } })
    const next = exchange(watcher, cache, cleared(unmarked(longTalk(), 2_000)))
    expect(next).toMatchObject({ kind: 'read' })
    if (next.kind === 'read') expect(next.read).toBe(next.expected)
  })

  it('gives no alarm if it forgets for no reason, since it promises nothing', () => {
    const outcome = runTwo((sent) => sent, {
      befall: (cache) => {
        cache.isEmptied = true
      },
    })
    expect(outcome).toEqual({ kind: 'not-judged', why: 'best-effort' })
  })

  it('gives no alarm if it never reports what it read', () => {
    const cache = new PrefixCache(false)
    const outcome = runTwo((sent) => ({ ...sent, tools: sent.tools.slice(1) }), { cache })
    expect(outcome).toEqual({ kind: 'not-judged', why: 'best-effort' })
  })

  it('may have forgotten after a pause that its lifetime would outlast', () => {
    const outcome = runTwo((sent) => sent, {
      at: 400_000,
      befall: (cache) => {
        cache.isEmptied = true
      },
    })
    expect(outcome).toMatchObject({ kind: 'broke', event: { reason: { kind: 'expired' } } })
  })
})
