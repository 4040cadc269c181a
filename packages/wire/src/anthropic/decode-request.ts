/**
 * The body of a request back to a payload. Every field of the wrong type is reported; whether the API would accept the
 * request is not checked here.
 */
import {
  type ApiMessage,
  elementsOf,
  isBlock,
  isObject,
  type Json,
  type JsonObject,
  memberOf,
  membersOf,
  type Payload,
  rawUnlessSurvives,
  readJson,
  survives,
} from '@tidemark/core'
import type { RawTexts } from './request.ts'

export interface BodyProblem {
  readonly kind: 'not-json' | 'missing' | 'wrong-type' | 'unknown-role' | 'not-allowed'
  /** Such as `messages.0.content.2`; empty for the body itself. */
  readonly path: string
  readonly expected: string
}

type DecodedBody =
  | { readonly ok: true; readonly payload: Payload; readonly raw: RawTexts }
  | { readonly ok: false; readonly problems: readonly BodyProblem[] }

/** `betas`: the values of the `anthropic-beta` header, which become part of the payload. */
export function fromBody(text: string, betas: readonly string[] = []): DecodedBody {
  const body = readJson(text)
  if (body === undefined)
    return { ok: false, problems: [{ kind: 'not-json', path: '', expected: 'a JSON object' }] }
  if (!isObject(body)) return { ok: false, problems: [wrong('', 'a JSON object')] }
  const fields = withDefaults(body)
  if (!isPayload(fields)) return { ok: false, problems: problemsIn(fields) }
  const payload: Payload = betas.length === 0 ? fields : { ...fields, betas }
  return { ok: true, payload, raw: survives(text) ? {} : rawTextsIn(text) }
}

/** Null in an optional field means absent; a system message may have no content. */
function withDefaults(body: JsonObject): JsonObject {
  const present = Object.entries(body).filter(([key, value]) => value !== null || !OPTIONAL.has(key))
  const fields: JsonObject = Object.fromEntries(present)
  if (!Array.isArray(fields.messages)) return fields
  return { ...fields, messages: fields.messages.map(withContent) }
}

function withContent(message: Json): Json {
  const isBare = isObject(message) && message.role === 'system' && (message.content ?? null) === null
  return isBare ? { ...message, content: [] } : message
}

type Check = (value: Json, path: string) => readonly BodyProblem[]

const OPTIONAL: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['max_tokens', (value, path) => expect(typeof value === 'number', path, 'a number')],
  ['stream', (value, path) => expect(typeof value === 'boolean', path, 'true or false')],
  ['thinking', (value, path) => expect(isObject(value), path, 'an object')],
  ['tool_choice', (value, path) => expect(isObject(value), path, 'an object')],
  ['system', content],
  ['tools', tools],
])

function problemsIn(body: JsonObject): readonly BodyProblem[] {
  return [
    ...required(body, 'model', (value, path) => expect(typeof value === 'string', path, 'a string')),
    ...required(body, 'messages', messages),
    ...[...OPTIONAL].flatMap(([key, check]) => (body[key] === undefined ? [] : check(body[key], key))),
    ...(body.betas === undefined ? [] : [BETAS_IN_BODY]),
  ]
}

const BETAS_IN_BODY: BodyProblem = {
  kind: 'not-allowed',
  path: 'betas',
  expected: 'betas in a header, not in the body',
}

function isPayload(body: JsonObject): body is JsonObject & Payload {
  return problemsIn(body).length === 0
}

function required(body: JsonObject, key: string, check: Check): readonly BodyProblem[] {
  const value = body[key]
  return value === undefined
    ? [{ kind: 'missing', path: key, expected: `a field ${key}` }]
    : check(value, key)
}

function messages(value: Json, path: string): readonly BodyProblem[] {
  if (!Array.isArray(value)) return [wrong(path, 'a list of messages')]
  return value.flatMap((message: Json, index) => messageProblems(message, `${path}.${index}`))
}

const ROLES: ReadonlySet<Json | undefined> = new Set<ApiMessage['role']>(['user', 'assistant', 'system'])

function messageProblems(message: Json, path: string): readonly BodyProblem[] {
  if (!isObject(message)) return [wrong(path, 'an object with role and content')]
  const role: readonly BodyProblem[] = ROLES.has(message.role)
    ? []
    : [{ kind: 'unknown-role', path: `${path}.role`, expected: 'user, assistant or system' }]
  if (message.content === undefined)
    return [...role, { kind: 'missing', path: `${path}.content`, expected: 'a field content' }]
  return [...role, ...content(message.content, `${path}.content`)]
}

function content(value: Json, path: string): readonly BodyProblem[] {
  if (typeof value === 'string') return []
  if (!Array.isArray(value)) return [wrong(path, 'a string or a list of blocks')]
  return value.flatMap((block: Json, index) =>
    expect(isBlock(block), `${path}.${index}`, 'an object with a type'),
  )
}

function tools(value: Json, path: string): readonly BodyProblem[] {
  if (!Array.isArray(value)) return [wrong(path, 'a list of tools')]
  return value.flatMap((tool: Json, index) => expect(isObject(tool), `${path}.${index}`, 'an object'))
}

function expect(holds: boolean, path: string, expected: string): readonly BodyProblem[] {
  return holds ? [] : [wrong(path, expected)]
}

function wrong(path: string, expected: string): BodyProblem {
  return { kind: 'wrong-type', path, expected }
}

const ZONES = new Set(['tools', 'system', 'messages'])

/**
 * The exact texts of what parsing and stringifying would change. `text` must parse and have the shape of a request.
 */
function rawTextsIn(text: string): RawTexts {
  const parameters = membersOf(text).flatMap(({ key, text: value }) => {
    const raw = ZONES.has(key) ? undefined : rawUnlessSurvives(value)
    return raw === undefined ? [] : [[key, raw] as const]
  })
  return {
    ...(parameters.length === 0 ? {} : { parameters: new Map(parameters) }),
    tools: rawElements(memberOf(text, 'tools')),
    system: rawElements(memberOf(text, 'system')),
    messages: elementsOf(memberOf(text, 'messages') ?? '[]').map((message) =>
      rawElements(memberOf(message, 'content')),
    ),
  }
}

function rawElements(list: string | undefined): ReadonlyMap<number, string> {
  if (!list?.startsWith('[')) return new Map()
  const raws = elementsOf(list).flatMap((element, index) => {
    const raw = rawUnlessSurvives(element)
    return raw === undefined ? [] : [[index, raw] as const]
  })
  return new Map(raws)
}
