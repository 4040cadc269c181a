/** What the user typed in logs of Claude Code, however it arrived: read from the lines themselves, not by the engine. */

const NOTICE =
  /^\s*(?:<(?:task-notification|system-reminder|local-command|bash-std|bash-input|command-)|\[Request interrupted|\{"task_id")/

interface LoggedBlock {
  readonly type: string
  readonly text?: string
  readonly content?: string | readonly LoggedBlock[]
  readonly is_error?: boolean
}

export interface LoggedLine {
  readonly type?: string
  readonly uuid?: string
  readonly isMeta?: boolean
  readonly isCompactSummary?: boolean
  readonly isSidechain?: boolean
  readonly message?: { readonly content: string | readonly LoggedBlock[] }
  readonly attachment?: { readonly type: string; readonly prompt?: unknown }
  readonly toolUseResult?: { readonly answers?: Readonly<Record<string, string>> }
}

/** Reads what the user typed in one line of a log: the user's own words. */
export function readTyped(line: LoggedLine): readonly string[] {
  const { type, message, attachment, toolUseResult, isMeta, isCompactSummary, isSidechain } = line
  if (isSidechain === true || isMeta === true || isCompactSummary === true) return []
  if (attachment?.type === 'queued_command')
    return [String(attachment.prompt)].filter((text) => !NOTICE.test(text))
  if (type !== 'user' || message === undefined) return []
  const { content } = message
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const answers = Object.entries(toolUseResult?.answers ?? {}).flat()
  return [...answers, ...blocks.flatMap(readTypedBlock)].filter((text) => text.trim() !== '')
}

function readTypedBlock({ type, text = '', content, is_error }: LoggedBlock): readonly string[] {
  if (type === 'text') {
    const args = /<command-args>([\s\S]*?)<\/command-args>/.exec(text)?.[1]
    return args !== undefined && text.includes('<command-name>') ? [args] : NOTICE.test(text) ? [] : [text]
  }
  const result =
    typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('\n')
  const words = is_error === true ? /the user said:\n([\s\S]*)$/.exec(result)?.[1] : undefined
  const isOwnText = words?.startsWith('The user wants to clarify these questions.')
  return words === undefined || isOwnText === true ? [] : [words.split('\n\nNote: The user')[0] ?? '']
}
