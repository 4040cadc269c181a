/**
 * The interface between the engine and one provider's words. Core names an act (limit the answer, clear old results, ask why the
 * cache missed), and the provider's codec in `wire` spells it as request fields and reads what a response says about it. Request
 * parameters are opaque to core: it stores, compares and sends them, and asks here what they mean.
 */
import type { Block } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'

/**
 * Writes and reads the request fields of one provider. `Profile`: its profile, whose rules and names the spelling follows.
 * All functions are pure.
 */
export interface ProviderSpelling<Profile> {
  /** Returns the request parameters for these settings. A setting that the profile refuses is left out. */
  settings(settings: GenerationSettings, profile: Profile): JsonObject
  /** Reads settings from request parameters, which may hold any value. */
  readSettings(parameters: RawFields): GivenSettings
  /** Returns the parameters with at most `maxOutput` output tokens, and with a thinking budget below that. */
  limitOutput(parameters: JsonObject, maxOutput: number): JsonObject

  /** Returns the first part of the cached prefix that a change of this parameter breaks; null if it breaks none. */
  findCacheLevel(parameter: string): PrefixPart | null
  /** Returns the parameters that explain cache misses, as texts that can be compared. */
  readCacheParameters(fields: JsonObject): CacheRelevantParameters

  /** Name of the request parameter that asks for context edits. */
  readonly editsParameter: string
  /** Returns the request fields that ask for context edits. Edits that the profile does not have are left out. */
  requestEdits(edits: readonly ProviderContextEdit[], profile: Profile): JsonObject
  /**
   * Returns the field of `fields` that asks for context edits, with other numbers of kept results and turns; empty if it has
   * none.
   */
  changeKept(fields: JsonObject, change: ChangeKept, profile: Profile): JsonObject
  /** Reads from a response which context edits the provider made; null if it reports none. */
  readEdits(response: ResponseFields, profile: Profile): AppliedContextEdits | null

  /**
   * Returns the request fields that ask the provider why the cache missed. `previousId`: id of the last response, null
   * before the first. Empty if the provider cannot know that id.
   */
  askDiagnosis(previousId: string | null): JsonObject
  /** Reads the provider's explanation of a cache miss from a response; null if it has none. */
  readDiagnosis(response: ResponseFields): ProviderCacheMissReport | null

  /** Returns the value of a cache marker. */
  spellMarker(marker: CacheMarker): JsonObject
  /** Reads a cache marker as a client spelt it; `ttl` is null if it names no lifetime. */
  readMarker(control: JsonObject): CacheMarker

  /** Returns the block that deletes the results of these tool calls from the cached prefix. Every later request repeats it. */
  deleteResults(toolUseIds: readonly string[]): Block
  /** Adds to a tool result the reference by which it can be deleted, if it has none. Other blocks stay as they are. */
  addReference(block: Block): Block

  /** Returns the request fields that ask the provider for a summary, and the parameters that may stand beside them. */
  requestSummary(parameters: JsonObject, instructions: string): SummaryRequest

  /** The rules about fields that only this provider has. */
  readonly checks: ProviderFieldChecks<Profile>
}

/** The message of a response, as the provider sent it. */
interface ResponseFields {
  readonly [field: string]: unknown
}

// Settings of an answer.

/** The output limit, thinking and effort that the engine asks of a response. */
export interface GenerationSettings {
  /** Maximum output tokens, thinking included. */
  readonly maxOutput: number
  /** How much the model thinks. Default: as the provider does without a setting. */
  readonly thinking?: { readonly mode: 'disabled' } | { readonly mode: 'enabled'; readonly budget: number }
  readonly effort?: string
}

interface GivenSettings {
  readonly maxOutput: number | null
  /** The provider's name of the thinking mode; null if there is none, undefined if thinking is not set at all. */
  readonly thinkingMode: string | null | undefined
}

// What the cache depends on.

/** The parts of the cached prefix, in request order. A change breaks the cache of its own part and of the parts after it. */
export type PrefixPart = 'tools' | 'system' | 'messages'

/** Request parameters on which the provider's cache depends, as text, and the context edits, which explain many misses. */
export interface CacheRelevantParameters {
  readonly speed?: string | undefined
  readonly effort?: string | undefined
  readonly thinking?: string | undefined
  readonly toolChoice?: string | undefined
  readonly betas?: readonly string[] | undefined
  /** Other parameters by name, such as the output format. */
  readonly others?: Readonly<Record<string, string>> | undefined
}

// Cache markers. Core plans them as positions with a lifetime; the value on the block is the provider's.

interface CacheMarker {
  /** The provider's name of the lifetime; null for its default. */
  readonly ttl: string | null
  /** The provider's name for who shares the cached prefix, such as `global`. Default: no scope is sent. */
  readonly scope?: string | undefined
}

// Context edits: what the provider is asked to clear from a request, and what it cleared.

/** A context edit that the provider is asked to make. */
export type ProviderContextEdit = ClearThinkingEdit | ClearResultsEdit

interface ClearThinkingEdit {
  readonly act: 'clear-thinking'
  readonly keepTurns: number | 'all'
}

export interface ClearResultsEdit {
  readonly act: 'clear-results'
  /** The provider clears only if the API request has at least this many input tokens. */
  readonly triggerTokens: number
  /** Number of newest tool calls whose results are not cleared. */
  readonly keep: number
  /** The provider clears nothing if it would clear fewer tokens than this. */
  readonly clearAtLeastTokens: number
  readonly excludedTools: readonly string[]
  readonly clearedInputs: readonly string[]
}

/** Returns how many results or turns to keep instead of `kept`. */
type ChangeKept = (act: ProviderContextEdit['act'], kept: number) => number

/**
 * What the provider cleared for one API request. The counts are totals, not increments, because the provider clears the
 * same content again for every request.
 */
export interface AppliedContextEdits {
  readonly results: number
  readonly thinkingTurns: number
  readonly tokens: number
  /** The provider's report as text, to be compared with that of other responses. */
  readonly text: string
}

// The provider's own explanation of a cache miss.

/** The part of the API request in which the provider saw a difference. */
export type CacheMissZone = 'model' | PrefixPart | 'other'

/** What the provider reports as the cause of a cache miss. */
export interface ProviderCacheMissReport {
  readonly zone: CacheMissZone
  /** The provider's estimate of the tokens that missed the cache; null if it gives none. */
  readonly missedTokens: number | null
  /** The provider's name for the reason of the miss, such as `tools_changed`. */
  readonly said: string
  /**
   * True if the provider may only have been unable to compare the two API requests. Such a report can support another
   * cause but is not a cause by itself.
   */
  readonly isVague?: boolean
}

// Summaries that the provider writes.

/** The parameters of the conversation that may stay in such a request, and the fields that ask for the summary (`extra`). */
interface SummaryRequest {
  readonly parameters: JsonObject
  readonly extra: JsonObject
}

// Validation. Core checks messages, blocks and tools; the rules about the provider's own fields are here.

/**
 * Checks of the provider's own fields. Messages are checked one by one; the state after each is immutable, so that messages
 * which no longer change are checked once. Nothing throws, whatever the fields hold.
 */
export interface ProviderFieldChecks<Profile> {
  /** State before the first message. */
  readonly start: unknown
  /** Name of the parameter that asks the provider for a summary in place of an answer; null if there is none. */
  readonly summaryParameter: string | null
  /** Checks the next message and returns the new state. */
  checkMessage(state: unknown, message: ParsedMessage, rules: CheckRules<Profile>): unknown
  /** Checks the fields of the request around its messages, and what depends on all messages. */
  finish(state: unknown, request: ParsedRequestFields, end: MessagesEnd, rules: CheckRules<Profile>): void
}

interface CheckRules<Profile> {
  readonly profile: Profile
  /** Reports a broken rule: its code, the path of the faulty value, and which value was expected. */
  report(code: string, path: string, expected?: string): void
}

interface MessagesEnd {
  /** Paths of the calls that the provider still runs. */
  readonly waiting: readonly string[]
  /** Cache markers that are added to messages after these were checked. */
  readonly placed: readonly unknown[]
}

/**
 * An API request, or a part of it, that has not been validated. Any field may be missing or have any type. A null field
 * counts as missing, as it does for providers.
 */
export interface RawFields {
  readonly [field: string]: unknown
}

/** The fields of a request around its messages, parsed once for all checks. */
export interface ParsedRequestFields {
  readonly raw: RawFields
  /** The blocks of the system prompt. A string becomes one text block. */
  readonly system: readonly ParsedBlock[]
  /** The declared tools, which may have any type; empty if there is no list. */
  readonly tools: readonly unknown[]
  readonly toolNames: ReadonlySet<unknown>
  readonly betas: readonly unknown[]
  /** The thinking mode that the request sets, or that of the provider. */
  readonly thinkingMode: unknown
  readonly asksSummary: boolean
}

/** A well-formed block of the request, with its path for findings. */
export interface ParsedBlock {
  readonly path: string
  readonly block: Block
  /** The blocks inside a tool result; empty for other blocks. */
  readonly inner: readonly ParsedBlock[]
}

export interface ParsedMessage {
  readonly index: number
  readonly path: string
  readonly role: 'user' | 'assistant' | 'system'
  readonly fields: RawFields
  /** The blocks of the message. A string as content becomes one text block. */
  readonly blocks: readonly ParsedBlock[]
  /** All blocks of the message; each block is followed by the blocks nested in it. */
  readonly all: readonly ParsedBlock[]
  /** True if the content of the message is an empty string or an empty list. */
  readonly isEmpty: boolean
}
