/** What people say to a session: messages in the shape of the Messages API, made by hand or by the functions here. */
import { type Attachment, type Block, type Content, isBlock, isObject, TidemarkError } from '@tidemark/core'

/** A message as the API takes it, a response as it gives it, or context of the host's own. */
export type Said = SaidMessage | SaidAttachment

export interface SaidMessage {
  readonly role: 'user' | 'assistant'
  readonly content: Content
  /** Of a response: `id`, `model`, `usage`, `stop_reason` … */
  readonly [field: string]: unknown
}

export interface SaidAttachment {
  readonly role: 'attachment'
  readonly attachment: Attachment
}

/**
 * What the person says.
 *
 * @example await session.append(user('Fix the login page.'))
 */
export function user(content: string | readonly object[]): SaidMessage {
  return { role: 'user', content: checkedContent('user', content) }
}

/**
 * A response of the model, as an SDK gives it: all its blocks, with its usage. `append` takes it as it is, too.
 *
 * @example await session.append(assistant(await client.messages.create(request.body)))
 */
export function assistant(response: string | object): SaidMessage {
  if (typeof response === 'string') return { role: 'assistant', content: response }
  const { content, ...fields } = response as Readonly<Record<string, unknown>>
  return { ...fields, role: 'assistant', content: checkedContent('assistant', content) }
}

export interface ToolResultOptions {
  readonly isError?: boolean
}

/**
 * What a tool gave back for the call `id`.
 *
 * @example await session.append(toolResult(call.id, 'no such file', { isError: true }))
 */
export function toolResult(
  id: string,
  content: string | readonly object[],
  { isError }: ToolResultOptions = {},
): SaidMessage {
  if (typeof id !== 'string' || id === '')
    throw bad('toolResult(id, content): expected the id of the call, as the model gave it.')
  const result = { type: 'tool_result', tool_use_id: id, content: checkedContent('toolResult', content) }
  return { role: 'user', content: [isError === true ? { ...result, is_error: true } : result] }
}

/**
 * Context that the host adds: the model reads it in a reminder headed by its type.
 *
 * @example await session.append(attachment('selection', 'lines 3 to 9 of src/login.ts'))
 */
export function attachment(type: string, content: string): SaidAttachment {
  if (typeof type !== 'string' || type === '')
    throw bad('attachment(type, content): expected a type, as in attachment("selection", text).')
  if (typeof content !== 'string') throw bad('attachment(type, content): expected the content as text.')
  return { role: 'attachment', attachment: { type, content } }
}

/** What was given as something said, or an error that names what is wrong with it. */
export function checkedSaid(given: unknown): Said {
  if (typeof given === 'string') throw bad(`append: expected a message, found a text: give user(${'…'}).`)
  if (!isObject(given)) throw bad('append: expected messages, as user("…") or a response of the model.')
  const { role } = given
  if (role === 'attachment' && isObject(given.attachment)) return given as unknown as SaidAttachment
  if (role !== 'user' && role !== 'assistant')
    throw bad('append: expected a message with the role "user" or "assistant".')
  return { ...given, role, content: checkedContent('append', given.content) }
}

function checkedContent(who: string, content: unknown): Content {
  if (typeof content === 'string') return content
  if (Array.isArray(content) && content.every((block): block is Block => isBlock(block))) return content
  throw bad(`${who}: expected content as a text or a list of blocks, each with a type.`)
}

function bad(message: string): TidemarkError {
  return new TidemarkError('bad-record', message)
}
