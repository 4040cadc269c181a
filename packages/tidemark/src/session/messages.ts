/** Messages that callers append, in the format of the Messages API, and functions that create them. */
import { TidemarkError } from '@tidemark/core/errors'
import { type Block, isBlock, type MessageContent } from '@tidemark/core/log/block'
import { isUserInputList } from '@tidemark/core/log/decode-record'
import { isObject } from '@tidemark/core/log/json'
import type { Attachment } from '@tidemark/core/log/record'
import { toRecordedAnswers, type UserAnswer } from './user-answers.ts'

/** A message in the format of the Messages API, a response as the API returns it, or an attachment of the host. */
export type MessageInput = Message | AttachmentInput

export interface Message {
  readonly role: 'user' | 'assistant'
  readonly content: MessageContent
  /** Fields of a response, such as `id`, `model` and `usage`. */
  readonly [field: string]: unknown
}

export interface AttachmentInput {
  readonly role: 'attachment'
  readonly attachment: Attachment
}

/**
 * Creates a message with a prompt of the user.
 *
 * @example await session.append(user('Fix the login page.'))
 */
export function user(content: string | readonly object[]): Message {
  return { role: 'user', content: checkContent('user', content) }
}

/**
 * Creates a message from a response of the model as an SDK returns it, with all blocks and usage. `session.append` also
 * accepts the response itself.
 *
 * @example await session.append(assistant(await client.messages.create(request.body)))
 */
export function assistant(response: string | object): Message {
  if (typeof response === 'string') return { role: 'assistant', content: response }
  const { content, ...fields } = response as Readonly<Record<string, unknown>>
  return { ...fields, role: 'assistant', content: checkContent('assistant', content) }
}

interface ToolResultOptions {
  readonly isError?: boolean
  /** What the user answered, if the tool asks questions. Only these texts of a result are recorded as the user's own words. */
  readonly answers?: readonly UserAnswer[]
  /** Set if the user refused the call, so that it did not run: what the user typed, or an empty text. */
  readonly userReason?: string
}

/**
 * Creates a message with the result of the tool call `id`.
 *
 * @example await session.append(toolResult(call.id, 'no such file', { isError: true }))
 */
export function toolResult(
  id: string,
  content: string | readonly object[],
  { isError, answers = [], userReason }: ToolResultOptions = {},
): Message {
  if (typeof id !== 'string' || id === '')
    throw badRecord('toolResult(id, content): expected the id of the tool call.')
  const result = { type: 'tool_result', tool_use_id: id, content: checkContent('toolResult', content) }
  const userInputs = [
    ...toRecordedAnswers(answers, 'toolResult'),
    ...(userReason === undefined ? [] : [{ kind: 'refusal' as const, text: String(userReason) }]),
  ].map((input) => ({ ...input, toolUseId: id }))
  return {
    role: 'user',
    content: [isError === true ? { ...result, is_error: true } : result],
    ...(userInputs.length === 0 ? {} : { userInputs }),
  }
}

/**
 * Creates an attachment: context from the host, which the model sees in a system reminder with the type as its heading.
 *
 * @example await session.append(attachment('selection', 'lines 3 to 9 of src/login.ts'))
 */
export function attachment(type: string, content: string): AttachmentInput {
  if (typeof type !== 'string' || type === '')
    throw badRecord('attachment(type, content): expected a type, as in attachment("selection", text).')
  if (typeof content !== 'string') throw badRecord('attachment(type, content): expected the content as text.')
  return { role: 'attachment', attachment: { type, content } }
}

/** Checks a message given to `session.append` and returns it. Throws `bad-record` with a description of the problem. */
export function parseMessageInput(given: unknown): MessageInput {
  if (typeof given === 'string') throw badRecord('append: expected a message, found text: give user(…).')
  if (!isObject(given))
    throw badRecord('append: expected messages, such as user("…") or a response of the model.')
  const { role } = given
  if (role === 'attachment' && isObject(given.attachment)) return given as unknown as AttachmentInput
  if (role !== 'user' && role !== 'assistant')
    throw badRecord('append: expected a message with the role "user" or "assistant".')
  if (given.userInputs !== undefined && !isUserInputList(given.userInputs))
    throw badRecord(
      'append: userInputs: expected the list that toolResult(id, content, { answers, userReason }) creates.',
    )
  return { ...given, role, content: checkContent('append', given.content) }
}

function checkContent(caller: string, content: unknown): MessageContent {
  if (typeof content === 'string') return content
  if (Array.isArray(content) && content.every((block): block is Block => isBlock(block))) return content
  throw badRecord(`${caller}: expected content as text or a list of blocks, each with a type.`)
}

function badRecord(message: string): TidemarkError {
  return new TidemarkError('bad-record', message)
}
