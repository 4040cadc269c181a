/**
 * How an attachment reads to the model: user content in a reminder, headed by what it is. A function of the
 * record alone, so that its bytes never change once sent.
 */
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
    plan_mode: 'Plan mode is on.',
    section_delta: 'The system prompt has changed.',
    skill_discovery: 'Skills found.',
    skill_listing: 'Skills that can be used.',
    task_status: 'Agents working in the background.',
    tool_delta: 'The tools that can be called have changed.',
  }),
)

export function attachmentText(record: AttachmentRecord): string {
  const { attachment } = record
  return `<system-reminder>\n${headingOf(attachment)}\n${bodyOf(attachment)}\n</system-reminder>`
}

function headingOf(attachment: Attachment): string {
  const path = firstText(attachment, ['path', 'filename', 'planFilePath'])
  if (attachment.type === 'file') return `Content of the file ${path ?? '(unnamed)'}.`
  if (attachment.type === 'todo') return todoHeading(attachment)
  const heading = HEADINGS.get(attachment.type ?? '') ?? `Attached: ${attachment.type ?? 'unknown'}.`
  return path === null ? heading : `${heading} File: ${path}`
}

function todoHeading(attachment: Attachment): string {
  const after =
    attachment.context === 'post-compact' ? ', as it stood when the conversation was compacted' : ''
  return `The todo list${after}.`
}

function bodyOf(attachment: Attachment): string {
  const text = firstText(attachment, ['content', 'planContent', 'text'])
  if (text !== null) return text
  const { type: _, ...rest } = attachment
  return JSON.stringify(rest)
}

function firstText(attachment: Attachment, fields: readonly string[]): string | null {
  for (const field of fields) {
    const value = attachment[field]
    if (typeof value === 'string') return value
  }
  return null
}
