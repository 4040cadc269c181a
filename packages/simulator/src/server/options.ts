/** The options of a simulator and their defaults. */
import { TidemarkError } from '@tidemark/core/errors'
import type { ThinkingBindingSettings } from '../context/thinking-binding.ts'
import type { DialectName } from '../openai/dialects.ts'
import { createOpenaiModelTable, type OpenaiModelTable } from '../openai/openai-models.ts'
import { type CacheKeyRules, DEFAULT_CACHE_KEY_RULES } from '../prompt-cache/cache-key.ts'
import { type Clock, systemClock } from '../protocol/clock-and-ids.ts'
import { createModelTable, type ModelTable, type SimulatedModel } from '../protocol/models.ts'
import type { RequestRecord } from '../request-log/request-log.ts'
import { echo, type Script } from '../scripts/script.ts'
import type { RuleSettings } from '../validation/rule.ts'
import { type AccountsByKey, DEFAULT_RATE_LIMITS, type RateLimits } from './accounts.ts'

export interface SimulatorOptions {
  /** The script that plays the model. Default: `echo`. */
  readonly script?: Script
  /** Models to add to the built-in ones, or to replace those of the same id. */
  readonly models?: readonly SimulatedModel[]
  /** Context window in tokens, which overrides that of every model. */
  readonly window?: number
  /** Clock that the simulator uses. Default: the system clock. */
  readonly clock?: Clock
  /**
   * Seed for ids, signatures and random numbers. The same seed gives the same values. Without a seed, `createSimulator`
   * always gives the same values, but `serve` gives unique ids, because clients keep them.
   */
  readonly seed?: string
  /** The accepted API keys and their accounts. Default: every key is accepted. */
  readonly accounts?: AccountsByKey
  readonly limits?: Partial<RateLimits>
  /**
   * Selects the request settings that are part of the cache key, where the provider's documentation does not specify
   * it.
   */
  readonly cacheKey?: Partial<CacheKeyRules>
  /** How strictly thinking blocks are checked when a client sends them back. */
  readonly binding?: Partial<ThinkingBindingSettings>
  /** Validation rules that the provider's documentation does not specify. */
  readonly rules?: Partial<RuleSettings>
  /**
   * True to accept the undocumented `cache_edits` and `cache_reference`, and to report `cache_deleted_input_tokens`.
   * Default: false.
   */
  readonly cachedClearing?: boolean
  /**
   * Text that replaces tool results cleared by `clear_tool_uses_20250919`. The provider's own text is not documented.
   */
  readonly clearedPlaceholder?: string
  /** Delay in milliseconds before the first byte of every response, so that requests overlap. Default: 0. */
  readonly firstByteMs?: number
  /** Number of characters per delta of a stream. Default: 24. */
  readonly deltaSize?: number
  /**
   * Number of requests kept for `/_simulator/requests`: the newest. 0 keeps none, `Infinity` all. Default: 200. Totals
   * count all requests.
   */
  readonly keepRequests?: number
  /**
   * Maximum bytes of earlier prompts kept in memory. Requests that extend a kept prompt are processed faster.
   * Default: 256 MiB.
   */
  readonly keepPromptBytes?: number
  /** Most bytes of a request body, also after it is decompressed; a larger one is refused with 413. Default: 32,000,000. */
  readonly maxBodyBytes?: number
  /** Behaviour of OpenAI's APIs. */
  readonly openai?: Partial<OpenaiSettings>
  /** Called with the record of each request when it is answered. */
  readonly onRequest?: (record: RequestRecord) => void
}

/** Behaviour of OpenAI's APIs that depends on the server or is not documented. */
interface OpenaiSettings {
  /** The server that `/v1/chat/completions` behaves like. The header `x-simulator-dialect` overrides it. */
  readonly dialect: DialectName
  /**
   * How a prompt over the window is refused on a stream: by status 400, or after the first events by an `error` event
   * (with the error in a field of its own, or flat) or by `response.failed`.
   */
  readonly overflow: 'status' | 'error-event' | 'flat-error-event' | 'failed-event'
}

/** The options of a simulator with all defaults filled in. */
export interface SimulatorSettings
  extends Required<Omit<SimulatorOptions, 'models' | 'window' | 'accounts' | 'limits' | 'openai'>> {
  readonly models: ModelTable
  readonly openaiModels: OpenaiModelTable
  readonly openai: OpenaiSettings
  /** Context window that overrides that of every model; undefined if none does. */
  readonly window: number | undefined
  readonly accounts: AccountsByKey | undefined
  readonly limits: RateLimits
  readonly cacheKey: CacheKeyRules
  readonly binding: ThinkingBindingSettings
  readonly rules: RuleSettings
  /** Seed for ids. Signatures do not depend on it, so that a restarted server accepts its earlier signatures. */
  readonly idSeed: string
}

const DEFAULT_SEED = 'tidemark'
const MEGABYTE = 1_048_576

/** Fills in the defaults. Throws a `TidemarkError` (`bad-option`) for an invalid `script` or `keepRequests`. */
export function resolveSettings(options: SimulatorOptions): SimulatorSettings {
  return {
    script: validateScript(options.script),
    models: createModelTable(options.models, options.window),
    openaiModels: createOpenaiModelTable(options.window),
    openai: { dialect: 'openai', overflow: 'status', ...options.openai },
    window: options.window,
    clock: options.clock ?? systemClock,
    seed: options.seed ?? DEFAULT_SEED,
    idSeed: options.seed ?? DEFAULT_SEED,
    accounts: options.accounts,
    limits: { ...DEFAULT_RATE_LIMITS, ...options.limits },
    cacheKey: { ...DEFAULT_CACHE_KEY_RULES, ...options.cacheKey },
    binding: { enforced: true, editedText: 'error', foreignSignatures: 'error', ...options.binding },
    rules: { firstRole: 'user', ...options.rules },
    cachedClearing: options.cachedClearing ?? false,
    clearedPlaceholder: options.clearedPlaceholder ?? '[cleared to save context]',
    firstByteMs: options.firstByteMs ?? 0,
    deltaSize: options.deltaSize ?? 24,
    keepRequests: validateKeepRequests(options.keepRequests),
    keepPromptBytes: options.keepPromptBytes ?? 256 * MEGABYTE,
    maxBodyBytes: options.maxBodyBytes ?? 32_000_000,
    onRequest: options.onRequest ?? (() => undefined),
  }
}

/**
 * Throws if `script` is not a function. Callers without type checks often pass the whole result of `loadScenario`
 * instead of its `script`.
 */
function validateScript(script: Script = echo): Script {
  if (typeof script === 'function') return script
  throw new TidemarkError(
    'bad-option',
    'script: expected a function (request, context) => reply. loadScenario returns { ok, script }: pass its script.',
    { details: { found: typeof script } },
  )
}

/** The number of requests kept if the options do not say. */
const DEFAULT_KEPT_REQUESTS = 200

function validateKeepRequests(kept: number = DEFAULT_KEPT_REQUESTS): number {
  if (kept === Number.POSITIVE_INFINITY || (Number.isSafeInteger(kept) && kept >= 0)) return kept
  throw new TidemarkError(
    'bad-option',
    `keepRequests: expected a whole number of at least 0, found ${kept}.`,
    {
      details: { found: kept },
    },
  )
}
