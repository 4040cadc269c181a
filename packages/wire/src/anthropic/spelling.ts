/**
 * How the Messages API spells what the engine asks for: settings, context edits, diagnostics, summaries. Also lists
 * which parameters the prompt cache depends on. `core/policy/provider-spelling.ts` defines the meaning of each
 * function.
 */
import { isToolResult } from '@tidemark/core/log/block'
import { isJsonObject, isObject, type Json, type JsonObject } from '@tidemark/core/log/json'
import type { ContextEditRules, ProviderProfile } from '@tidemark/core/policy/provider-profile'
import type {
  CacheMissZone,
  CacheRelevantParameters,
  GenerationSettings,
  PrefixPart,
  ProviderContextEdit,
  ProviderSpelling,
} from '@tidemark/core/policy/provider-spelling'
import { toTokenCount } from '@tidemark/core/tokens/usage'
import { anthropicFieldChecks } from './validate-request.ts'

type AnthropicSpelling = ProviderSpelling<ProviderProfile>

// Settings of an answer.

function spellSettings(
  { maxOutput, thinking, effort }: GenerationSettings,
  { refusedFields }: ProviderProfile,
): JsonObject {
  const refusesEffort = refusedFields.some(
    (path) => path === 'output_config' || path === 'output_config.effort',
  )
  return {
    max_tokens: maxOutput,
    ...(thinking === undefined ? {} : { thinking: spellThinking(thinking) }),
    ...(effort === undefined || refusesEffort ? {} : { output_config: { effort } }),
  }
}

function spellThinking(thinking: NonNullable<GenerationSettings['thinking']>): JsonObject {
  return thinking.mode === 'disabled'
    ? { type: 'disabled' }
    : { type: 'enabled', budget_tokens: thinking.budget }
}

const readSettings: AnthropicSpelling['readSettings'] = ({ max_tokens, thinking }) => {
  const mode = isObject(thinking) ? thinking.type : undefined
  return {
    maxOutput: typeof max_tokens === 'number' ? max_tokens : null,
    thinkingMode: isObject(thinking) ? (typeof mode === 'string' ? mode : null) : undefined,
  }
}

const limitOutput: AnthropicSpelling['limitOutput'] = (parameters, maxOutput) => {
  const { max_tokens: asked, thinking } = parameters
  if (typeof asked !== 'number' || asked <= maxOutput) return parameters
  const budget = isObject(thinking) ? thinking.budget_tokens : undefined
  const isOver = typeof budget === 'number' && budget >= maxOutput
  const limited = isOver ? { thinking: { ...Object(thinking), budget_tokens: maxOutput - 1 } } : {}
  return { ...parameters, max_tokens: maxOutput, ...limited }
}

// What the prompt cache depends on.

/**
 * The part of the cached prefix that each request parameter belongs to; null if the cache does not depend on it.
 * Parameters that are not listed belong to the messages.
 */
const PARAMETER_LEVELS: ReadonlyMap<string, PrefixPart | null> = new Map([
  ['model', 'tools'],
  ['speed', 'system'],
  ['cache_control', null],
  ['compaction', null],
  ['context_management', null],
  ['diagnostics', null],
  ['max_tokens', null],
  ['metadata', null],
  ['service_tier', null],
  ['stop_sequences', null],
  ['stream', null],
])

function findCacheLevel(parameter: string): PrefixPart | null {
  const level = PARAMETER_LEVELS.get(parameter)
  return level === undefined ? 'messages' : level
}

const SEPARATE_PARAMETERS = new Set(['speed', 'thinking', 'tool_choice', 'betas', 'output_config'])

function readCacheParameters(fields: JsonObject): CacheRelevantParameters {
  const { effort, ...output } = isObject(fields.output_config) ? fields.output_config : {}
  // Context edits by the provider are not part of the cache key, but they explain many cache misses.
  const isCompared = (name: string): boolean => findCacheLevel(name) !== null || name === EDITS
  const rest = Object.entries(fields).filter(([name]) => !SEPARATE_PARAMETERS.has(name) && isCompared(name))
  const others = { ...Object.fromEntries(rest), ...(Object.keys(output).length === 0 ? {} : { output }) }
  return {
    speed: toParameterText(fields.speed),
    effort: typeof effort === 'string' ? effort : undefined,
    thinking: toParameterText(fields.thinking),
    toolChoice: toParameterText(fields.tool_choice),
    betas: Array.isArray(fields.betas) ? fields.betas.map(String) : undefined,
    others: Object.fromEntries(Object.entries(others).map(([name, value]) => [name, JSON.stringify(value)])),
  }
}

function toParameterText(value: Json | undefined): string | undefined {
  if (value === undefined || value === null) return undefined
  return typeof value === 'string' ? value : JSON.stringify(value)
}

// Context edits: what the provider clears from a request.

const EDITS = 'context_management'

function requestEdits(edits: readonly ProviderContextEdit[], { contextEdits }: ProviderProfile): JsonObject {
  const spelt = edits.flatMap((edit): readonly JsonObject[] => {
    const type = edit.act === 'clear-thinking' ? contextEdits.clearThinking : contextEdits.clearToolUses
    return type === null ? [] : [{ type, ...spellEdit(edit) }]
  })
  return spelt.length === 0 ? {} : { [EDITS]: { edits: spelt } }
}

function spellEdit(edit: ProviderContextEdit): JsonObject {
  if (edit.act === 'clear-thinking')
    return { keep: edit.keepTurns === 'all' ? 'all' : { type: 'thinking_turns', value: edit.keepTurns } }
  const tokens = (value: number): Json => ({ type: 'input_tokens', value })
  return {
    trigger: tokens(edit.triggerTokens),
    keep: { type: 'tool_uses', value: edit.keep },
    clear_at_least: tokens(edit.clearAtLeastTokens),
    ...(edit.excludedTools.length === 0 ? {} : { exclude_tools: edit.excludedTools }),
    ...(edit.clearedInputs.length === 0 ? {} : { clear_tool_inputs: edit.clearedInputs }),
  }
}

const changeKept: AnthropicSpelling['changeKept'] = (fields, change, { contextEdits }) => {
  const management = fields[EDITS]
  if (!isJsonObject(management)) return {}
  if (!Array.isArray(management.edits)) return { [EDITS]: management }
  const edits = management.edits.map((edit: Json): Json => {
    const act = isJsonObject(edit) ? findAct(edit.type, contextEdits) : null
    if (act === null || !isJsonObject(edit)) return edit
    const { keep } = edit
    if (!isJsonObject(keep) || typeof keep.value !== 'number') return edit
    return { ...edit, keep: { ...keep, value: change(act, keep.value) } }
  })
  return { [EDITS]: { ...management, edits } }
}

function findAct(type: unknown, names: ContextEditRules): ProviderContextEdit['act'] | null {
  if (type === names.clearToolUses) return 'clear-results'
  return type === names.clearThinking ? 'clear-thinking' : null
}

const readEdits: AnthropicSpelling['readEdits'] = (response, { contextEdits }) => {
  const management = response[EDITS]
  const listed: unknown = isObject(management) ? management.applied_edits : null
  if (!Array.isArray(listed) || listed.length === 0) return null
  const known = listed.filter(isObject).filter(({ type }) => findAct(type, contextEdits) !== null)
  const sum = (field: string): number => known.reduce((total, edit) => total + toTokenCount(edit[field]), 0)
  return {
    results: sum('cleared_tool_uses'),
    thinkingTurns: sum('cleared_thinking_turns'),
    tokens: sum('cleared_input_tokens'),
    text: JSON.stringify(listed),
  }
}

// The provider's explanation of a cache miss.

/**
 * Matches ids of responses from the provider. A response from a client's list has an id of the log, which the provider
 * does not know.
 */
const RESPONSE_ID = /^msg_/

function askDiagnosis(previousId: string | null): JsonObject {
  const isKnown = previousId === null || RESPONSE_ID.test(previousId)
  return isKnown ? { diagnostics: { previous_message_id: previousId } } : {}
}

const MISS_REASON_ZONES: ReadonlyMap<string, CacheMissZone> = new Map([
  ['model_changed', 'model'],
  ['system_changed', 'system'],
  ['tools_changed', 'tools'],
  ['messages_changed', 'messages'],
  ['unavailable', 'other'],
])

/** Reasons that name no cause: an unspecified parameter differs, or the provider no longer knows the previous request. */
const VAGUE_MISS_REASONS: ReadonlySet<string> = new Set(['unavailable'])

const readDiagnosis: AnthropicSpelling['readDiagnosis'] = ({ diagnostics }) => {
  const reason = isObject(diagnostics) ? diagnostics.cache_miss_reason : null
  if (!isObject(reason) || typeof reason.type !== 'string') return null
  const zone = MISS_REASON_ZONES.get(reason.type)
  if (zone === undefined) return null
  const missed = reason.cache_missed_input_tokens
  const report = { zone, missedTokens: typeof missed === 'number' ? missed : null, said: reason.type }
  return VAGUE_MISS_REASONS.has(reason.type) ? { ...report, isVague: true } : report
}

// Cache markers, and deletions from the cached prefix. Deletions are undocumented: a tool result sent with a
// `cache_reference` is deleted by a `cache_edits` block that names it, which every later request repeats.

const spellMarker: AnthropicSpelling['spellMarker'] = ({ ttl, scope }) => ({
  type: 'ephemeral',
  ...(ttl === null ? {} : { ttl }),
  ...(scope === undefined ? {} : { scope }),
})

const readMarker: AnthropicSpelling['readMarker'] = ({ ttl, scope }) => ({
  ttl: typeof ttl === 'string' ? ttl : null,
  ...(typeof scope === 'string' ? { scope } : {}),
})

const deleteResults: AnthropicSpelling['deleteResults'] = (toolUseIds) => ({
  type: 'cache_edits',
  edits: toolUseIds.map((id) => ({ type: 'delete', cache_reference: id })),
})

const addReference: AnthropicSpelling['addReference'] = (block) => {
  const isNew = isToolResult(block) && block.cache_reference === undefined
  return isNew ? { ...block, cache_reference: block.tool_use_id } : block
}

// Summaries that the provider writes. A request for a summary must not contain context edits.

const requestSummary: AnthropicSpelling['requestSummary'] = (given, instructions) => {
  const { [EDITS]: _, ...parameters } = given
  return { parameters, extra: { compaction: { type: 'summarize', instructions } } }
}

export const anthropicSpelling: AnthropicSpelling = {
  settings: spellSettings,
  readSettings,
  limitOutput,
  findCacheLevel,
  readCacheParameters,
  editsParameter: EDITS,
  requestEdits,
  changeKept,
  readEdits,
  askDiagnosis,
  readDiagnosis,
  spellMarker,
  readMarker,
  deleteResults,
  addReference,
  requestSummary,
  checks: anthropicFieldChecks,
}
