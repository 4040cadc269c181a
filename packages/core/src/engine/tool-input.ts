/**
 * Fits the input of a tool call to the tool's schema, since models write `"5"` for `5` and add fields. Of JSON Schema
 * it knows `type`, `properties`, `required`, `additionalProperties`, `items`, `enum`, `const`, `anyOf`, `oneOf` and
 * `allOf`. Everything else (`$ref`, ranges, patterns, formats) is left to the tool.
 */
import { type Block, isToolUse } from '../log/block.ts'
import { isObject, type JsonObject, parseJson } from '../log/json.ts'
import { isSameJson } from '../request/block-index.ts'
import type { Reply, ReplyEvent } from './reply.ts'

interface FittedInput {
  /** The input with numbers and booleans in place of strings, without fields that the schema forbids. */
  readonly input: unknown
  /** What does not fit the schema, such as `limit: expected integer, got string`; empty if the input fits. */
  readonly problems: readonly string[]
}

/**
 * Fits an input to the schema of the tool `name`. The same object is returned if nothing is changed. An input that is the
 * JSON text of an object becomes that object.
 */
export function fitToolInput(tools: readonly JsonObject[], name: string, input: unknown): FittedInput {
  const spelled = typeof input === 'string' ? parseJson(input) : null
  const given = isObject(spelled) ? spelled : input
  return fitValue(given, tools.find((tool) => tool.name === name)?.input_schema, '')
}

const MAX_PROBLEMS = 8

/** Writes the error result of a tool call whose input does not fit. */
export function describeMisfit(name: string, problems: readonly string[]): string {
  const more = problems.length > MAX_PROBLEMS ? [`and ${problems.length - MAX_PROBLEMS} more`] : []
  const listed = [...problems.slice(0, MAX_PROBLEMS), ...more].join('; ')
  return `The input does not fit the schema of ${name}, so the tool was not run: ${listed}. Call again with an input that fits.`
}

/** Fits the tool calls in an event of a reply, before the reply is logged, in the same way as `fitReplyToolInputs`. */
export function fitReplyEventToolInputs(event: ReplyEvent, tools: readonly JsonObject[]): ReplyEvent {
  if (event.type === 'block-ended') {
    const isKept = event.raw !== undefined || event.cutInput !== undefined
    return isKept ? event : { ...event, block: fitBlock(event.block, tools) }
  }
  if ((event.type !== 'reply-ended' && event.type !== 'reply-failed') || event.reply === null) return event
  return { ...event, reply: fitReplyToolInputs(event.reply, tools) } as ReplyEvent
}

/** Fits the tool calls of a whole reply. Inputs that were cut off, or whose exact text must be kept, stay as they are. */
export function fitReplyToolInputs(reply: Reply, tools: readonly JsonObject[]): Reply {
  const { message, rawBlocks, cutInputs } = reply
  if (typeof message.content === 'string') return reply
  const kept = new Set([...rawBlocks, ...cutInputs].map(({ index }) => index))
  const content = message.content.map((block, index) => (kept.has(index) ? block : fitBlock(block, tools)))
  return { ...reply, message: { ...message, content } }
}

function fitBlock(block: Block, tools: readonly JsonObject[]): Block {
  if (!isToolUse(block)) return block
  const { input } = fitToolInput(tools, block.name, block.input)
  return input === block.input ? block : ({ ...block, input } as Block)
}

function fitValue(value: unknown, schema: unknown, path: string): FittedInput {
  if (!isObject(schema)) return { input: value, problems: [] }
  const options = [schema.anyOf, schema.oneOf].filter((list): list is unknown[] => Array.isArray(list))
  const all = Array.isArray(schema.allOf) ? schema.allOf : []
  let fitted = fitType(value, schema, path)
  for (const list of options) fitted = addFit(fitted, (input) => fitAny(input, list, path))
  for (const each of all) fitted = addFit(fitted, (input) => fitValue(input, each, path))
  return addFit(fitted, (input) => ({ input, problems: findChoiceProblems(input, schema, path) }))
}

function addFit(before: FittedInput, fit: (input: unknown) => FittedInput): FittedInput {
  const { input, problems } = fit(before.input)
  return { input, problems: [...before.problems, ...problems] }
}

/** Fits a value to the first schema that accepts it unchanged, otherwise to the first that accepts it after changes. */
function fitAny(value: unknown, schemas: readonly unknown[], path: string): FittedInput {
  const fits = schemas.map((schema) => fitValue(value, schema, path))
  const good = fits.filter(({ problems }) => problems.length === 0)
  const fit = good.find(({ input }) => input === value) ?? good[0]
  if (fit !== undefined || fits.length === 0) return fit ?? { input: value, problems: [] }
  return { input: value, problems: [`${describePath(path)}: fits none of the ${fits.length} forms allowed`] }
}

function fitType(given: unknown, schema: Readonly<Record<string, unknown>>, path: string): FittedInput {
  const types = listTypes(schema.type)
  const value = types === null || hasType(given, types) ? given : convertText(given, types)
  if (types !== null && !hasType(value, types))
    return {
      input: given,
      problems: [`${describePath(path)}: expected ${types.join(' or ')}, got ${describeType(given)}`],
    }
  if (Array.isArray(value)) return fitItems(value, schema.items, path)
  return isObject(value) ? fitFields(value, schema, path) : { input: value, problems: [] }
}

function listTypes(type: unknown): readonly string[] | null {
  if (typeof type === 'string') return [type]
  return Array.isArray(type) ? type.filter((each) => typeof each === 'string') : null
}

function describeType(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

function hasType(value: unknown, types: readonly string[]): boolean {
  return types.includes(describeType(value)) || (types.includes('integer') && Number.isInteger(value))
}

const NUMBER_TEXT = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Converts a text to the number or boolean that it spells, if the schema asks for one. */
function convertText(value: unknown, types: readonly string[]): unknown {
  if (typeof value !== 'string') return value
  const text = value.trim()
  if (types.includes('boolean') && /^(?:true|false)$/i.test(text)) return text.toLowerCase() === 'true'
  if (!NUMBER_TEXT.test(text)) return value
  const number = Number(text)
  // A whole number that JavaScript cannot hold exactly would become another number.
  const isExact = Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number))
  return isExact && hasType(number, types) ? number : value
}

function fitItems(values: readonly unknown[], schema: unknown, path: string): FittedInput {
  const fits = values.map((value, index) => fitValue(value, schema, `${path}[${index}]`))
  const isSame = fits.every(({ input }, index) => input === values[index])
  return {
    input: isSame ? values : fits.map(({ input }) => input),
    problems: fits.flatMap(({ problems }) => problems),
  }
}

function fitFields(
  value: Readonly<Record<string, unknown>>,
  schema: Readonly<Record<string, unknown>>,
  path: string,
): FittedInput {
  const { properties, additionalProperties: others, required, patternProperties } = schema
  const known = isObject(properties) ? properties : {}
  const forbids = others === false && patternProperties === undefined
  const problems: string[] = []
  const fields: [string, unknown][] = []
  for (const [name, field] of Object.entries(value)) {
    const isKnown = Object.hasOwn(known, name)
    if (!isKnown && forbids) continue
    const fit = fitValue(field, isKnown ? known[name] : others, path === '' ? name : `${path}.${name}`)
    fields.push([name, fit.input])
    problems.push(...fit.problems)
  }
  const missing = Array.isArray(required)
    ? required.filter((name) => !Object.hasOwn(value, String(name)))
    : []
  problems.push(...missing.map((name) => `${path === '' ? name : `${path}.${name}`}: is missing`))
  const isSame =
    fields.length === Object.keys(value).length && fields.every(([name, field]) => field === value[name])
  return { input: isSame ? value : Object.fromEntries(fields), problems }
}

function findChoiceProblems(
  value: unknown,
  schema: Readonly<Record<string, unknown>>,
  path: string,
): readonly string[] {
  const allowed = Array.isArray(schema.enum) ? schema.enum : 'const' in schema ? [schema.const] : null
  if (allowed === null || allowed.some((choice) => isSameJson(choice, value))) return []
  return [
    `${describePath(path)}: expected one of ${allowed.map((choice) => JSON.stringify(choice)).join(', ')}`,
  ]
}

function describePath(path: string): string {
  return path === '' ? 'the input' : path
}
