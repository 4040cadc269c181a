/**
 * What a provider reports with a reply, in terms that fit every provider: the tokens of the call, and why the reply
 * ended. The engine reads only these. The log keeps the provider's own fields beside them, in `message`; records that
 * have nothing else are completed when they are read, by a function of the codec.
 */
import { isObject } from './json.ts'

export interface TokenCounts {
  /** Tokens of the prompt that were neither read from the prompt cache nor written to it. */
  readonly input: number
  /** Tokens read from the prompt cache. */
  readonly read: number
  /** Tokens written to the prompt cache, by lifetime: the shortest one of the provider, and any longer one. */
  readonly writes: { readonly short: number; readonly long: number }
  readonly output: number
  /** What is assumed: that writes without a lifetime have the shortest one; prompt or output of a reply that broke off. */
  readonly assumed?: readonly ('lifetime' | 'prompt' | 'output')[]
}

/** One of several runs of a model within one call. */
export interface ModelRunUsage extends TokenCounts {
  /** `message`: a part of the response. `compaction`: a summary by the provider. `other-model`: not the requested model. */
  readonly kind: 'message' | 'compaction' | 'other-model' | 'unknown'
  readonly model?: string
}

/** The tokens of a model call. */
export interface TokenUsage extends TokenCounts {
  /**
   * The runs of the call, if the provider lists them: they are billed, and the last one of kind `message` has the size of
   * the context. The counts of the call itself are then only the provider's totals.
   */
  readonly parts?: readonly ModelRunUsage[]
  /** All tokens that the provider has deleted from the cached prefix so far; missing if it does not report them. */
  readonly removed?: number
  /** True if the provider caches by itself and reports only what was read. */
  readonly areWritesUnknown?: true
  /** What a price may depend on beside the tokens, by the provider's names: `{ service_tier: 'batch' }`. */
  readonly terms?: Readonly<Record<string, string>>
  /** Uses of tools that the provider runs and charges for, by tool: `{ web_search_requests: 2 }`. */
  readonly toolUses?: Readonly<Record<string, number>>
}

/**
 * Why a reply ended. `done`: the model was ready. `sequence`: at a stop sequence of the request. `tools`: it waits for
 * results. `cut`: at the output limit. `paused`: the provider interrupted it, and it continues if it is sent back.
 * `window`: the context window was full. `refused`: the model declined. `compacted`: it is a summary by the provider.
 */
export type ReplyStop = (typeof STOPS)[number]
const STOPS = [
  'done',
  'sequence',
  'tools',
  'cut',
  'paused',
  'window',
  'refused',
  'compacted',
  'other',
] as const

export interface ReplyReport {
  /** Missing if the provider did not report it, or not readably. */
  readonly usage?: TokenUsage
  /** Missing until the reply has ended. */
  readonly stop?: ReplyStop
}

/** Reads the report from the provider's own fields of a message. A codec provides it. */
export type ReplyReportReader = (message: { readonly [field: string]: unknown }) => ReplyReport

export function isReplyStop(value: unknown): value is ReplyStop {
  return STOPS.some((stop) => stop === value)
}

export function isTokenUsage(value: unknown): value is TokenUsage {
  if (!hasCounts(value)) return false
  const { parts } = value as { readonly parts?: unknown }
  return parts === undefined || (Array.isArray(parts) && parts.every(hasCounts))
}

function hasCounts(value: unknown): value is TokenCounts {
  if (!isObject(value) || !isObject(value.writes)) return false
  const { input, read, writes, output } = value
  return [input, read, writes.short, writes.long, output].every((count) => typeof count === 'number')
}
