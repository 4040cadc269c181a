/**
 * How OpenAI's APIs spell what the engine asks for: the output limit and the effort. Both APIs cache automatically, so
 * few parameters affect the cache, and neither can edit the context on request.
 */
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import type { CacheMissZone, PrefixPart, ProviderSpelling } from '@tidemark/core/policy/provider-spelling'

type OpenaiSpelling = ProviderSpelling<ProviderProfile>

/** Field names that differ between the two APIs. */
interface SettingNames {
  readonly maxOutput: string
  /** Returns the field that sets the effort; empty if the server has none. */
  spellEffort(effort: string): JsonObject
  readEffort(parameters: { readonly [field: string]: unknown }): unknown
}

/** Parameters that are part of the cached prefix, each with the first part of the prefix that a change invalidates. */
const CACHE_LEVELS: ReadonlyMap<string, PrefixPart> = new Map([
  ['model', 'tools'],
  ['prompt_cache_key', 'tools'],
  ['instructions', 'system'],
  ['text', 'system'],
  ['response_format', 'system'],
])

/** No checks of provider fields: the engine sets none that could be wrong, and the provider checks those of the caller. */
const NO_CHECKS: OpenaiSpelling['checks'] = {
  start: null,
  checkMessage: (state) => state,
  finish: () => {},
  summaryParameter: null,
}

function createSpelling({ maxOutput, spellEffort, readEffort }: SettingNames): OpenaiSpelling {
  return {
    settings: ({ maxOutput: most, thinking, effort }, { thinking: { modes } }) => {
      const canRest = modes.includes('disabled') && modes.length > 1
      const level = effort ?? (thinking?.mode === 'disabled' && canRest ? 'none' : undefined)
      const isThinker = modes.some((mode) => mode !== 'disabled')
      return { [maxOutput]: most, ...(level === undefined || !isThinker ? {} : spellEffort(level)) }
    },
    readSettings(parameters) {
      const { [maxOutput]: most } = parameters
      const effort = readEffort(parameters)
      return {
        maxOutput: typeof most === 'number' ? most : null,
        thinkingMode: typeof effort !== 'string' ? undefined : effort === 'none' ? 'disabled' : 'adaptive',
      }
    },
    limitOutput(parameters, most) {
      const { [maxOutput]: asked } = parameters
      return typeof asked === 'number' && asked > most ? { ...parameters, [maxOutput]: most } : parameters
    },
    findCacheLevel: (parameter) => CACHE_LEVELS.get(parameter) ?? null,
    readCacheParameters: (fields) => ({
      others: Object.fromEntries(
        Object.entries(fields)
          .filter(([name]) => CACHE_LEVELS.has(name) && name !== 'model')
          .map(([name, value]) => [name, JSON.stringify(value)]),
      ),
    }),
    editsParameter: 'context_management',
    requestEdits: () => ({}),
    changeKept: () => ({}),
    readEdits: () => null,
    askDiagnosis,
    readDiagnosis,
    spellMarker: ({ ttl }) => ({ mode: 'explicit', ...(ttl === null ? {} : { ttl }) }),
    readMarker: ({ ttl }) => ({ ttl: typeof ttl === 'string' ? ttl : null }),
    // Never called: profiles say that nothing can be deleted from the cached prefix.
    deleteResults: () => ({ type: 'text', text: '' }),
    addReference: (block) => block,
    requestSummary: (parameters) => ({ parameters, extra: {} }),
    checks: NO_CHECKS,
  }
}

/** Returns the field that asks for a comparison with an earlier response. Models from GPT-5.6 on support it. */
function askDiagnosis(previousId: string | null): JsonObject {
  if (previousId === null || !previousId.startsWith('resp_')) return {}
  return { prompt_cache_options: { comparison_response_id: previousId } }
}

const MISS_ZONES: readonly (readonly [RegExp, CacheMissZone])[] = [
  [/model/, 'model'],
  [/tool/, 'tools'],
  [/instruction|system|developer/, 'system'],
  [/input|prefix|content/, 'messages'],
]

const readDiagnosis: OpenaiSpelling['readDiagnosis'] = ({ prompt_cache_diagnostics: report }) => {
  if (!isObject(report) || typeof report.reason !== 'string') return null
  const { reason, cache_missed_tokens: missed } = report
  const zone = MISS_ZONES.find(([pattern]) => pattern.test(reason))?.[1]
  return {
    zone: zone ?? 'other',
    missedTokens: typeof missed === 'number' ? missed : null,
    said: reason,
    ...(zone === undefined ? { isVague: true } : {}),
  }
}

export const responsesSpelling: OpenaiSpelling = createSpelling({
  maxOutput: 'max_output_tokens',
  spellEffort: (effort) => ({ reasoning: { effort } }),
  readEffort: ({ reasoning }) => (isObject(reasoning) ? reasoning.effort : undefined),
})

export const chatSpelling: OpenaiSpelling = createSpelling({
  maxOutput: 'max_completion_tokens',
  spellEffort: (effort) => ({ reasoning_effort: effort }),
  readEffort: ({ reasoning_effort: effort }) => effort,
})

/** Servers other than OpenAI use the older field name. Their effort is configured in the server or the model. */
export const compatibleSpelling: OpenaiSpelling = createSpelling({
  maxOutput: 'max_tokens',
  spellEffort: () => ({}),
  readEffort: () => undefined,
})
