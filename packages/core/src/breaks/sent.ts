/**
 * A request as it was really sent, after every hook, in the pieces a cache can keep or lose. It is made of what
 * the engine has at hand anyway: a flattened view fits as it is, and tools and system sections stay the same
 * objects for an epoch, so most of a comparison is a look at references. Nothing in it may be changed later.
 */
import type { MessageList } from '../prompt/count.ts'

export interface SentRequest {
  /** The query source: `repl_main_thread`, `agent:…`, `compact` … */
  readonly source: string
  /** When it was sent, in milliseconds: a cache counts its lifetime from here. */
  readonly at: number
  readonly tools: readonly SentPiece[]
  readonly system: readonly SentPiece[]
  readonly messages: MessageList
  readonly parameters: SentParameters
  /** In the order of the request. */
  readonly markers: readonly SentMarker[]
  /**
   * The source whose cache it reads: the request repeats that source's last one and adds messages that nobody
   * will send again. Where absent, a `compact` is a fork of the main thread.
   */
  readonly forkOf?: string
  /**
   * Messages, by index, that are other than their records say, and who made them so. For hosts that watch requests
   * of their own making; a turn of the engine sends what its records say, and no hook comes between.
   */
  readonly touched?: ReadonlyMap<number, Exclude<Hand, 'unknown'>>
}

/** A tool or a section of the system prompt: its text without any cache marker. */
export interface SentPiece {
  readonly name: string
  readonly text: string
}

/** Who changed what had been sent. */
export type Hand = 'clearing' | 'compaction' | 'hook' | 'host' | 'unknown'

/** What else a provider caches by, each as text. What it does not cache by (`max_tokens`, `metadata`) stays out. */
export interface SentParameters {
  readonly model: string
  readonly speed?: string | undefined
  readonly effort?: string | undefined
  readonly thinking?: string | undefined
  readonly toolChoice?: string | undefined
  readonly betas?: readonly string[] | undefined
  /** By name: extra body, context management, output format; also what is not sent and may tell why (overage, mode). */
  readonly others?: Readonly<Record<string, string>> | undefined
}

export type Zone = 'tools' | 'system' | 'messages'

export interface SentMarker {
  readonly zone: Zone
  /** Which tool, section or message. */
  readonly index: number
  /** Which block of the message. */
  readonly block?: number
  /** The lifetime, as the provider names it and in seconds. */
  readonly ttl: string
  readonly seconds: number
  readonly scope?: string
}
