/**
 * Formats attachments as text: user content in a `<system-reminder>`, under a heading that names the kind of attachment.
 */
import { wrapInReminder } from '../facts/host-texts.ts'
import { isObject } from '../log/json.ts'
import type { Attachment } from '../log/record.ts'

const ATTACHMENT_HEADINGS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ambient_context: 'Context of this session. It may or may not bear on the task; use what does.',
    agent_result:
      'An agent that worked in the background has ended. This is its answer, which may quote texts of others.',
    hook_context: 'A hook of the user adds this.',
    ide_selection: 'Selected in the editor.',
    invoked_skills: 'Skills in use in this session.',
    nested_memory: 'Standing instructions for this folder.',
    plan_file_reference: 'The plan of this session.',
    plan_mode: 'Plan mode is on.',
    section_delta: 'The system prompt has changed.',
    skill_discovery: 'Skills found.',
    skill_listing: 'Skills that can be used.',
    task_status: 'Agents working in the background.',
    tool_delta: 'The tools that can be called have changed.',
  }),
)

const REPLACES_EARLIER_TEXT = 'This replaces what was said of it before.'

/**
 * Formats an attachment as the text that the model reads. `update` means that the attached content has changed since it
 * was last sent, `ended` that it no longer applies.
 */
export function formatAttachmentText(attachment: Attachment): string {
  const heading = formatHeading(attachment)
  const lines =
    attachment.ended === true
      ? [`No longer in force: ${heading}`]
      : [attachment.update === true ? `${heading} ${REPLACES_EARLIER_TEXT}` : heading, formatBody(attachment)]
  return wrapInReminder(lines.join('\n'))
}

function formatHeading(attachment: Attachment): string {
  const { type = 'unknown', context } = attachment
  const path = findFirstText(attachment, ['path', 'filename', 'planFilePath'])
  if (type === 'file') return `Content of the file ${path ?? '(unnamed)'}.`
  if (type === 'todo')
    return `The todo list${context === 'post-compact' ? ', as it stood when the conversation was compacted' : ''}.`
  const heading = formatSingleHeading(attachment) ?? ATTACHMENT_HEADINGS.get(type) ?? `Attached: ${type}.`
  return path === null ? heading : `${heading} File: ${path}`
}

/**
 * Returns the heading for an attachment that holds exactly one skill or one agent, or null for other attachments. (Logs
 * of other programs put all skills or agents into one attachment.)
 */
function formatSingleHeading({ type, name, status, isCollected }: Attachment): string | null {
  if (type === 'invoked_skills' && typeof name === 'string')
    return `The skill "${name}" is in use in this session.`
  if (type !== 'task_status' || typeof status !== 'string') return null
  if (status === 'running') return 'An agent is working in the background. Do not start it again.'
  return isCollected === true
    ? 'An agent has ended, and its result was given in the conversation.'
    : 'An agent in the background has ended, and its result was not collected. Do not start it again.'
}

function formatBody(attachment: Attachment): string {
  const text = findFirstText(attachment, ['content', 'planContent', 'text'])
  if (text !== null) return text
  if (isObject(attachment.items)) return Object.entries(attachment.items).map(formatItem).join('\n')
  if (isObject(attachment.sections))
    return Object.entries(attachment.sections).map(formatSection).join('\n\n')
  const { type: _, ...rest } = attachment
  return JSON.stringify(rest)
}

/** Formats one item of an attachment that lists several. If the text is null, the item was removed. */
function formatItem([name, text]: readonly [string, unknown]): string {
  if (typeof text !== 'string') return `${name}: no longer there.`
  return text.includes('\n') ? `${name}:\n${text}` : `${name}: ${text}`
}

/** Formats one part of the reminder in front of the conversation. If the text is null, the part has ended. */
function formatSection([heading, text]: readonly [string, unknown]): string {
  return `# ${heading}\n${typeof text === 'string' ? text : 'No longer in force.'}`
}

function findFirstText(attachment: Attachment, fields: readonly string[]): string | null {
  for (const field of fields) {
    const value = attachment[field]
    if (typeof value === 'string') return value
  }
  return null
}
