/** The state that a simulator keeps between requests. */

import { createMessageThreads, type MessageThreads } from '../context/message-threads.ts'
import { createSigner, type Signer } from '../context/signatures.ts'
import { readThinkingSignature } from '../context/thinking-binding.ts'
import { createThinkingPrefixTracker, type ThinkingPrefixTracker } from '../context/thinking-prefix.ts'
import { createFaultSchedule, type FaultSchedule } from '../faults/fault-schedule.ts'
import { type CacheDiagnostics, createCacheDiagnostics } from '../prompt-cache/cache-diagnostics.ts'
import { type CacheStore, createCacheStore } from '../prompt-cache/prompt-cache.ts'
import { createPromptTree, type PromptTree, type PromptZone } from '../prompt-cache/prompt-tree.ts'
import {
  type AdjustableClock,
  createAdjustableClock,
  createIdGenerator,
  createSeededRandom,
  type IdGenerator,
} from '../protocol/clock-and-ids.ts'
import type { Block } from '../protocol/messages-request.ts'
import {
  countBlockTokens,
  countTextTokens,
  countToolDefinitionTokens,
  TURN_OVERHEAD_TOKENS,
} from '../protocol/tokenizer.ts'
import { createRequestLog, type RequestLog } from '../request-log/request-log.ts'
import { createRateLimiter, type RateLimiter } from './accounts.ts'
import { createOpenaiState, type OpenaiState } from './openai-state.ts'
import type { SimulatorSettings } from './options.ts'

export interface SimulatorState {
  readonly settings: SimulatorSettings
  readonly clock: AdjustableClock
  readonly ids: IdGenerator
  readonly random: () => number
  readonly signer: Signer
  readonly tree: PromptTree
  readonly tracker: ThinkingPrefixTracker
  readonly store: CacheStore
  readonly threads: MessageThreads
  readonly diagnostics: CacheDiagnostics
  readonly limiter: RateLimiter
  readonly log: RequestLog
  /** Faults scheduled for future requests. */
  readonly faults: FaultSchedule
  /** What OpenAI's APIs keep. */
  readonly openai: OpenaiState
  /** Counts the tokens of a block in a message. */
  readonly countTokens: (block: Block) => number
}

export function createSimulatorState(settings: SimulatorSettings): SimulatorState {
  const clock = createAdjustableClock(settings.clock)
  const signer = createSigner(settings.seed)
  const countTokens = (block: Block): number =>
    countBlockTokens(block, (thinking) => countThinkingTokens(thinking, signer))
  const maxBytes = settings.keepPromptBytes
  return {
    settings,
    clock,
    ids: createIdGenerator(settings.idSeed),
    random: createSeededRandom(settings.seed),
    signer,
    tree: createPromptTree({ maxBytes, countTokens: countTokensAt }),
    tracker: createThinkingPrefixTracker(createPromptTree({ maxBytes, countTokens: () => 0 })),
    store: createCacheStore(),
    threads: createMessageThreads(),
    diagnostics: createCacheDiagnostics(),
    limiter: createRateLimiter(settings.limits, clock),
    log: createRequestLog(settings.keepRequests),
    faults: createFaultSchedule(),
    openai: createOpenaiState(settings.seed),
    countTokens,
  }

  function countTokensAt(block: Block, zone: PromptZone, before: PromptZone | null): number {
    if (zone === 'tools' || (zone === 'system' && block.type !== 'text'))
      return countToolDefinitionTokens(block)
    if (zone === 'system') return countTokens(block)
    return countTokens(block) + (zone === before ? 0 : TURN_OVERHEAD_TOKENS)
  }
}

function countThinkingTokens(block: Block, signer: Signer): number {
  const signed = readThinkingSignature(block, signer)
  if (signed !== null) return signed.tokens
  return countTextTokens(typeof block.thinking === 'string' ? block.thinking : '')
}
