/**
 * Reads what the user typed, however it arrived: as a prompt, while the model worked, when refusing a tool call, in
 * answer to a question of the model, or as a command. Text that a program wrote is never returned as the user's.
 */
import { isTextBlock, isToolResult, type ToolResultBlock, type ToolUseBlock, toBlocks } from './block.ts'
import { isObject } from './json.ts'
import { type AttachmentRecord, isKnownRecord, type SessionRecord, type UserRecord } from './record.ts'
import { readRefusal, readToolResultText } from './tool-calls.ts'

/**
 * How a text of the user arrived: `queued` while the model worked, `refusal` with the refusal of a tool call, `answer`
 * to a question that the model asked through a tool, `command` as a slash command, `shell` as a shell command.
 */
export type UserInputKind = 'prompt' | 'queued' | 'refusal' | 'answer' | 'command' | 'shell'

export interface UserInput {
  readonly kind: UserInputKind
  /** The user's own words, verbatim. Empty only for a tool call that the user refused without a word. */
  readonly text: string
  /** Id of the tool call that was refused or that asked the question; null for other kinds. */
  readonly toolUseId: string | null
  /** The question that an `answer` answers; null for other kinds, and if the question is not in the log. */
  readonly question: AskedQuestion | null
}

export interface AskedQuestion {
  readonly text: string
  /** The options that the model offered. */
  readonly options: readonly string[]
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
    if (isTextBlock(block)) return readTypedBlock(block.text, 'prompt')
    return isToolResult(block) ? readResultInput(record, block, calls) : []
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

const MESSAGE_KINDS: ReadonlySet<UserInputKind> = new Set(['prompt', 'queued', 'command'])

/** Returns true if the host logged that a program, not the user, is the origin of a record. */
function isMachineOrigin(record: SessionRecord): boolean {
  const { origin } = record as { readonly origin?: unknown }
  return isObject(origin) && typeof origin.kind === 'string' && origin.kind !== 'human'
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
  const { type, prompt, origin, commandMode = 'prompt' } = attachment
  if (type !== 'queued_command' || isMeta === true || attachment.isMeta === true) return []
  if (isMachineOrigin({ type: 'queued', origin } as SessionRecord) || commandMode === 'task-notification')
    return []
  const texts = typeof prompt === 'string' ? [prompt] : [readToolResultText(prompt)]
  return texts.flatMap((text) => readTypedBlock(text, 'queued'))
}

// Text blocks. A program marks what it puts among the user's text by elements with known names.

/** Elements that a program writes into user messages: notices, reminders, output of local commands, editor state. */
const NOTICE_NAME = new RegExp(
  `^<(${[
    'task-notification',
    'agent-notification',
    'system-reminder',
    'system-notification',
    'local-command-[a-z]+',
    'bash-std(?:out|err)',
    'command-(?:stdout|stderr|contents)',
    'background-task-[a-z]+',
    'user-prompt-submit-hook',
    '[a-z]+(?:-[a-z]+)*-hook',
    'new-diagnostics',
    'ide_[a-z_]+',
    'teammate-message',
    'tick',
    'environment_context',
    'user_instructions',
    'turn_aborted',
    'subagent_notification',
    'permissions instructions',
    'collaboration_mode',
    'skill(?:-format)?',
  ].join('|')})(?=[\\s>/])`,
)
/** The beginning of a notice that the user interrupted the model. */
export const INTERRUPTION_START: RegExp = /^\s*\[Request interrupted/
/** Notices that are no elements: that the user interrupted the model, and a caution before local commands. */
const OTHER_NOTICE =
  /^(?:\[Request interrupted by user[^\]\n]*\]|Caveat: The messages below were generated by the user while running local commands[^\n]*)/
const EMPTY_ELEMENT = /^<[^<>]*\/>/
const COMMAND_PART = /^\s*<command-(name|message|args)>([\s\S]*?)<\/command-\1>/
const SHELL_INPUT = /^<bash-input>([\s\S]*?)<\/bash-input>/

/** Reads a text from its start: notices are left out, then come a slash or shell command and what follows it, or a prompt. */
function readTypedBlock(given: string, kind: 'prompt' | 'queued'): readonly UserInput[] {
  const text = withoutNotices(given)
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

/** Removes notices at both ends of a text. A notice inside the user's own text may be a quotation, so it stays. */
function withoutNotices(given: string): string {
  let text = given
  for (;;) {
    const start = text.trimStart()
    const length = measureNotice(start)
    if (length === 0) break
    text = start.slice(length)
  }
  for (;;) {
    const end = text.trimEnd()
    const open = end.endsWith('</system-reminder>') ? end.lastIndexOf('<system-reminder>') : -1
    if (open === -1) return text
    text = end.slice(0, open)
  }
}

/**
 * Returns the length of the notice at the start of a text; 0 if there is none. An element that is never closed is no
 * notice: the user may write about one, as in "<skill> elements are not rendered".
 */
function measureNotice(start: string): number {
  const other = OTHER_NOTICE.exec(start)
  if (other !== null) return other[0].length
  const name = NOTICE_NAME.exec(start)?.[1]?.split(' ')[0]
  if (name === undefined) return 0
  const empty = EMPTY_ELEMENT.exec(start)
  if (empty !== null) return empty[0].length
  const close = new RegExp(`</${name}(?:\\s[^>]*)?>`).exec(start)
  return close === null ? 0 : close.index + close[0].length
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

// Tool results that hold words of the user: refusals, and answers to questions that the model asked.

function readResultInput(
  record: UserRecord,
  block: ToolResultBlock,
  calls: ReadonlyMap<string, ToolUseBlock>,
): readonly UserInput[] {
  const { tool_use_id: toolUseId } = block
  const refusal = readRefusal(block)
  if (refusal !== null) return [createInput('refusal', refusal, { toolUseId })]
  const call = calls.get(toolUseId)
  const logged = (record as { readonly toolUseResult?: unknown }).toolUseResult
  const given = isObject(logged) && isObject(logged.answers) ? logged : null
  if (block.is_error === true || (given === null && (call === undefined || !ASKING_TOOL.test(call.name))))
    return []
  const questions = [...listQuestions(call?.input), ...listQuestions(given)]
  const answers = given === null ? [] : listLoggedAnswers(given)
  const found = answers.length > 0 ? answers : findAnswers(readToolResultText(block.content), questions)
  return found.map(({ about, text }) => {
    const question = questions.find((one) => one.text === about) ?? null
    return createInput('answer', text, {
      toolUseId,
      question: question ?? (about === '' ? null : { text: about, options: [] }),
    })
  })
}

/** Matches names of tools whose result is what the user answered. */
const ASKING_TOOL =
  /^(?:ask[_-]?(?:the[_-]?)?(?:user|human|follow[_-]?up|question)|request[_-]?user[_-]?input|(?:ask|question)$)/i

interface FoundAnswer {
  /** Text of the question; empty if it is unknown. */
  readonly about: string
  readonly text: string
}

function listQuestions(input: unknown): readonly AskedQuestion[] {
  if (!isObject(input)) return []
  const list: readonly unknown[] = Array.isArray(input.questions) ? input.questions : [input]
  return list.flatMap((item) => {
    const text = isObject(item) ? (item.question ?? item.prompt) : item
    if (typeof text !== 'string' || text.trim() === '') return []
    const options = isObject(item) && Array.isArray(item.options) ? item.options : []
    return [{ text, options: options.flatMap(readOption) }]
  })
}

function readOption(option: unknown): readonly string[] {
  const label = isObject(option) ? (option.label ?? option.value) : option
  return typeof label === 'string' ? [label] : []
}

/** Reads answers that the host logged by question, with the notes that the user added to them. */
function listLoggedAnswers({ answers, annotations }: Readonly<Record<string, unknown>>) {
  if (!isObject(answers)) return []
  return Object.entries(answers).flatMap(([about, value]): readonly FoundAnswer[] => {
    const answer = Array.isArray(value) ? value.join(', ') : value
    const note = isObject(annotations) ? annotations[about] : undefined
    const notes = isObject(note) && typeof note.notes === 'string' ? note.notes : ''
    const text = [typeof answer === 'string' ? answer : '', notes].filter((part) => part.trim() !== '')
    return text.length === 0 ? [] : [{ about, text: text.join('\n') }]
  })
}

const ANSWER_END = /"?\s*\.\s*(?:You can now continue|Read the answers carefully)[\s\S]*$/
const ANSWER_START = /^\s*(?:User has answered your questions?|The user (?:has )?answered)\s*:\s*/

/** Finds the answers in a result such as `User has answered your questions: "Which?"="This", "When?"="Now".` */
function findAnswers(result: string, questions: readonly AskedQuestion[]): readonly FoundAnswer[] {
  const text = result.replace(ANSWER_END, '').replace(ANSWER_START, '')
  if (text.trim() === '') return []
  const marks = questions
    .map(({ text: about }) => ({ about, mark: `"${about}"="`, at: text.indexOf(`"${about}"="`) }))
    .filter(({ at }) => at !== -1)
    .toSorted((one, other) => one.at - other.at)
  if (marks.length === 0) return [{ about: questions[0]?.text ?? '', text: text.trim() }]
  return marks.map(({ about, mark, at }, index) => {
    const answer = text.slice(at + mark.length, marks[index + 1]?.at)
    return { about, text: answer.replace(/"?[,\s]*$/, '') }
  })
}
