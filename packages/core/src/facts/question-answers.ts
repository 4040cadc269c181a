/**
 * Reads what the user answered to questions that the model asked through a tool. Hosts name such tools and write their
 * results as they like, so every known shape is read. A result of an unknown shape counts as one answer.
 */
import type { ToolUseBlock } from '../log/block.ts'
import { isObject, parseJson } from '../log/json.ts'

export interface AskedQuestion {
  readonly text: string
  /** The options that the model offered. */
  readonly options: readonly string[]
}

interface UserAnswer {
  readonly text: string
  /** The question that is answered; null if it is not in the log. */
  readonly question: AskedQuestion | null
}

interface ResultOfQuestion {
  /** The tool call that the result answers; undefined if it is not in the log. */
  readonly call: ToolUseBlock | undefined
  readonly result: string
  readonly isError: boolean
  /** What the host logged in addition to the text for the model. */
  readonly logged: unknown
}

/** Returns the user's answers in a tool result; none if its tool does not ask the user, or failed before the user answered. */
export function readAnswers({ call, result, isError, logged }: ResultOfQuestion): readonly UserAnswer[] {
  const apart = isObject(logged) && isContainer(logged.answers) ? logged : null
  if (apart === null && (call === undefined || !isAskingCall(call))) return []
  const questions = [...listQuestions(call?.input), ...listQuestions(apart)]
  const structured = apart ?? parseContainer(result)
  const found = structured === null ? [] : listAnswers(structured, questions)
  const isFailure = isError && TOOL_FAILURE.test(result)
  const answers = found.length > 0 || isFailure ? found : findAnswers(result, questions)
  return answers.map(({ about, text }) => {
    const question = questions.find(({ names }) => names.includes(about))
    if (question === undefined) return { text, question: about === '' ? null : { text: about, options: [] } }
    return { text, question: { text: question.text, options: question.options } }
  })
}

/** Matches names of tools, in words, whose result is the user's answer. */
const ASKING_NAME =
  /^(?:ask|questions?|clarify|elicit(?:ation)?|interactive feedback)$|(?:^| )(?:ask|prompt|consult|confirm with|check with) ?(?:the |for |a )*(?:user|human|person|questions?|follow ?up|clarif\w*)|(?:^| )request ?(?:user|human) ?input/
/** Names of tools that may also look up what other users wrote. They count if the input contains a question. */
const MAYBE_ASKING_NAME =
  /(?:^| )(?:user|human) ?(?:input|answers?|feedback|response|reply|choice|decision|confirmation|clarification)/

/** Matches the error of an asking tool that failed before the user could answer. */
const TOOL_FAILURE =
  /^\s*(?:<tool_use_error>|(?:\w*Error|MCP error[^:\n]*|Unknown tool|No such tool|Tool \S+ not found|Invalid\b[^:\n]*|Timed? ?out)\b)/i

function isAskingCall({ name, input }: ToolUseBlock): boolean {
  return (
    isAskingTool(name) || (MAYBE_ASKING_NAME.test(toToolNameWords(name)) && listQuestions(input).length > 0)
  )
}

/** Checks by a tool's name alone whether its result is the user's answer. */
export function isAskingTool(name: string): boolean {
  return ASKING_NAME.test(toToolNameWords(name))
}

/** Returns the words of a tool's name in lower case, without the name of an MCP server: `ask user` for `mcp__ui__askUser`. */
export function toToolNameWords(name: string): string {
  const own = name.replace(/^.*(?:__|[./:])(?=.)/, '')
  return own
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .replace(/[^a-z]+/g, ' ')
    .trim()
}

// Questions.

interface KnownQuestion extends AskedQuestion {
  /** The texts by which an answer may name the question: its text, its id, its heading. */
  readonly names: readonly string[]
}

const QUESTION_FIELDS = ['question', 'prompt', 'message', 'text', 'query']
const NAME_FIELDS = ['id', 'header', 'key', 'name']

function listQuestions(input: unknown): readonly KnownQuestion[] {
  if (!isObject(input)) return []
  const list: readonly unknown[] = Array.isArray(input.questions) ? input.questions : [input]
  return list.flatMap((item) => {
    const text = isObject(item) ? findText(item, QUESTION_FIELDS) : item
    if (typeof text !== 'string' || text.trim() === '') return []
    const fields = isObject(item) ? item : {}
    const options = Array.isArray(fields.options) ? fields.options.flatMap(readOption) : []
    return [{ text, options, names: [text, ...NAME_FIELDS.flatMap((name) => readName(fields[name]))] }]
  })
}

function readOption(option: unknown): readonly string[] {
  const label = isObject(option) ? (option.label ?? option.value) : option
  return typeof label === 'string' ? [label] : []
}

function readName(value: unknown): readonly string[] {
  return typeof value === 'string' || typeof value === 'number' ? [String(value)] : []
}

function findText(fields: Fields, names: readonly string[]): string | null {
  const found = names.map((name) => fields[name]).find((value) => typeof value === 'string')
  return typeof found === 'string' ? found : null
}

// Answers in JSON: by question, as a list, or alone.

interface FoundAnswer {
  /** The text by which the answer names its question; empty if it names none. */
  readonly about: string
  readonly text: string
}

type Fields = { readonly [field: string]: unknown }

const ANSWER_FIELDS = [
  ...['answer', 'answers', 'value', 'values', 'response', 'reply', 'text', 'content'],
  ...['label', 'selected', 'selection', 'choice', 'choices', 'option', 'input', 'other', 'custom'],
  ...['notes', 'note', 'comment'],
]

function isContainer(value: unknown): value is Fields | readonly unknown[] {
  return Array.isArray(value) || isObject(value)
}

function parseContainer(result: string): Fields | readonly unknown[] | null {
  const value = /^\s*[[{]/.test(result) ? parseJson(result) : null
  return isContainer(value) ? value : null
}

function listAnswers(
  given: Fields | readonly unknown[],
  questions: readonly KnownQuestion[],
): readonly FoundAnswer[] {
  if (Array.isArray(given)) return listItems(given, questions)
  const { answers, annotations, ...rest }: Fields = given as Fields
  if (isContainer(answers)) {
    const notes = isObject(annotations) ? annotations : {}
    return listAnswers(answers, questions).flatMap(({ about, text }) =>
      toAnswer(about, [text, readAnswerText(notes[about])]),
    )
  }
  if (ANSWER_FIELDS.some((field) => (given as Fields)[field] !== undefined))
    return listItems([given], questions)
  return Object.entries(rest).flatMap(([about, value]) => toAnswer(about, [readAnswerText(value)]))
}

function listItems(items: readonly unknown[], questions: readonly KnownQuestion[]): readonly FoundAnswer[] {
  if (!items.some(isObject) && questions.length !== items.length)
    return toAnswer(questions[0]?.text ?? '', [readAnswerText(items)])
  return items.flatMap((item, index) => {
    const name = isObject(item) ? [item.question, ...NAME_FIELDS.map((field) => item[field])] : []
    const about = name.flatMap(readName)[0] ?? questions[index]?.text ?? ''
    return toAnswer(about, [readAnswerText(item)])
  })
}

/** Returns the text of an answer. The text of an object is that of its known fields, or its JSON if it has none. */
function readAnswerText(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === undefined || value === null) return ''
  if (Array.isArray(value)) return value.map(readAnswerText).join(', ')
  if (!isObject(value)) return String(value)
  const texts = ANSWER_FIELDS.map((field) => readAnswerText(value[field])).filter((text) => text !== '')
  return texts.length === 0 ? JSON.stringify(value) : [...new Set(texts)].join('\n')
}

function toAnswer(about: string, texts: readonly string[]): readonly FoundAnswer[] {
  // An answer that was typed as a note is logged twice: as answer and as note.
  const text = [...new Set(texts.map((part) => part.trim()))].filter((part) => part !== '').join('\n')
  return text === '' ? [] : [{ about, text }]
}

// Answers in prose.

const ANSWER_END = /\.\s{0,4}(?:You can now continue|Read the answers carefully)/
const ANSWER_START =
  /^\s*(?:the )?user(?:['’]s)?(?: has)? (?:answered|answers?|said|replied|responded|response|reply|selected|chose)(?: (?:your|the) questions?)?\s*:\s*/i
const ANSWER_ELEMENT = /^<(answer|user_message|response)>([\s\S]*)<\/\1>$/
/** What a host writes for a question that the user left out. */
const NO_ANSWER = 'Unanswered'

/** Finds the answers in a result such as `User has answered your questions: "Which?"="This", "When?"="Now".` */
function findAnswers(result: string, questions: readonly KnownQuestion[]): readonly FoundAnswer[] {
  const end = result.search(ANSWER_END)
  const plain = (end === -1 ? result : withoutEndQuote(result.slice(0, end))).trim().replace(ANSWER_START, '')
  const text = ANSWER_ELEMENT.exec(plain)?.[2] ?? plain
  if (text.trim() === '') return []
  const marks = questions
    .map(({ text: about }) => ({ about, mark: `"${about}"="`, at: text.indexOf(`"${about}"="`) }))
    .filter(({ at }) => at !== -1)
    .toSorted((one, other) => one.at - other.at)
  if (marks.length === 0) return [{ about: questions[0]?.text ?? '', text: text.trim() }]
  const answers = marks.map(({ about, mark, at }, index) => {
    const answer = text.slice(at + mark.length, marks[index + 1]?.at)
    return { about, text: withoutEndQuote(answer.trimEnd().replace(/,$/, '')) }
  })
  return answers.filter((answer) => answer.text !== NO_ANSWER)
}

function withoutEndQuote(text: string): string {
  return text.trimEnd().replace(/"$/, '')
}
