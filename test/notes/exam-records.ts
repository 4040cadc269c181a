/** What the examiner takes from a log of any program: calls with results, typed texts, and how to read JSON safely. */

export interface ExamResult {
  readonly text: string
  /** Undefined if the log does not say. */
  readonly isError: boolean | undefined
  /** The log marks the call as interrupted or moved to the background. */
  readonly isUnfinished: boolean
}

export interface ExamCall {
  readonly id: string
  readonly name: string
  readonly input: Fields
  readonly cwd: string
  readonly result: ExamResult
}

/**
 * `interruption`: also a refusal without words. `call`: nothing was typed, the model called a tool. `maybe`: the user
 * typed something here that the log does not show to be a prompt.
 */
export interface TypedText {
  readonly kind: 'prompt' | 'refusal' | 'interruption' | 'call' | 'maybe'
  readonly text: string
}

export interface ExamLog {
  /** Calls with a result, in the order of the calls. */
  readonly calls: readonly ExamCall[]
  readonly typed: readonly TypedText[]
}

export type Fields = Readonly<Record<string, unknown>>

export function toFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}

export function toText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The text of a result or message: a string, or blocks with `text`. */
export function toContentText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map((block) => toText(toFields(block).text)).join('\n')
}

/** Texts that programs write into user messages. Nobody typed them. */
export function isNotice(text: string): boolean {
  return NOTICE.test(text.trimStart())
}

const NOTICE =
  /^(?:<(?:task-notification|system-reminder|local-command-|bash-|command-(?:name|message|args|contents)|user-prompt-submit-hook|ide_|teammate-message|subagent_notification|environment_context|user_instructions|turn_aborted|permissions instructions|INSTRUCTIONS|skill|user_shell_command)|\[Request interrupted by user|Caveat: The messages below|This session is being continued from a previous|# AGENTS\.md instructions|Stop hook feedback)/
