/**
 * Reads what the user typed, however it arrived: as a prompt, while the model worked, when refusing a tool call, in
 * answer to a question of the model, or as a command. The notices in `host-texts.ts` and messages with the origin of a program
 * are left out. Messages of other agents, and results of a server's tool that read like the user's words, have another
 * author. Any other text counts as the user's.
 */
import {
  type Block,
  isTextBlock,
  isToolResult,
  type MessageContent,
  type TextBlock,
  type ToolResultBlock,
  type ToolUseBlock,
  toBlocks,
} from '../log/block.ts'
import { isObject } from '../log/json.ts'
import {
  type AttachmentRecord,
  isKnownRecord,
  type KnownRecord,
  type RecordedUserInput,
  type SessionRecord,
  type UserRecord,
} from '../log/record.ts'
import { readAgentMessages, readApprovedPlan, removeHostNotices } from './host-texts.ts'
import { type AskedQuestion, readAnswers } from './question-answers.ts'
import { isTodoOrPlanTool, readPlanText } from './todo-list.ts'
import { hasServerPrefix, readRefusalFromResult, readToolName, readToolResultText } from './tool-calls.ts'

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

/**
 * Whose words an input has. `agent`: an agent that instructs this one. `tool`: a tool of a server, whose result reads
 * like a refusal or an answer of the user, without anything in the log to confirm it.
 */
export interface InputAuthor {
  readonly kind: 'user' | 'agent' | 'tool'
  /** The name of the agent or of the tool; empty for the user. */
  readonly name: string
}

/** The author of all inputs that are the user's. */
export const THE_USER: InputAuthor = { kind: 'user', name: '' }

/** One text of the user, or of an agent or tool in the user's place, as read from a record. */
export interface UserInput {
  readonly kind: UserInputKind
  readonly author: InputAuthor
  /** The user's own words, verbatim. Empty only for a tool call that the user refused without a word. */
  readonly text: string
  /** Id of the tool call that was refused, asked the question or wrote the plan; null for other kinds. */
  readonly toolUseId: string | null
  /** The question that an `answer` answers; null for other kinds, and if the question is not in the log. */
  readonly question: AskedQuestion | null
}

/**
 * Returns the user's inputs in a record, in order. `calls`: the tool calls before the record, by id, needed to know
 * which results answer a question. Without them, answers are found only if the host logged them separately.
 */
export function readUserInputs(
  record: SessionRecord,
  calls: ToolCallLookup = NO_CALLS,
): readonly UserInput[] {
  if (!isKnownRecord(record)) return []
  const sender = readAgentOrigin(record)
  if (sender !== null) return withAuthor(readMessages(record, calls), sender)
  return isMachineOrigin(record) ? [] : readMessages(record, calls)
}

function withAuthor(inputs: readonly UserInput[], name: string): readonly UserInput[] {
  return inputs.map((input) => ({ ...input, author: { kind: 'agent', name } }))
}

function readMessages(record: KnownRecord, calls: ToolCallLookup): readonly UserInput[] {
  if (record.type === 'attachment') return readQueuedInput(record)
  if (record.type !== 'user' || record.message.role !== 'user') return []
  if (record.isMeta === true || record.isCompactSummary === true) return []
  const { userInputs } = record
  const prompts = userInputs?.filter(({ kind }) => kind === 'prompt') ?? []
  const blocks = toBlocks(record.message.content)
  const apart = prompts.flatMap(({ text }) =>
    text === undefined || blocks.some((block) => block.text === text) ? [] : [text],
  )
  const inputs = blocks.flatMap((block) => {
    if (isToolResult(block))
      return userInputs === undefined
        ? readResultInput(record, block, findCall(blocks, block, calls))
        : readRecordedInputs(userInputs, block)
    if (prompts.length === 0 || !isTextBlock(block)) return readMessageBlock(block, 'prompt')
    if (block.text.trim() === '') return []
    const isTyped = prompts.some(({ text }) => text === undefined || text === block.text)
    if (isTyped) return [createInput('prompt', block.text)]
    return apart.length > 0 ? [] : readMessageBlock(block, 'prompt')
  })
  return [...apart.map((text) => createInput('prompt', text)), ...inputs]
}

/**
 * Creates the field `userInputs` for the record of a message that the user sends. `typed`: the texts that the user typed, if
 * a host has put its own texts beside them. Without it, every text of the message is the user's, whatever it looks like; only
 * a slash command, which the engine wrote out, and texts beside tool results are recognised by their form.
 */
export function createRecordedUserInputs(
  content: MessageContent,
  typed?: string | readonly string[],
): readonly RecordedUserInput[] {
  const isCommand = readCommandMessage(content) !== null
  const blocks = toBlocks(content)
  const texts = new Set(blocks.filter(isTextBlock).map(({ text }) => text))
  const own = new Set(typed === undefined ? texts : [typed].flat())
  const isWhole = own.size === texts.size && [...own].every((text) => texts.has(text))
  if (!isWhole) return [...own].map((text) => ({ kind: 'prompt', text }))
  const isMixed = isCommand || blocks.some(isToolResult)
  return isMixed ? [] : [{ kind: 'prompt' }]
}

/** Finds tool calls by id. `nth`: which of several calls with this id, counted from 0 by their results in a record. */
export interface ToolCallLookup {
  get(id: string, nth?: number): ToolUseBlock | undefined
}

const NO_CALLS: ToolCallLookup = new Map()

/**
 * Returns the text that the user typed in a record, or null if there is none. A record with a tool result can have such text
 * too: the reason that the user typed when refusing the call.
 */
export function readUserTypedText(record: SessionRecord): string | null {
  const texts = readUserInputs(record).flatMap(({ text, author }) =>
    text === '' || author.kind !== 'user' ? [] : [text],
  )
  return texts.length === 0 ? null : texts.join('\n')
}

/**
 * Returns true for a record that is a message on its own, of the user or of an agent in the user's place: a prompt, a
 * queued message or a slash command.
 */
export function isUserMessage(record: SessionRecord): boolean {
  return readUserInputs(record).some(({ kind }) => MESSAGE_KINDS.has(kind))
}

const MESSAGE_KINDS: ReadonlySet<UserInputKind> = new Set(['prompt', 'document', 'queued', 'command'])

/** Matches kinds of origin that are programs. A message of any other origin counts as the user's, so that it is not lost. */
const MACHINE_ORIGIN =
  /notification|agent|coordinator|teammate|peer|hook|system|tool|task|bot|auto|schedul|cron|timer|machine|program|assistant|model/i

/** Matches kinds of origin that are agents which instruct this one. Their messages are kept, under their name. */
const AGENT_ORIGIN = /^(?:(?:main|parent|lead|team)[-_ ]?)?(?:agent|coordinator|teammate|peer|lead(?:er)?)$/i

/** Returns the name of the agent that the host logged as the origin of a record or of an attachment; null if it is none. */
function readAgentOrigin(from: object): string | null {
  const { origin } = from as { readonly origin?: unknown }
  const fields = isObject(origin) ? origin : { kind: origin }
  if (typeof fields.kind !== 'string' || !AGENT_ORIGIN.test(fields.kind)) return null
  const name = [fields.name, fields.from, fields.id].find((one) => typeof one === 'string' && one !== '')
  return typeof name === 'string' ? name : fields.kind
}

/** Returns true if the host logged that a program, not the user, is the origin of a record or of an attachment. */
function isMachineOrigin(from: object): boolean {
  const { origin } = from as { readonly origin?: unknown }
  const kind = isObject(origin) ? origin.kind : origin
  return typeof kind === 'string' && MACHINE_ORIGIN.test(kind)
}

function createInput(
  kind: UserInputKind,
  text: string,
  more: Partial<Pick<UserInput, 'author' | 'toolUseId' | 'question'>> = {},
): UserInput {
  return { kind, text, author: THE_USER, toolUseId: null, question: null, ...more }
}

// Messages that were queued while the model worked are logged as attachments.

function readQueuedInput({ attachment, isMeta }: AttachmentRecord): readonly UserInput[] {
  const { type, commandMode = 'prompt' } = attachment
  if (type !== 'queued_command' || isMeta === true || attachment.isMeta === true) return []
  const sender = readAgentOrigin(attachment)
  if (commandMode === 'task-notification' || (sender === null && isMachineOrigin(attachment))) return []
  const { prompt, text, content, message } = attachment
  const inputs = readQueuedContent(prompt ?? text ?? content ?? message)
  return sender === null ? inputs : withAuthor(inputs, sender)
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

/**
 * Reads a text from its start. Notices are left out. Then come messages of other agents, and a slash or shell command
 * with what follows it, or a prompt.
 */
function readTypedBlock(given: string, kind: 'prompt' | 'queued'): readonly UserInput[] {
  const sent = readAgentMessages(given).map(({ from, text }) =>
    createInput(kind, text, { author: { kind: 'agent', name: from } }),
  )
  return [...sent, ...readOwnText(given, kind)]
}

function readOwnText(given: string, kind: 'prompt' | 'queued'): readonly UserInput[] {
  const text = removeHostNotices(given)
  const start = text.trimStart()
  if (start === '') return []
  const shell = SHELL_INPUT.exec(start)
  if (shell !== null) {
    const typed = shell[1]?.trim() ?? ''
    const rest = readOwnText(start.slice(shell[0].length), kind)
    return typed === '' ? rest : [createInput('shell', typed), ...rest]
  }
  const length = measureCommand(start)
  if (length === 0) return [createInput(kind, text)]
  return [...readCommand(start.slice(0, length)), ...readOwnText(start.slice(length), kind)]
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
 * log its message before its name. Other commands without arguments, such as `/exit`, ask nothing of the model.
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

function findCall(
  blocks: readonly Block[],
  result: ToolResultBlock,
  calls: ToolCallLookup,
): ToolUseBlock | undefined {
  const { tool_use_id: id } = result
  return calls.get(id, blocks.slice(0, blocks.indexOf(result)).filter(isResultOf(id)).length)
}

function isResultOf(id: string): (block: Block) => boolean {
  return (block) => isToolResult(block) && block.tool_use_id === id
}

/** Returns what the engine or its host recorded about a result. Nothing else in the result is the user's. */
function readRecordedInputs(
  recorded: readonly RecordedUserInput[],
  { tool_use_id: toolUseId }: ToolResultBlock,
): readonly UserInput[] {
  return recorded.flatMap(({ kind, toolUseId: id, text = '', question }) => {
    if (kind === 'prompt' || id !== toolUseId) return []
    const asked = question === undefined ? null : { text: question.text, options: question.options ?? [] }
    return [createInput(kind, text, { toolUseId, question: asked })]
  })
}

/**
 * Reads a result by its form if nothing was recorded about it. In another program's log, the program itself writes refusals. A
 * server's tool, or a host's tool in a log of ours, may write a text of any form, so that text counts as the tool's.
 */
function readResultInput(
  record: UserRecord,
  block: ToolResultBlock,
  call: ToolUseBlock | undefined,
): readonly UserInput[] {
  const { tool_use_id: toolUseId } = block
  const name = call === undefined ? '' : readToolName(call)
  const { toolUseResult: logged } = record as { readonly toolUseResult?: unknown }
  const tool: InputAuthor = { kind: 'tool', name }
  const author = hasServerPrefix(name) ? tool : THE_USER
  // Claude Code logs a refusal as a text beside the result. Records with a position are those of our own logs.
  const isLogged = typeof logged === 'string' || record.seq === undefined
  const refusal = readRefusalFromResult(block)
  const result = refusal === null ? readToolResultText(block.content) : ''
  const answers = readAnswers({
    call,
    result,
    isError: block.is_error === true,
    logged,
  })
  return [
    ...(refusal === null
      ? []
      : [createInput('refusal', refusal, { author: isLogged ? author : tool, toolUseId })]),
    ...answers.map(({ text, question }) => createInput('answer', text, { author, toolUseId, question })),
    ...readPlanChanges(call, result).map((text) => createInput('plan', text, { author, toolUseId })),
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

// Slash commands: a prompt such as `/review src/a.ts` that stands for the text of a file. The user's own words (name
// and arguments) are logged apart from that text, so that only these words count as typed.

interface SlashCommand {
  /** The name without the slash, such as `review` or `frontend:review`. */
  readonly name: string
  /** Everything after the name, as typed; empty if there is nothing. */
  readonly args: string
}

// The message of a command: its name and arguments in one block, the text of its file in another.

const CONTENTS = 'command-contents'

/** Creates the message of a slash command. `contents`: the text of its file, with arguments and output in place. */
export function createCommandMessage({ name, args }: SlashCommand, contents: string): readonly TextBlock[] {
  // The message stands before the name: that is how a command without arguments counts as typed.
  const typed = [
    `<command-message>${name}</command-message>`,
    `<command-name>/${name}</command-name>`,
    `<command-args>${args}</command-args>`,
  ].join('\n')
  const defused = contents.replace(/<(?=\/?command-contents)/gi, '&lt;')
  return [
    { type: 'text', text: typed },
    { type: 'text', text: `<${CONTENTS}>\n${defused}\n</${CONTENTS}>` },
  ]
}

/** Reads a message that `createCommandMessage` created: name, arguments and the text of the file. Null if it is another. */
export function readCommandMessage(
  content: MessageContent,
): (SlashCommand & { readonly contents: string }) | null {
  const [typed, contents] = toBlocks(content).filter((block: Block): block is TextBlock => isTextBlock(block))
  const [, name, args] =
    /^<command-message>[^<]*<\/command-message>\n<command-name>\/([^<]*)<\/command-name>\n<command-args>([\s\S]*)<\/command-args>$/.exec(
      typed?.text ?? '',
    ) ?? []
  const text = /^<command-contents>\n([\s\S]*)\n<\/command-contents>$/.exec(contents?.text ?? '')?.[1]
  return name === undefined || args === undefined || text === undefined
    ? null
    : { name, args, contents: text }
}
