/**
 * What the user typed, word for word, with what each text answers, refuses or corrects. Texts of other agents, and tool
 * results that read like the user's words, are kept like messages, and each of their lines says whose it is.
 */
import { isTextBlock, isToolResult, isToolUse, type ToolUseBlock, toBlocks } from '../log/block.ts'
import { isSyntheticError, type KnownRecord } from '../log/record.ts'
import { sliceWholeCharacters, truncateEnd } from '../text/truncate-text.ts'
import { INTERRUPTION_START } from './host-texts.ts'
import { isAskingTool } from './question-answers.ts'
import { describeToolCall, readToolName } from './tool-calls.ts'
import {
  type InputAuthor,
  readUserInputs,
  THE_USER,
  type ToolCallLookup,
  type UserInput,
  type UserInputKind,
} from './user-input.ts'

/** A message of the user or of another agent, as read from its record. */
export interface ParsedUserPrompt {
  readonly uuid: string
  readonly place: number
  /**
   * The user's text verbatim, except that credentials are removed. An answer to a question that the model asked through
   * a tool has the question and its options in front.
   */
  readonly text: string
  /** A note on how the text arrived or what it answers, to be placed before the text; empty for an ordinary prompt. */
  readonly lead: string
  /** The texts that a summary must contain: the user's words, and the questions that they answer. */
  readonly required: readonly string[]
  /** The texts of `required` as they are in the record itself. */
  readonly sources: readonly string[]
  /** Each text of the message alone. */
  readonly parts: readonly UserPromptPart[]
  /** Texts among the user's words that are not the user's: the lead, and the questions as `text` has them. */
  readonly context: readonly string[]
  /** Whose words the message has. If it has words of several authors: the user, otherwise an agent. */
  readonly author: InputAuthor
  /** `user` if any of the message is the user's, otherwise the names of the agents that sent it. */
  readonly sender: string
  /** True if it is the first message after the user interrupted or refused, which indicates a change of course. */
  readonly isCorrection: boolean
  readonly inputs: readonly UserInput[]
  /** The inputs that are instructions: prompts, including those sent while the model worked once they are delivered. */
  readonly instructions: readonly UserInput[]
  /** The end of the model's text that a short reply answers; empty for any other message. */
  readonly answers: string
  /**
   * What a correction refers to: the call that was refused, else the model's text or call before it; empty for no correction.
   */
  readonly corrects: string
}

/** One of the texts of a message. Of an answer, only the user's words are required, since the question is the model's. */
export interface UserPromptPart extends Pick<ParsedUserPrompt, 'text' | 'lead' | 'required' | 'sources'> {}

/** A reply with at most this many characters is quoted together with the end of the text that it answers. */
const SHORT_REPLY_CHARACTERS = 40
const ANSWERED_CHARACTERS = 300
const TARGET_CHARACTERS = 120

/** A message of the user or of another agent, with what followed it. */
export interface UserPrompt extends ParsedUserPrompt {
  readonly time: string
  /** True if the model made a call before the next message. */
  readonly hasCalls: boolean
  /** False if the model has not responded since. Such a message is never cut. */
  readonly isAnswered: boolean
}

/** Reads what the user typed, record by record, in the order of the branch. Holds only the calls without a result. */
interface UserPromptReader {
  /** Returns what the user typed in the record; null if nothing. `place`: index of the record in the history. */
  read(record: KnownRecord, place: number): ParsedUserPrompt | null
}

/** Creates a reader for one branch. `clean` removes credentials from every text. */
export function createUserPromptReader(clean: (text: string) => string): UserPromptReader {
  const calls = createOpenCalls()
  /** True after the user stopped the model, until the next message or until the model calls a tool again. */
  let isStopped = false
  let answered = ''
  let lastCall: ToolUseBlock | undefined
  return {
    read(record, place) {
      if (record.type === 'assistant' && !isSyntheticError(record)) {
        for (const block of toBlocks(record.message.content)) {
          if (isToolUse(block)) {
            calls.open(block, record.message.id)
            lastCall = block
            isStopped = false
          }
          if (isTextBlock(block) && block.text.trim() !== '') answered = block.text.trim()
        }
      }
      const typed = readUserInputs(record, calls)
      const inputs = typed.filter(({ text }) => text.trim() !== '').map((input) => cleanInput(input, clean))
      isStopped ||= isInterruption(record) || typed.some(isRefusal)
      const answers = findAnswered(inputs, answered)
      const describeStopped = (): string => {
        const refused = inputs.find(isRefusal)?.toolUseId
        if (refused !== undefined && refused !== null) return formatCall(calls.get(refused))
        return answered === '' ? formatCall(lastCall) : `"${takeLastSentences(answered)}"`
      }
      const prompt =
        inputs.length === 0
          ? null
          : {
              ...formatPrompt(inputs, clean(formatLead(inputs, answers, calls))),
              uuid: record.uuid,
              place,
              inputs,
              instructions: inputs.filter((input) => isInstruction(input, record)),
              author: pickAuthor(inputs),
              sender: nameSender(inputs),
              answers: clean(answers),
              isCorrection: isStopped,
              corrects: isStopped ? clean(describeStopped()) : '',
            }
      if (prompt !== null) {
        answered = ''
        isStopped = false
      }
      if (record.type === 'user')
        for (const block of toBlocks(record.message.content))
          if (isToolResult(block)) calls.close(block.tool_use_id)
      return prompt
    },
  }
}

interface OpenCalls extends ToolCallLookup {
  /** `response`: id of the response with the call. */
  open(call: ToolUseBlock, response: string): void
  close(id: string): void
}

/**
 * Holds the calls without a result, and those that ask the user: their answer may be logged after another result. If
 * several calls have one id, a result belongs to the newest response with that id; within one response, results belong
 * to the calls in order.
 */
function createOpenCalls(): OpenCalls {
  const open = new Map<string, { readonly response: string; readonly calls: readonly ToolUseBlock[] }>()
  return {
    get(id, nth = 0) {
      const calls = open.get(id)?.calls ?? []
      return calls[nth] ?? calls.at(-1)
    },
    open(call, response) {
      const known = open.get(call.id)
      const calls = known?.response === response ? known.calls : []
      open.set(call.id, { response, calls: [...calls, call] })
    },
    close(id) {
      const known = open.get(id)
      if (known === undefined) return
      const [first, ...rest] = known.calls
      if (rest.length > 0) open.set(id, { ...known, calls: rest })
      else if (first === undefined || !isAskingTool(readToolName(first))) open.delete(id)
    },
  }
}

const INSTRUCTION_KINDS: ReadonlySet<UserInputKind> = new Set(['prompt', 'queued'])

function isInstruction({ kind }: UserInput, record: KnownRecord): boolean {
  const { commandMode = 'prompt' } = record.type === 'attachment' ? record.attachment : {}
  return INSTRUCTION_KINDS.has(kind) && commandMode === 'prompt'
}

function isRefusal({ kind, author }: UserInput): boolean {
  return kind === 'refusal' && author.kind === 'user'
}

/** Returns the author of a message with inputs of several: the user, else an agent, else a tool. */
function pickAuthor(inputs: readonly UserInput[]): InputAuthor {
  const authors = inputs.map(({ author }) => author)
  const kinds = ['user', 'agent', 'tool'] as const
  return kinds.flatMap((kind) => authors.find((author) => author.kind === kind) ?? [])[0] ?? THE_USER
}

function cleanInput(input: UserInput, clean: (text: string) => string): UserInput {
  const { text, question } = input
  if (question === null) return { ...input, text: clean(text) }
  const asked = { text: clean(question.text), options: question.options.map(clean) }
  return { ...input, text: clean(text), question: asked }
}

function formatPrompt(
  inputs: readonly UserInput[],
  lead: string,
): Pick<ParsedUserPrompt, 'text' | 'lead' | 'required' | 'sources' | 'parts' | 'context'> {
  const own = inputs.filter(({ author }) => author.kind === 'user')
  const foreign = inputs.filter(({ author }) => author.kind !== 'user').map(formatForeignInput)
  const questions = own.flatMap(({ question }) => (question === null ? [] : [formatQuestion(question)]))
  return {
    text: inputs.map(formatInput).join('\n'),
    lead,
    required: [
      ...own.flatMap(({ text, question }) => (question === null ? [text] : [question.text, text])),
      ...foreign,
    ].map((text) => text.trim()),
    sources: inputs.map(({ text }) => text.trim()),
    parts: inputs.map((input, index) => ({
      text: formatInput(input),
      lead: index === 0 ? lead : '',
      required: [input.author.kind === 'user' ? input.text.trim() : formatForeignInput(input)],
      sources: [input.text.trim()],
    })),
    context: [lead.trim(), ...questions, ...foreign].filter((part) => part !== ''),
  }
}

/** Checks whether a record is the notice that the user interrupted the model. */
function isInterruption(record: KnownRecord): boolean {
  if (record.type !== 'user' || record.isMeta === true) return false
  if (record.userInputs?.some(({ kind }) => kind === 'prompt') === true) return false
  return toBlocks(record.message.content).some(
    (block) => isTextBlock(block) && INTERRUPTION_START.test(block.text),
  )
}

function formatInput(input: UserInput): string {
  const { kind, text, question, author } = input
  if (author.kind !== 'user') return formatForeignInput(input)
  if (kind !== 'answer') return text
  return `${question === null ? '' : `${formatQuestion(question)}\n`}Answered: ${text}`
}

/** Formats a text that is not the user's: first a line that says whose it is, then the name of the author before each line. */
function formatForeignInput({ text, question, author }: UserInput): string {
  const name = formatAuthorName(author)
  const asked = question === null ? '' : `${formatQuestion(question)}\n`
  const lines = `${asked}${text.trim()}`.split('\n').map((line) => `${name}> ${line}`)
  return [`(${describeForeignAuthor(author)})`, ...lines].join('\n')
}

/** Returns the name of an agent or a tool in a form that cannot be taken for other text, since the name may be any text. */
function formatAuthorName({ kind, name }: InputAuthor): string {
  const plain = name.replace(/[^\p{L}\p{N}_.@-]+/gu, '-').slice(0, NAME_CHARACTERS)
  return `${kind === 'agent' ? 'teammate' : 'tool'} ${plain}`
}

const NAME_CHARACTERS = 60

/** Returns the names of the agents that the inputs are from; `user` if any is the user's, or none an agent's. */
function nameSender(inputs: readonly UserInput[]): string {
  if (pickAuthor(inputs).kind !== 'agent') return 'user'
  const agents = inputs.flatMap(({ author }) => (author.kind === 'agent' ? [formatAuthorName(author)] : []))
  return [...new Set(agents)].join(' and ')
}

/** Describes, for the model, whose words a text has. Only for authors other than the user. */
export function describeForeignAuthor(author: InputAuthor): string {
  const name = formatAuthorName(author)
  return author.kind === 'agent'
    ? `from ${name}, not the user`
    : `text of a result of the ${name}, not confirmed as the user's`
}

function formatQuestion({ text, options }: NonNullable<UserInput['question']>): string {
  return `Asked: "${text}"${options.length === 0 ? '' : ` (options: ${options.join(' | ')})`}`
}

/** Returns what a short reply answers: the end of what the model wrote last. Empty if the inputs are no short reply. */
function findAnswered(inputs: readonly UserInput[], answered: string): string {
  const [first] = inputs
  // A message that is sent while the model works does not answer what the model wrote in between.
  const isTyped = first?.kind === 'prompt'
  const isShort = inputs.length === 1 && (first?.text.trim().length ?? 0) <= SHORT_REPLY_CHARACTERS
  return isTyped && isShort ? takeLastSentences(answered) : ''
}

function formatLead(inputs: readonly UserInput[], answers: string, calls: ToolCallLookup): string {
  const [first] = inputs
  if (first === undefined || first.author.kind !== 'user') return ''
  if (first.kind === 'refusal') return `(refusing ${formatCall(calls.get(first.toolUseId ?? ''))}) `
  if (first.kind === 'shell') return '(ran in the shell) '
  if (first.kind === 'plan') return '(changed in the plan) '
  const reply = answers === '' ? '' : `(answering "${answers}") `
  return first.kind === 'queued' ? `(sent while the model worked) ${reply}` : reply
}

/** Formats a tool call in one line: its name, and its command or file. */
function formatCall(call: ToolUseBlock | undefined): string {
  if (call === undefined) return 'a tool call'
  const name = readToolName(call)
  const { command, touches } = describeToolCall(name, call.input)
  const target = command ?? touches[0]?.path ?? ''
  const line = truncateEnd(target.trim().split('\n')[0] ?? '', TARGET_CHARACTERS)
  return line === '' ? name : `${name} \`${line}\``
}

/** Returns the end of a text from the start of a line or sentence on, so that a short reply can be understood. */
function takeLastSentences(text: string): string {
  if (text.length <= ANSWERED_CHARACTERS) return text
  const end = sliceWholeCharacters(text, -ANSWERED_CHARACTERS)
  const start = /\n|[.!?:]\s|[。！？：]/.exec(end)
  return start === null || start.index > ANSWERED_CHARACTERS / 2
    ? `…${end}`
    : end.slice(start.index + 1).trim()
}
