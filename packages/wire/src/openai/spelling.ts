/**
 * How OpenAI's APIs spell what the engine asks for: the largest output and the effort. Both cache by themselves, so hardly
 * any parameter matters to the cache, and neither edits the context on request.
 */
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import type { CacheLevel, ProviderSpelling, ProviderZone } from '@tidemark/core/policy/provider-spelling'

type OpenaiSpelling = ProviderSpelling<ProviderProfile>

/** The names that differ between the APIs. */
interface SettingNames {
  readonly maxOutput: string
  /** Returns the field that sets the effort; empty if the server has none. */
  spellEffort(effort: string): JsonObject
  readEffort(parameters: { readonly [field: string]: unknown }): unknown
}

/** Parameters on which the cached prefix depends, with the first part of it that a change breaks. */
const CACHE_LEVELS: ReadonlyMap<string, CacheLevel> = new Map([
  ['model', 'tools'],
  ['prompt_cache_key', 'tools'],
  ['instructions', 'system'],
  ['text', 'system'],
  ['response_format', 'system'],
])

/** Requests have no fields beside those that the engine sets: what a caller adds, the provider judges. */
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
    // Nothing can be deleted from the cached prefix, and profiles say so.
    deleteResults: () => ({ type: 'text', text: '' }),
    addReference: (block) => block,
    requestSummary: (parameters) => ({ parameters, extra: {} }),
    checks: NO_CHECKS,
  }
}

/** Asks for a comparison with an earlier response, which models from GPT-5.6 on can make. */
function askDiagnosis(previousId: string | null): JsonObject {
  if (previousId === null || !previousId.startsWith('resp_')) return {}
  return { prompt_cache_options: { comparison_response_id: previousId } }
}

const MISS_ZONES: readonly (readonly [RegExp, ProviderZone])[] = [
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

/** Servers other than OpenAI have the older name, and the effort is a setting of the server or of the model. */
export const compatibleSpelling: OpenaiSpelling = createSpelling({
  maxOutput: 'max_tokens',
  spellEffort: () => ({}),
  readEffort: () => undefined,
})
