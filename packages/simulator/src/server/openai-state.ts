/** What the simulator of OpenAI's APIs stores between requests. */
import { type BreakpointCache, createBreakpointCache } from '../openai/cache/breakpoint-cache.ts'
import { createPrefixCache, type PrefixCache } from '../openai/cache/prefix-cache.ts'
import {
  createPromptCacheDiagnostics,
  type PromptCacheDiagnostics,
  type PromptFingerprint,
} from '../openai/cache/prompt-cache-diagnostics.ts'
import { createItemSealer, type ItemSealer } from '../openai/responses/sealed-items.ts'
import {
  createReasoningIndex,
  createStoredResponses,
  type ReasoningIndex,
  type StoredResponses,
} from '../openai/responses/stored-responses.ts'

/** An earlier request, with which later ones are compared to explain a cache miss. */
export interface RecentOpenaiRequest {
  readonly number: number
  readonly fingerprint: PromptFingerprint
  hasBegun(): boolean
}

export interface OpenaiState {
  readonly sealer: ItemSealer
  readonly stored: StoredResponses
  readonly reasoning: ReasoningIndex
  readonly prefixes: PrefixCache
  readonly breakpoints: BreakpointCache
  readonly diagnostics: PromptCacheDiagnostics
  /** The latest requests, oldest first. */
  readonly recent: RecentOpenaiRequest[]
}

export function createOpenaiState(seed: string): OpenaiState {
  return {
    sealer: createItemSealer(seed),
    stored: createStoredResponses(),
    reasoning: createReasoningIndex(),
    prefixes: createPrefixCache(),
    breakpoints: createBreakpointCache(),
    diagnostics: createPromptCacheDiagnostics(),
    recent: [],
  }
}
