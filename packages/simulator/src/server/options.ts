/** What can be said when a simulator is made; everything has a default. */
import { TidemarkError } from '@tidemark/core'
import type { BindingSettings } from '../context/thinking-binding.ts'
import { DEFAULT_KEY, type KeySettings } from '../prompt-cache/cache-key.ts'
import { type Clock, systemClock } from '../protocol/clock-and-ids.ts'
import { type ModelTable, modelTable, type SimulatedModel } from '../protocol/models.ts'
import type { RequestRecord } from '../request-log/request-log.ts'
import { echo, type Script } from '../scripts/script.ts'
import type { RuleSettings } from '../validation/rule.ts'
import { type Accounts, DEFAULT_LIMITS, type RateLimits } from './accounts.ts'

export interface SimulatorOptions {
  /** The model behind it. Default: `echo`. */
  readonly script?: Script
  /** More models, or others under the same ids. */
  readonly models?: readonly SimulatedModel[]
  /** One context window for every model. */
  readonly window?: number
  readonly clock?: Clock
  /** The same seed gives the same ids, signatures and random numbers. */
  readonly seed?: string
  /** API keys that are accepted, and whose they are. Without it any key is. */
  readonly accounts?: Accounts
  readonly limits?: Partial<RateLimits>
  /** What is in the cache key beyond doubt is not to be set; the rest is. */
  readonly cacheKey?: Partial<KeySettings>
  readonly binding?: Partial<BindingSettings>
  readonly rules?: Partial<RuleSettings>
  /** The undocumented `cache_edits`, `cache_reference` and `cache_deleted_input_tokens`. */
  readonly cachedClearing?: boolean
  /** What `clear_tool_uses_20250919` leaves where a result was; the provider's own words are not known. */
  readonly clearedPlaceholder?: string
  /** Before every answer begins: requests that overlap must be able to. */
  readonly firstByteMs?: number
  /** Characters in one delta of a stream. */
  readonly deltaSize?: number
  /** How many requests `/_simulator/requests` remembers. */
  readonly keepRequests?: number
  /** Bytes of prompts remembered to make the next one cheap. */
  readonly keepPromptBytes?: number
  /** Told of each request when it has been answered. */
  readonly onRequest?: (record: RequestRecord) => void
}

export interface Settings {
  readonly script: Script
  readonly models: ModelTable
  readonly clock: Clock
  readonly seed: string
  readonly accounts: Accounts | undefined
  readonly limits: RateLimits
  readonly cacheKey: KeySettings
  readonly binding: BindingSettings
  readonly rules: RuleSettings
  readonly cachedClearing: boolean
  readonly clearedPlaceholder: string
  readonly firstByteMs: number
  readonly deltaSize: number
  readonly keepRequests: number
  readonly keepPromptBytes: number
  readonly onRequest: (record: RequestRecord) => void
}

const MEGABYTE = 1_048_576

export function settingsOf(options: SimulatorOptions): Settings {
  return {
    script: scriptOf(options.script),
    models: modelTable(options.models, options.window),
    clock: options.clock ?? systemClock,
    seed: options.seed ?? 'tidemark',
    accounts: options.accounts,
    limits: { ...DEFAULT_LIMITS, ...options.limits },
    cacheKey: { ...DEFAULT_KEY, ...options.cacheKey },
    binding: { enforced: true, editedText: 'error', foreignSignatures: 'error', ...options.binding },
    rules: { firstRole: 'user', ...options.rules },
    cachedClearing: options.cachedClearing ?? false,
    clearedPlaceholder: options.clearedPlaceholder ?? '[cleared to save context]',
    firstByteMs: options.firstByteMs ?? 0,
    deltaSize: options.deltaSize ?? 24,
    keepRequests: options.keepRequests ?? 200,
    keepPromptBytes: options.keepPromptBytes ?? 256 * MEGABYTE,
    onRequest: options.onRequest ?? (() => undefined),
  }
}

/** What `loadScript` brings is easily taken for the script itself. */
function scriptOf(script: Script = echo): Script {
  if (typeof script === 'function') return script
  throw new TidemarkError(
    'bad-option',
    'script: expected a function (request, context) => reply. What loadScript gives is { ok, script }: pass its script.',
    { details: { found: typeof script } },
  )
}
