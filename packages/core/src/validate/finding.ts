/** What can be wrong with a request: one code a rule, where it is, and what was expected there. */

import type { Role } from '../context/payload.ts'
import { type Block, isBlock } from '../log/block.ts'
import { isObject } from '../log/json.ts'

export const findingCodes = [
  // the shape of things
  'payload-shape', // the payload is an object
  'not-json', // what is sent has a JSON form
  'messages-shape', // `messages` is a list
  'message-shape', // a message is an object
  'message-field', // a message has no fields but those of its role
  'role-unknown', // user, assistant or system
  'content-shape', // content is a string or a list
  'block-shape', // a block is an object with a `type`
  'block-field', // the fields of a known block have the types they must have
  'block-refused', // a block stands where blocks of its type may stand
  // the request around the messages
  'model-missing', // `model` is a string that is not empty
  'max-tokens', // `max_tokens` is there, where it must be, and a whole number up to the model's limit
  'prewarm-combination', // `max_tokens: 0` stands alone
  'field-refused', // no field that the provider refuses outright
  'betas-shape', // `betas` is a list of strings
  'beta-missing', // what needs a beta comes with it
  'system-shape', // `system` is a string or a list of blocks
  // text and turns
  'messages-empty', // somebody speaks
  'message-empty', // every message says something, but for a last one of the assistant
  'text-blank', // no text block is empty or white space alone
  'first-role', // the user speaks first
  'role-repeated', // roles alternate, where they must
  'prefill-refused', // the model does not find its answer begun, where it may not be
  'trailing-whitespace', // an answer begun does not end in white space
  // system messages in mid-conversation
  'system-refused', // none, where there may be none
  'system-misplaced', // behind a user turn or a paused one; before an assistant turn or at the end
  'clear-at-role', // `clear_at` on system messages only
  'clear-at-value', // 'next_user_message' or 'never'
  'turn-scoped-content', // a message for one turn is text
  'turn-scoped-output-config', // and has no `output_config`
  'turn-scoped-marker', // and no cache marker
  // tools
  'tools-shape', // `tools` is a list of objects
  'tool-name', // a declared name matches the pattern
  'tool-name-repeated', // no two tools have one name
  'tool-count', // so many tools whose loading is deferred
  'tool-schema', // a tool of the caller's has an `input_schema` of type object
  'tools-undeclared', // tools are declared while messages hold tool blocks
  'tool-choice', // `tool_choice` is a known one, with tools, and names a declared one
  'tool-choice-forced', // no call is forced, where none may be
  'tool-change-refused', // no tool is added or removed in mid-conversation, where none may be
  'tool-change-unknown', // and those that are, are declared
  // calls and results
  'tool-id', // the id of a call matches the pattern
  'tool-id-repeated', // no two calls have one id
  'tool-result-missing', // every call is answered in the next turn
  'tool-result-unexpected', // every result answers a call of the turn before
  'tool-result-repeated', // once
  'tool-result-late', // and before anything else is said
  'server-result-missing', // a call the provider runs has its result before the model's turn ends
  'server-result-unexpected', // and its result comes after it
  'server-wait-results-only', // while one is under way the user gives results and nothing else
  // thinking
  'thinking-shape', // `thinking` is an object
  'thinking-mode', // in a mode the model has, at this effort
  'thinking-budget', // a budget from the minimum up to below `max_tokens`, where the mode has one
  'thinking-binding', // 'error' or 'drop_block'
  'thinking-signature', // a thinking block is signed
  'thinking-not-first', // the turn under way begins with thinking, where it must
  'thinking-last', // a turn does not end in thinking, where it may not
  // cache markers
  'marker-shape', // a marker is an object of type 'ephemeral'
  'marker-ttl', // with a lifetime there is
  'marker-field', // and nothing else
  'marker-refused', // on a block that can carry one
  'marker-count', // so many and no more
  'marker-order', // longer lifetimes before shorter ones
  'marker-automatic', // the request's own marker, where there can be one and it agrees with the block it falls on
  'cache-edit-refused', // no cache edits, where there are none
  // context edits
  'edits-refused', // no `context_management`, where there is none
  'edit-shape', // a list of objects with a `type`
  'edit-unsupported', // of types the provider knows
  'edit-parameter', // with parameters of the types they must have
  'edit-order', // thinking is cleared first
  'edit-without-thinking', // and only while the model thinks
  // the provider's own summaries
  'compaction-refused', // none, where there is none
  'compaction-request', // a request for one is well formed
  'compaction-combination', // and does not come with what it excludes
  'compaction-incomplete-turn', // nor while a call is under way
  'compaction-nothing', // nor with nothing to summarise
  'compaction-misplaced', // a signed block stands first
  'compaction-repeated', // and alone
  // sizes
  'message-count', // so many messages
  'body-size', // so many bytes
  'image-count', // so many images
  'image-size', // of so many pixels a side
  'many-image-size', // and fewer where there are many
] as const

export type FindingCode = (typeof findingCodes)[number]

export interface Finding {
  readonly code: FindingCode
  /** Where, as in `messages.3.content.1`; empty for the request as a whole. */
  readonly path: string
  /** What was expected there. */
  readonly message: string
}

export type Report = (code: FindingCode, path: string, message: string) => void

/** A request as it was given: nothing about its fields is taken for granted. */
export interface Fields {
  readonly [field: string]: unknown
}

/** Providers take null for a field that was left out. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === undefined || value === null
}

/** The value at a dotted path. */
export function fieldAt(request: Fields, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => {
    return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
  }, request)
}

// The first look at a message: is it one at all? What cannot be read is reported and left out of all that follows.

export interface ReadBlock {
  readonly path: string
  readonly block: Block
  /** The blocks inside a tool result. */
  readonly inner: readonly ReadBlock[]
}

export interface ReadMessage {
  readonly index: number
  readonly path: string
  readonly role: Role
  readonly fields: Fields
  /** A string is one text block. */
  readonly blocks: readonly ReadBlock[]
  /** No content at all, neither good nor bad. */
  readonly isEmpty: boolean
}

export function readMessage(message: unknown, index: number, report: Report): ReadMessage | null {
  const path = `messages.${index}`
  if (!isObject(message)) {
    report('message-shape', path, 'Expected an object with a role and content.')
    return null
  }
  const { role, content } = message
  if (!isRole(role)) {
    report('role-unknown', `${path}.role`, "Expected 'user', 'assistant' or 'system'.")
    return null
  }
  if (typeof content !== 'string' && !Array.isArray(content)) {
    report('content-shape', `${path}.content`, 'Expected a string or a list of blocks.')
    return null
  }
  const blocks = readBlocks(content, `${path}.content`, report)
  return { index, path, role, fields: message, blocks, isEmpty: content.length === 0 }
}

function isRole(role: unknown): role is Role {
  return role === 'user' || role === 'assistant' || role === 'system'
}

export function readBlocks(
  content: string | readonly unknown[],
  path: string,
  report: Report,
): readonly ReadBlock[] {
  if (typeof content === 'string') {
    return content === '' ? [] : [{ path, block: { type: 'text', text: content }, inner: [] }]
  }
  return readList(content, path, report).map((item) => ({ ...item, inner: readInner(item, report) }))
}

/** One level down and no further: a result inside a result is refused, whatever it holds. */
function readInner({ block, path }: ReadBlock, report: Report): readonly ReadBlock[] {
  const { content } = block
  return block.type === 'tool_result' && Array.isArray(content)
    ? readList(content, `${path}.content`, report)
    : []
}

function readList(content: readonly unknown[], path: string, report: Report): readonly ReadBlock[] {
  return Array.from(content).flatMap((block, index): readonly ReadBlock[] => {
    if (isBlock(block)) return [{ path: `${path}.${index}`, block, inner: [] }]
    report('block-shape', `${path}.${index}`, 'Expected an object with a type.')
    return []
  })
}

/** Every block of a message, the ones inside tool results behind the result that holds them. */
export function allBlocks(blocks: readonly ReadBlock[]): readonly ReadBlock[] {
  return blocks.flatMap((item) => [item, ...item.inner])
}
