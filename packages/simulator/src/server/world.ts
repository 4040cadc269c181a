/** All that a simulator remembers between requests. */
import type { Block } from '../api.ts'
import { createDiagnostics, type Diagnostics } from '../cache/diagnostics.ts'
import type { Zone } from '../cache/prompt-node.ts'
import { createPromptTree, type PromptTree } from '../cache/prompt-tree.ts'
import { type CacheStore, createCacheStore } from '../cache/store.ts'
import { type ShiftedClock, shiftedClock } from '../clock.ts'
import { openSeal } from '../context/binding.ts'
import { createPrefixWalker, type PrefixWalker } from '../context/prefix.ts'
import { createSealer, type Sealer } from '../context/signature.ts'
import { createThreads, type Threads } from '../context/threads.ts'
import { createFaultSchedule, type FaultSchedule } from '../faults/schedule.ts'
import { type Ids, seededIds, seededRandom } from '../ids.ts'
import type { Settings } from '../options.ts'
import { createRequestLog, type RequestLog } from '../seeing/request-log.ts'
import { blockTokens, TURN_TOKENS, textTokens, toolTokens } from '../tokenizer.ts'
import { createRateLimiter, type RateLimiter } from './rate-limit.ts'

export interface World {
  readonly settings: Settings
  readonly clock: ShiftedClock
  readonly ids: Ids
  readonly random: () => number
  readonly sealer: Sealer
  readonly tree: PromptTree
  readonly walker: PrefixWalker
  readonly store: CacheStore
  readonly threads: Threads
  readonly diagnostics: Diagnostics
  readonly limiter: RateLimiter
  readonly log: RequestLog
  /** Faults asked for ahead of time. */
  readonly faults: FaultSchedule
  /** Tokens of a block of a message. */
  readonly costOf: (block: Block) => number
}

export function createWorld(settings: Settings): World {
  const clock = shiftedClock(settings.clock)
  const sealer = createSealer(settings.seed)
  const costOf = (block: Block): number => blockTokens(block, (thought) => thinkingTokens(thought, sealer))
  const maxBytes = settings.keepPromptBytes
  return {
    settings,
    clock,
    ids: seededIds(settings.seed),
    random: seededRandom(settings.seed),
    sealer,
    tree: createPromptTree({ maxBytes, costOf: (block, zone, before) => placeCost(block, zone, before) }),
    walker: createPrefixWalker(createPromptTree({ maxBytes, costOf: () => 0 })),
    store: createCacheStore(),
    threads: createThreads(),
    diagnostics: createDiagnostics(),
    limiter: createRateLimiter(settings.limits, clock),
    log: createRequestLog(settings.keepRequests),
    faults: createFaultSchedule(),
    costOf,
  }

  function placeCost(block: Block, zone: Zone, before: Zone | null): number {
    if (zone === 'tools' || (zone === 'system' && block.type !== 'text')) return toolTokens(toolOf(block))
    if (zone === 'system') return costOf(block)
    return costOf(block) + (zone === before ? 0 : TURN_TOKENS)
  }
}

function toolOf(block: Block): Parameters<typeof toolTokens>[0] {
  // A tool definition came out of JSON: it has no undefined in it.
  return block as Parameters<typeof toolTokens>[0]
}

function thinkingTokens(block: Block, sealer: Sealer): number {
  const seal = openSeal(block, sealer)
  if (seal !== null) return seal.tokens
  return textTokens(typeof block.thinking === 'string' ? block.thinking : '')
}
