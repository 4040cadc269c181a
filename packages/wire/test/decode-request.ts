/**
 * Decodes the body of a Messages API request. Reports every field that has the wrong type. Does not check whether the
 * API would accept the request.
 */
import type { ApiMessage, Payload } from '@tidemark/core/context/payload'
import { isBlock } from '@tidemark/core/log/block'
import {
  findJsonMember,
  findUnstableJsonText,
  isObject,
  type Json,
  type JsonObject,
  parseJson,
  splitJsonArray,
  splitJsonObject,
  survivesJsonRoundTrip,
} from '@tidemark/core/log/json'
import type { ExactJsonTexts } from '../src/anthropic/encode-request.ts'

export interface BodyProblem {
  readonly kind: 'not-json' | 'missing' | 'wrong-type' | 'unknown-role' | 'not-allowed'
  /** Path of the field in the request body, such as `messages.0.content.2`; empty for the body itself. */
  readonly path: string
  readonly expected: string
}

type DecodedRequest =
  | { readonly ok: true; readonly payload: Payload; readonly raw: ExactJsonTexts }
  | { readonly ok: false; readonly problems: readonly BodyProblem[] }

/** Decodes a request body. `betas` are the values of the `anthropic-beta` header, which are stored in the result. */
export function decodeRequest(text: string, betas: readonly string[] = []): DecodedRequest {
  const body = parseJson(text)
  if (body === undefined)
    return { ok: false, problems: [{ kind: 'not-json', path: '', expected: 'a JSON object' }] }
  if (!isObject(body)) return { ok: false, problems: [wrongTypeProblem('', 'a JSON object')] }
  const fields = withDefaults(body)
  if (!isPayload(fields)) return { ok: false, problems: findBodyProblems(fields) }
  const payload: Payload = betas.length === 0 ? fields : { ...fields, betas }
  return { ok: true, payload, raw: survivesJsonRoundTrip(text) ? {} : findRawTexts(text) }
}

/**
 * Normalizes a request body: removes optional fields that are null, and sets missing content of a system message to an
 * empty list.
 */
function withDefaults(body: JsonObject): JsonObject {
  const present = Object.entries(body).filter(([key, value]) => value !== null || !OPTIONAL_FIELDS.has(key))
  const fields: JsonObject = Object.fromEntries(present)
  if (!Array.isArray(fields.messages)) return fields
  return { ...fields, messages: fields.messages.map(withEmptyContent) }
}

function withEmptyContent(message: Json): Json {
  const isBare = isObject(message) && message.role === 'system' && (message.content ?? null) === null
  return isBare ? { ...message, content: [] } : message
}

type BodyCheck = (value: Json, path: string) => readonly BodyProblem[]

const OPTIONAL_FIELDS: ReadonlyMap<string, BodyCheck> = new Map<string, BodyCheck>([
  ['max_tokens', (value, path) => checkThat(typeof value === 'number', path, 'a number')],
  ['stream', (value, path) => checkThat(typeof value === 'boolean', path, 'true or false')],
  ['thinking', (value, path) => checkThat(isObject(value), path, 'an object')],
  ['tool_choice', (value, path) => checkThat(isObject(value), path, 'an object')],
  ['system', checkContent],
  ['tools', checkTools],
])

function findBodyProblems(body: JsonObject): readonly BodyProblem[] {
  return [
    ...checkRequired(body, 'model', (value, path) => checkThat(typeof value === 'string', path, 'a string')),
    ...checkRequired(body, 'messages', checkMessages),
    ...[...OPTIONAL_FIELDS].flatMap(([key, check]) => (body[key] === undefined ? [] : check(body[key], key))),
    ...(body.betas === undefined ? [] : [BETAS_IN_BODY]),
  ]
}

const BETAS_IN_BODY: BodyProblem = {
  kind: 'not-allowed',
  path: 'betas',
  expected: 'betas in a header, not in the body',
}

function isPayload(body: JsonObject): body is JsonObject & Payload {
  return findBodyProblems(body).length === 0
}

function checkRequired(body: JsonObject, key: string, check: BodyCheck): readonly BodyProblem[] {
  const value = body[key]
  return value === undefined
    ? [{ kind: 'missing', path: key, expected: `a field ${key}` }]
    : check(value, key)
}

function checkMessages(value: Json, path: string): readonly BodyProblem[] {
  if (!Array.isArray(value)) return [wrongTypeProblem(path, 'a list of messages')]
  return value.flatMap((message: Json, index) => checkMessage(message, `${path}.${index}`))
}

const MESSAGE_ROLES: ReadonlySet<Json | undefined> = new Set<ApiMessage['role']>([
  'user',
  'assistant',
  'system',
])

function checkMessage(message: Json, path: string): readonly BodyProblem[] {
  if (!isObject(message)) return [wrongTypeProblem(path, 'an object with role and content')]
  const role: readonly BodyProblem[] = MESSAGE_ROLES.has(message.role)
    ? []
    : [{ kind: 'unknown-role', path: `${path}.role`, expected: 'user, assistant or system' }]
  if (message.content === undefined)
    return [...role, { kind: 'missing', path: `${path}.content`, expected: 'a field content' }]
  return [...role, ...checkContent(message.content, `${path}.content`)]
}

function checkContent(value: Json, path: string): readonly BodyProblem[] {
  if (typeof value === 'string') return []
  if (!Array.isArray(value)) return [wrongTypeProblem(path, 'a string or a list of blocks')]
  return value.flatMap((block: Json, index) =>
    checkThat(isBlock(block), `${path}.${index}`, 'an object with a type'),
  )
}

function checkTools(value: Json, path: string): readonly BodyProblem[] {
  if (!Array.isArray(value)) return [wrongTypeProblem(path, 'a list of tools')]
  return value.flatMap((tool: Json, index) => checkThat(isObject(tool), `${path}.${index}`, 'an object'))
}

function checkThat(holds: boolean, path: string, expected: string): readonly BodyProblem[] {
  return holds ? [] : [wrongTypeProblem(path, expected)]
}

function wrongTypeProblem(path: string, expected: string): BodyProblem {
  return { kind: 'wrong-type', path, expected }
}

const LIST_FIELDS = new Set(['tools', 'system', 'messages'])

/**
 * Finds the values in a request body that parsing and stringifying would change, and returns their exact JSON texts.
 * `text` must be a valid request body.
 */
function findRawTexts(text: string): ExactJsonTexts {
  const parameters = splitJsonObject(text).flatMap(({ key, text: value }) => {
    const raw = LIST_FIELDS.has(key) ? undefined : findUnstableJsonText(value)
    return raw === undefined ? [] : [[key, raw] as const]
  })
  return {
    ...(parameters.length === 0 ? {} : { parameters: new Map(parameters) }),
    tools: findRawElements(findJsonMember(text, 'tools')),
    system: findRawElements(findJsonMember(text, 'system')),
    messages: splitJsonArray(findJsonMember(text, 'messages') ?? '[]').map((message) =>
      findRawElements(findJsonMember(message, 'content')),
    ),
  }
}

function findRawElements(list: string | undefined): ReadonlyMap<number, string> {
  if (!list?.startsWith('[')) return new Map()
  const raws = splitJsonArray(list).flatMap((element, index) => {
    const raw = findUnstableJsonText(element)
    return raw === undefined ? [] : [[index, raw] as const]
  })
  return new Map(raws)
}
