/**
 * How an attachment reads to the model: user content in a reminder, headed by what it is. A function of the
 * record alone, so that its bytes never change once sent.
 */
import { isObject } from '../conversation/json.ts'
import type { Attachment, AttachmentRecord } from '../conversation/record.ts'

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

export function attachmentText({ attachment }: AttachmentRecord): string {
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
