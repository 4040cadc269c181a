/**
 * Reads what the user typed, however it arrived: as a prompt, while the model worked, when refusing a tool call, in
 * answer to a question of the model, or as a command. Text that a program wrote is never returned as the user's.
 */
import {
  type Block,
  isTextBlock,
  isToolResult,
  type ToolResultBlock,
  type ToolUseBlock,
  toBlocks,
} from './block.ts'
import { readApprovedPlan, removeHostNotices } from './host-texts.ts'
import { isObject } from './json.ts'
import { type AskedQuestion, readAnswers } from './question-answers.ts'
import { type AttachmentRecord, isKnownRecord, type SessionRecord, type UserRecord } from './record.ts'
import { isTodoOrPlanTool, readPlanText } from './todo-list.ts'
import { readRefusal, readToolResultText } from './tool-calls.ts'

/**
 * How a text of the user arrived: `document` as an attached text, `queued` while the model worked, `refusal` with the
 * refusal of a tool call, `answer` to a question that the model asked through a tool, `plan` as lines changed in a plan of
 * the model, `command` as a slash command, `shell` as a shell command.
 */
export type UserInputKind =
  | 'prompt'
  | 'document'
  | 'queued'
  | 'refusal'
  | 'answer'
  | 'plan'
  | 'command'
  | 'shell'

export interface UserInput {
  readonly kind: UserInputKind
  /** The user's own words, verbatim. Empty only for a tool call that the user refused without a word. */
  readonly text: string
  /** Id of the tool call that was refused, asked the question or wrote the plan; null for other kinds. */
  readonly toolUseId: string | null
  /** The question that an `answer` answers; null for other kinds, and if the question is not in the log. */
  readonly question: AskedQuestion | null
}

/**
 * Returns the user's inputs in a record, in order. `calls`: the tool calls before it, by id. They are needed to know
 * which results answer a question; without them, answers are found only where the host logged them apart.
 */
export function readUserInputs(
  record: SessionRecord,
  calls: ReadonlyMap<string, ToolUseBlock> = NO_CALLS,
): readonly UserInput[] {
  if (!isKnownRecord(record) || isMachineOrigin(record)) return []
  if (record.type === 'attachment') return readQueuedInput(record)
  if (record.type !== 'user' || record.message.role !== 'user') return []
  if (record.isMeta === true || record.isCompactSummary === true) return []
  return toBlocks(record.message.content).flatMap((block) => {
    if (isToolResult(block)) return readResultInput(record, block, calls)
    return readMessageBlock(block, 'prompt')
  })
}

const NO_CALLS: ReadonlyMap<string, ToolUseBlock> = new Map()

/**
 * Returns the text that the user typed in a record, or null if there is none. A record with a tool result can contain
 * such text too: the user may type a reason when rejecting a tool call.
 */
export function readUserTypedText(record: SessionRecord): string | null {
  const texts = readUserInputs(record).flatMap(({ text }) => (text === '' ? [] : [text]))
  return texts.length === 0 ? null : texts.join('\n')
}

/** Returns true for a record that is a message of the user on its own: a prompt, a queued message or a slash command. */
export function isUserMessage(record: SessionRecord): boolean {
  return readUserInputs(record).some(({ kind }) => MESSAGE_KINDS.has(kind))
}

const MESSAGE_KINDS: ReadonlySet<UserInputKind> = new Set(['prompt', 'document', 'queued', 'command'])

/** Kinds of origin that are programs. A message of any other origin counts as the user's, so that it is not lost. */
const MACHINE_ORIGIN =
  /notification|agent|coordinator|teammate|peer|hook|system|tool|task|bot|auto|schedul|cron|timer|machine|program|assistant|model/i

/** Returns true if the host logged that a program, not the user, is the origin of a record or of an attachment. */
function isMachineOrigin(from: object): boolean {
  const { origin } = from as { readonly origin?: unknown }
  const kind = isObject(origin) ? origin.kind : origin
  return typeof kind === 'string' && MACHINE_ORIGIN.test(kind)
}

function createInput(
  kind: UserInputKind,
  text: string,
  more: Partial<Pick<UserInput, 'toolUseId' | 'question'>> = {},
): UserInput {
  return { kind, text, toolUseId: null, question: null, ...more }
}

// Messages that were queued while the model worked are logged as attachments.

function readQueuedInput({ attachment, isMeta }: AttachmentRecord): readonly UserInput[] {
  const { type, commandMode = 'prompt' } = attachment
  if (type !== 'queued_command' || isMeta === true || attachment.isMeta === true) return []
  if (isMachineOrigin(attachment) || commandMode === 'task-notification') return []
  return readQueuedContent(attachment.prompt ?? attachment.text ?? attachment.content ?? attachment.message)
}

/** Reads a queued message: a text, a list of texts and blocks, or an object with one of these. */
function readQueuedContent(content: unknown): readonly UserInput[] {
  if (typeof content === 'string') return readTypedBlock(content, 'queued')
  if (Array.isArray(content)) return content.flatMap(readQueuedContent)
  if (!isObject(content)) return []
  if (typeof content.type === 'string') return readMessageBlock(content as Block, 'queued')
  return readQueuedContent(content.text ?? content.content ?? content.prompt ?? content.message)
}

// Blocks with text: what the user typed, and documents that the user attached.

function readMessageBlock(block: Block, kind: 'prompt' | 'queued'): readonly UserInput[] {
  if (isTextBlock(block)) return readTypedBlock(block.text, kind)
  const text = block.type === 'document' ? readDocumentText(block.source) : ''
  return text.trim() === '' ? [] : [createInput('document', text)]
}

/** Returns the text of a document; empty if it is a file in another format. */
function readDocumentText(source: unknown): string {
  if (!isObject(source)) return ''
  if (source.type === 'text' && typeof source.data === 'string') return source.data
  return source.type === 'content' ? readToolResultText(source.content) : ''
}

const COMMAND_PART = /^\s*<command-(name|message|args)>([\s\S]*?)<\/command-\1>/
const SHELL_INPUT =
  /^<(?:bash-input|user_shell_command)>(?:\s*<command>)?([\s\S]*?)(?:<\/bash-input>|<\/command>[\s\S]*?<\/user_shell_command>)/

/** Reads a text from its start: notices are left out, then come a slash or shell command and what follows it, or a prompt. */
function readTypedBlock(given: string, kind: 'prompt' | 'queued'): readonly UserInput[] {
  const text = removeHostNotices(given)
  const start = text.trimStart()
  if (start === '') return []
  const shell = SHELL_INPUT.exec(start)
  if (shell !== null) {
    const typed = shell[1]?.trim() ?? ''
    const rest = readTypedBlock(start.slice(shell[0].length), kind)
    return typed === '' ? rest : [createInput('shell', typed), ...rest]
  }
  const length = measureCommand(start)
  if (length === 0) return [createInput(kind, text)]
  return [...readCommand(start.slice(0, length)), ...readTypedBlock(start.slice(length), kind)]
}

/** Returns the length of the slash command at the start of a text; 0 if there is none. */
function measureCommand(start: string): number {
  let length = 0
  for (;;) {
    const part = COMMAND_PART.exec(start.slice(length))
    if (part === null) return length
    // The arguments may themselves contain the closing tag.
    const end = part[1] === 'args' ? start.lastIndexOf(ARGUMENTS_END) + ARGUMENTS_END.length : 0
    length = Math.max(end, length + part[0].length)
  }
}

const ARGUMENTS_END = '</command-args>'

/**
 * Reads a slash command with its arguments. A command without arguments counts only if it starts a turn: programs then
 * log its message before its name. Others, such as `/exit`, ask nothing of the model.
 */
function readCommand(text: string): readonly UserInput[] {
  const name = /<command-name>\s*([^<]*?)\s*<\/command-name>/.exec(text)?.[1] ?? ''
  const args = /<command-args>([\s\S]*)<\/command-args>/.exec(text)?.[1]?.trim() ?? ''
  if (args === '' && (name === '' || !text.startsWith('<command-message>'))) return []
  const typed = name === '' || name.startsWith('/') ? name : `/${name}`
  return [createInput('command', `${typed} ${args}`.trim())]
}

// Tool results that hold words of the user: refusals, answers to questions that the model asked, and plans that the user
// changed before approving them.

function readResultInput(
  record: UserRecord,
  block: ToolResultBlock,
  calls: ReadonlyMap<string, ToolUseBlock>,
): readonly UserInput[] {
  const { tool_use_id: toolUseId } = block
  const refusal = readRefusal(block)
  const call = calls.get(toolUseId)
  const result = refusal === null ? readToolResultText(block.content) : ''
  const answers = readAnswers({
    call,
    result,
    isError: block.is_error === true,
    logged: (record as { readonly toolUseResult?: unknown }).toolUseResult,
  })
  return [
    ...(refusal === null ? [] : [createInput('refusal', refusal, { toolUseId })]),
    ...answers.map(({ text, question }) => createInput('answer', text, { toolUseId, question })),
    ...readPlanChanges(call, result).map((text) => createInput('plan', text, { toolUseId })),
  ]
}

/** Returns the lines that the user changed in a plan: all of them if the call does not have the plan. */
function readPlanChanges(call: ToolUseBlock | undefined, result: string): readonly string[] {
  if (call === undefined || !isTodoOrPlanTool(call.name)) return []
  const approved = readApprovedPlan(result)
  if (approved === null || !approved.isEdited) return []
  const before = new Set(
    readPlanText({ ...call, path: null })
      ?.split('\n')
      .map((line) => line.trim()),
  )
  const lines = approved.text.split('\n').filter((line) => line.trim() !== '' && !before.has(line.trim()))
  return lines.length === 0 ? [] : [lines.join('\n')]
}
