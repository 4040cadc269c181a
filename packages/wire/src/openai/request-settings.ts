/**
 * Converts the settings of a request to OpenAI's fields: output limit, effort, tool choice, tools. Settings that
 * already have OpenAI's form, as clients send them, stay unchanged.
 */
import { isJsonObject, type Json, type JsonObject } from '@tidemark/core/log/json'

/** Parameter with the role of the client's system prompt, if it is not the usual one. Never sent as a parameter. */
export const SYSTEM_ROLE_PARAMETER = 'system_role'

/** Parameter with the name under which the client limits the output, if it is not the dialect's. Never sent as a parameter. */
export const LIMIT_FIELD_PARAMETER = 'output_limit_field'

/** Fields of the neutral form that these APIs do not have; the encoder omits them. */
const NEUTRAL_FIELDS: ReadonlySet<string> = new Set([
  'max_tokens',
  'thinking',
  'output_config',
  'tool_choice',
  'betas',
  'stop_sequences',
  'top_k',
  'cache_control',
  'context_management',
  'diagnostics',
  'speed',
  SYSTEM_ROLE_PARAMETER,
  LIMIT_FIELD_PARAMETER,
])

interface NeutralSettings {
  readonly maxOutput: number | null
  readonly effort: string | null
  /** False if thinking is switched off. */
  readonly thinks: boolean
  readonly toolChoice: JsonObject | null
  /** All other fields, which are sent as they are. */
  readonly others: JsonObject
}

/** Reads parameters in the neutral form. A tool choice in OpenAI's form is one of the `others`. */
export function readNeutralSettings(parameters: JsonObject): NeutralSettings {
  const { max_tokens: most, thinking, output_config: output, tool_choice: choice } = parameters
  const isNeutralChoice = isJsonObject(choice) && NEUTRAL_CHOICES.has(choice.type)
  const effort = isJsonObject(output) ? output.effort : undefined
  const others = Object.entries(parameters).filter(
    ([name]) => !NEUTRAL_FIELDS.has(name) || (name === 'tool_choice' && !isNeutralChoice),
  )
  return {
    maxOutput: typeof most === 'number' ? most : null,
    effort: typeof effort === 'string' ? effort : null,
    thinks: !isJsonObject(thinking) || thinking.type !== 'disabled',
    toolChoice: isNeutralChoice ? choice : null,
    others: Object.fromEntries(others),
  }
}

const NEUTRAL_CHOICES: ReadonlySet<Json | undefined> = new Set(['auto', 'any', 'tool', 'none'])

/**
 * Converts a neutral tool choice to the API's fields; none for `auto`. `name`: returns how the API names one function
 * to call.
 */
export function spellToolChoice(choice: JsonObject, name: (tool: string) => JsonObject): JsonObject {
  const parallel = choice.disable_parallel_tool_use === true ? { parallel_tool_calls: false } : {}
  if (choice.type === 'tool') return { tool_choice: name(String(choice.name)), ...parallel }
  const word = choice.type === 'any' ? 'required' : choice.type
  return { ...(word === undefined || word === 'auto' ? {} : { tool_choice: word }), ...parallel }
}

/**
 * Returns name, description and parameters of a tool in the neutral form; null for one in OpenAI's form, which is sent
 * unchanged.
 */
export function readNeutralTool(tool: JsonObject): JsonObject | null {
  const { name, description, input_schema: schema, type } = tool
  if (type !== undefined && type !== 'custom') return null
  if (schema === undefined) return null
  return {
    name: name ?? '',
    ...(typeof description === 'string' ? { description } : {}),
    parameters: schema,
  }
}
