/** What a provider itself says about a miss: where the two requests part, and how many tokens it thinks that cost. */
import { isObject } from '../conversation/json.ts'
import type { ProviderZone } from './reason.ts'

export interface ProviderWord {
  readonly zone: ProviderZone
  /** An estimate of the provider's; null where it gives none. */
  readonly missedTokens: number | null
  /** Its own word for it. */
  readonly said: string
  /** It may mean no more than that the provider could not look: then it can back a reason, and is none by itself. */
  readonly isVague?: boolean
}

const ZONES: ReadonlyMap<string, ProviderZone> = new Map([
  ['model_changed', 'model'],
  ['system_changed', 'system'],
  ['tools_changed', 'tools'],
  ['messages_changed', 'messages'],
  ['unavailable', 'other'],
])

/** Another parameter than those it names differs, or the request before is further back than it looks. */
const VAGUE: ReadonlySet<string> = new Set(['unavailable'])

/** From the `diagnostics` of a response; null where it was not asked, does not know, or sees no difference. */
export function providerWord(diagnostics: unknown): ProviderWord | null {
  const reason = isObject(diagnostics) ? diagnostics.cache_miss_reason : null
  if (!isObject(reason) || typeof reason.type !== 'string') return null
  const zone = ZONES.get(reason.type)
  if (zone === undefined) return null
  const missed = reason.cache_missed_input_tokens
  const word = { zone, missedTokens: typeof missed === 'number' ? missed : null, said: reason.type }
  return VAGUE.has(reason.type) ? { ...word, isVague: true } : word
}
