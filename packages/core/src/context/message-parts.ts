/** What one entry of the view brings to a message: its blocks, less what was cleared. */

import { type Block, blocksOf, isBlankText, isThinking, isToolResult, isToolUse } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import { List } from '../log/persistent-collections.ts'
import {
  type Attachment,
  type AttachmentRecord,
  CLEARED_TEXT,
  endsTurn,
  isSyntheticError,
  type KnownRecord,
} from '../log/record.ts'
import { type Cleared, type Entry, withoutMedia } from './entry.ts'
import type { ApiMessage, Role } from './payload.ts'

/** What stands where a large input of a tool call was. */
const CLEARED_INPUT_TEXT = '[Old tool input cleared]'

/** Does anything of this entry reach a model? */
export function isShown(entry: Entry): boolean {
  const { record } = entry
  if (record.type === 'progress' || record.type === 'system' || isSyntheticError(record)) return false
  if (entry.cleared?.whole === true) return false
  return record.type !== 'attachment' || record.isScreenOnly !== true
}

/** Does what it brings end the turn before it? An attachment is words to the model. */
export function entryEndsTurn(entry: Entry): boolean {
  const { record } = entry
  if (record.type === 'attachment') return isShown(entry)
  return record.type === 'user' && endsTurn(record.message)
}

export function partsOf(entry: Entry): readonly Part[] {
  const { record } = entry
  if (record.type === 'attachment')
    return [{ block: { type: 'text', text: attachmentText(record) }, origin: record.uuid }]
  if (record.type !== 'user' && record.type !== 'assistant') return []
  const blocks = blocksOf(record.message.content)
  const parts = withoutMedia(blocks, entry.cleared?.media).map((block, index) =>
    block === blocks[index] ? partOf(block, index, record) : { block, origin: record.uuid },
  )
  return entry.cleared === undefined
    ? parts
    : parts.flatMap((part) => clearPart(part, entry.cleared as Cleared))
}

function partOf(block: Block, index: number, record: KnownRecord): Part {
  const raw = Array.isArray(record.rawBlocks)
    ? record.rawBlocks.find((item) => item?.index === index)
    : undefined
  return typeof raw?.text !== 'string'
    ? { block, origin: record.uuid }
    : { block, origin: record.uuid, raw: raw.text }
}

function clearPart(part: Part, cleared: Cleared): readonly Part[] {
  const { block, origin } = part
  if (cleared.thinking && isThinking(block)) return []
  if (isToolResult(block)) {
    const result = cleared.results.find((item) => item.id === block.tool_use_id)
    return [result === undefined ? part : { block: { ...block, content: stub(result.note) }, origin }]
  }
  const fields = cleared.inputs.filter((input) => isToolUse(block) && input.toolUseId === block.id)
  if (fields.length === 0 || !isObject(block.input)) return [part]
  const input = Object.entries(block.input).map(([name, value]) => [
    name,
    fields.some((field) => field.field === name) ? CLEARED_INPUT_TEXT : value,
  ])
  return [{ block: { ...block, input: Object.fromEntries(input) }, origin }]
}

function stub(note: string | null): string {
  return note === null ? CLEARED_TEXT : `${CLEARED_TEXT}\n${note}`
}

// How an attachment reads to the model: user content in a reminder, headed by what it is. A function of the
// record alone, so that its bytes never change once sent.

const HEADINGS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    agent_delta: 'The agents that can be called have changed.',
    hook_context: 'A hook of the person adds this.',
    ide_selection: 'Selected in the editor.',
    invoked_skills: 'Skills in use in this session.',
    mcp_instructions: 'Instructions of connected servers.',
    nested_memory: 'Standing instructions for this folder.',
    plan_file_reference: 'The plan of this session.',
    permission_mode: 'The permission mode of this session.',
    plan_mode: 'Plan mode is on.',
    section_delta: 'The system prompt has changed.',
    skill_discovery: 'Skills found.',
    skill_listing: 'Skills that can be used.',
    task_status: 'Agents working in the background.',
    tool_delta: 'The tools that can be called have changed.',
  }),
)

function attachmentText({ attachment }: AttachmentRecord): string {
  return textOfAttachment(attachment)
}

/**
 * `ended` says that what was attached before holds no longer, `update` that it now reads otherwise; both are
 * words of carriers, which give every attachment a `key` to know it by.
 */
export function textOfAttachment(attachment: Attachment): string {
  const heading = headingOf(attachment)
  const lines =
    attachment.ended === true
      ? [`No longer in force: ${heading}`]
      : [attachment.update === true ? `${heading} ${REPLACES}` : heading, bodyOf(attachment)]
  return ['<system-reminder>', ...lines, '</system-reminder>'].join('\n')
}

const REPLACES = 'This replaces what was said of it before.'

function headingOf(attachment: Attachment): string {
  const path = firstText(attachment, ['path', 'filename', 'planFilePath'])
  if (attachment.type === 'file') return `Content of the file ${path ?? '(unnamed)'}.`
  if (attachment.type === 'todo') return todoHeading(attachment)
  const heading = singleHeading(attachment) ?? generalHeading(attachment)
  return path === null ? heading : `${heading} File: ${path}`
}

function generalHeading({ type = 'unknown' }: Attachment): string {
  return HEADINGS.get(type) ?? `Attached: ${type}.`
}

/** One skill or one agent an attachment; other programs put all of them into one. */
function singleHeading({ type, name, status }: Attachment): string | null {
  if (type === 'invoked_skills' && typeof name === 'string')
    return `The skill "${name}" is in use in this session.`
  if (type !== 'task_status' || typeof status !== 'string') return null
  return status === 'running'
    ? 'An agent is working in the background. Do not start it again.'
    : 'An agent in the background has ended, and its result was not collected. Do not start it again.'
}

function todoHeading(attachment: Attachment): string {
  const after =
    attachment.context === 'post-compact' ? ', as it stood when the conversation was compacted' : ''
  return `The todo list${after}.`
}

function bodyOf(attachment: Attachment): string {
  const text = firstText(attachment, ['content', 'planContent', 'text'])
  if (text !== null) return text
  if (isObject(attachment.items)) return Object.entries(attachment.items).map(itemText).join('\n')
  const { type: _, ...rest } = attachment
  return JSON.stringify(rest)
}

/** One of several things announced together; null where it is gone. */
function itemText([name, text]: readonly [string, unknown]): string {
  if (typeof text !== 'string') return `${name}: no longer there.`
  return text.includes('\n') ? `${name}:\n${text}` : `${name}: ${text}`
}

function firstText(attachment: Attachment, fields: readonly string[]): string | null {
  for (const field of fields) {
    const value = attachment[field]
    if (typeof value === 'string') return value
  }
  return null
}

// A message in the making: the pieces that one or more records bring to it.

export interface Part {
  readonly block: Block
  /** uuid of the record it comes from. */
  readonly origin: string
  /** The exact text to send, where the block does not survive parse and stringify. */
  readonly raw?: string
}

export interface Draft {
  readonly role: Role
  /** The `message.id` of a response. */
  readonly response: string | null
  readonly parts: List<Part>
  /** The message as given, where it is one record's and nothing about it was changed. */
  readonly whole: ApiMessage | null
  /** Nothing but tool results and attachments: the rest of a response may still come behind it. */
  readonly crossable: boolean
}

/** A finished message of a request, with where each block comes from. */
export interface FlatMessage {
  readonly message: ApiMessage
  readonly origins: readonly string[]
  /** Exact texts by index of block. */
  readonly raw?: ReadonlyMap<number, string>
}

export function withParts(draft: Draft, parts: readonly Part[]): Draft {
  return sameParts(draft.parts, parts) ? draft : { ...draft, parts: List.of(parts), whole: null }
}

function sameParts(parts: List<Part>, others: readonly Part[]): boolean {
  return parts.length === others.length && others.every((part, index) => parts.at(index) === part)
}

export function resultsOf(draft: Draft): readonly Part[] {
  return [...draft.parts].filter((part) => isToolResult(part.block))
}

/** One message of two. */
export function joined(one: Draft, other: Draft): Draft {
  let { parts } = one
  for (const part of other.parts) parts = parts.push(part)
  return { ...one, parts, whole: null, crossable: one.crossable && other.crossable }
}

/** Nothing to send. A system message may say nothing but how hard to think. */
export function isEmpty(draft: Draft): boolean {
  return draft.parts.length === 0 && draft.whole?.output_config === undefined
}

/** A response that says nothing: it may not end a request. */
export function isSilent(draft: Draft): boolean {
  if (draft.role !== 'assistant') return false
  return [...draft.parts].every((part) => isThinking(part.block) || isBlankText(part.block))
}

export function flatMessageOf(draft: Draft): FlatMessage {
  const parts = draft.parts.toArray()
  const raw = new Map(
    parts.flatMap((part, index) => (part.raw === undefined ? [] : [[index, part.raw] as const])),
  )
  const message = draft.whole ?? { role: draft.role, content: parts.map((part) => part.block) }
  return { message, origins: parts.map((part) => part.origin), ...(raw.size > 0 ? { raw } : {}) }
}

/** What flattening had to mend so that a provider would take the request. Told, never silent. */
export type RepairKind =
  | 'missing-result' // a call without answer got one that says so
  | 'late-result' // an answer that came after the conversation had moved on
  | 'duplicate-result'
  | 'orphan-result' // an answer to a call that is not there
  | 'duplicate-call' // a call id that was used before
  | 'open-server-call'
  | 'orphan-server-result'
  | 'blank-text'
  | 'silent-tail' // a response at the end that says nothing
  | 'no-first-prompt' // the conversation began with the model

export interface Repair {
  readonly kind: RepairKind
  /** uuid of the record concerned. */
  readonly origin: string
  /** The tool call, where there is one. */
  readonly id?: string
}
