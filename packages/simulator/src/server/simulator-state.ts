/** Everything a simulator keeps between requests. */

import { createThreads, type Threads } from '../context/message-threads.ts'
import { createSealer, type Sealer } from '../context/signatures.ts'
import { openSeal } from '../context/thinking-binding.ts'
import { createPrefixWalker, type PrefixWalker } from '../context/thinking-prefix.ts'
import { createFaultSchedule, type FaultSchedule } from '../faults/fault-schedule.ts'
import { createDiagnostics, type Diagnostics } from '../prompt-cache/diagnostics.ts'
import { type CacheStore, createCacheStore } from '../prompt-cache/prompt-cache.ts'
import { createPromptTree, type PromptTree, type Zone } from '../prompt-cache/prompt-tree.ts'
import type { Block } from '../protocol/api.ts'
import {
  type Ids,
  type ShiftedClock,
  seededIds,
  seededRandom,
  shiftedClock,
} from '../protocol/clock-and-ids.ts'
import { blockTokens, TURN_TOKENS, textTokens, toolTokens } from '../protocol/tokenizer.ts'
import { createRequestLog, type RequestLog } from '../request-log/request-log.ts'
import { createRateLimiter, type RateLimiter } from './accounts.ts'
import type { Settings } from './options.ts'

export interface World {
  readonly settings: Settings
  readonly clock: ShiftedClock
  readonly ids: Ids
  readonly random: () => number
  readonly signer: Sealer
  readonly tree: PromptTree
  readonly tracker: PrefixWalker
  readonly store: CacheStore
  readonly threads: Threads
  readonly diagnostics: Diagnostics
  readonly limiter: RateLimiter
  readonly log: RequestLog
  /** Faults for requests to come. */
  readonly faults: FaultSchedule
  /** Tokens of a block in a message. */
  readonly countTokens: (block: Block) => number
}

export function createWorld(settings: Settings): World {
  const clock = shiftedClock(settings.clock)
  const signer = createSealer(settings.seed)
  const countTokens = (block: Block): number =>
    blockTokens(block, (thinking) => thinkingTokens(thinking, signer))
  const maxBytes = settings.keepPromptBytes
  return {
    settings,
    clock,
    ids: seededIds(settings.seed),
    random: seededRandom(settings.seed),
    signer,
    tree: createPromptTree({ maxBytes, countTokens: countTokensAt }),
    tracker: createPrefixWalker(createPromptTree({ maxBytes, countTokens: () => 0 })),
    store: createCacheStore(),
    threads: createThreads(),
    diagnostics: createDiagnostics(),
    limiter: createRateLimiter(settings.limits, clock),
    log: createRequestLog(settings.keepRequests),
    faults: createFaultSchedule(),
    countTokens,
  }

  function countTokensAt(block: Block, zone: Zone, before: Zone | null): number {
    if (zone === 'tools' || (zone === 'system' && block.type !== 'text')) return toolTokens(block)
    if (zone === 'system') return countTokens(block)
    return countTokens(block) + (zone === before ? 0 : TURN_TOKENS)
  }
}

function thinkingTokens(block: Block, signer: Sealer): number {
  const signed = openSeal(block, signer)
  if (signed !== null) return signed.tokens
  return textTokens(typeof block.thinking === 'string' ? block.thinking : '')
}
