/**
 * Local compactions of real sessions, read where they lie: everything that the user typed, however it arrived, is in
 * the new context or on the receipt, and no notice of a program is quoted as the user's. What the user typed is read
 * here from the lines themselves, not by the engine. Skips where the folders are absent.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { isCompactBoundary, redact } from '@tidemark/core'
import { compactLog, readLog } from 'tidemark/logs'
import { describe, expect, it } from 'vitest'
import { decoded } from '../scripts/recorded/recall.ts'

const TARGET = 52_000
const paths = ['transcripts', 'transcripts-2'].flatMap((name) => {
  const folder = fileURLToPath(new URL(`../../shared/${name}/`, import.meta.url))
  const files = existsSync(folder) ? readdirSync(folder) : []
  return files.filter((file) => /^claude-code.*\.gz$/.test(file)).map((file) => `${folder}${file}`)
})
const note = paths.length === 0 ? ' (skipped: the folders are not there)' : ''

const NOTICE =
  /^\s*(?:<(?:task-notification|system-reminder|local-command|bash-std|bash-input|command-)|\[Request interrupted|\{"task_id")/

interface LoggedBlock {
  readonly type: string
  readonly text?: string
  readonly content?: string | readonly LoggedBlock[]
  readonly is_error?: boolean
}

interface LoggedLine {
  readonly type?: string
  readonly uuid?: string
  readonly isMeta?: boolean
  readonly isCompactSummary?: boolean
  readonly isSidechain?: boolean
  readonly message?: { readonly content: string | readonly LoggedBlock[] }
  readonly attachment?: { readonly type: string; readonly prompt?: unknown }
  readonly toolUseResult?: { readonly answers?: Readonly<Record<string, string>> }
}

function readLines(path: string): readonly LoggedLine[] {
  const lines = gunzipSync(readFileSync(path)).toString('utf8').split('\n')
  return lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as LoggedLine)
}

/** Reads what the user typed in one line of a log: the user's own words. */
function readTyped(line: LoggedLine): readonly string[] {
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
  return words === undefined ? [] : [words.split('\n\nNote: The user')[0] ?? '']
}

describe.skipIf(paths.length === 0)(`what the user typed in recorded sessions${note}`, () => {
  it.each(paths)('%s', async (path) => {
    const log = await readLog(path, { withAgents: false })
    if (!log.ok) throw new Error(log.message)
    const records = log.records.map(({ record }) => record)
    const at = records[records.findLastIndex(isCompactBoundary) - 1]?.uuid
    const outcome = await compactLog(log, { target: TARGET, ...(at === undefined ? {} : { at }) })
    if (!outcome.ok) throw new Error(outcome.message)
    const { messages, receipt } = outcome.report
    const view = decoded(messages.map(({ content }) => content)).join('\n')
    const onReceipt = new Set(receipt.lost.userMessages.map(({ uuid }) => uuid))
    const lines = readLines(path)
    const end = at === undefined ? lines.length : lines.findIndex(({ uuid }) => uuid === at) + 1
    const gone = lines
      .slice(0, end)
      .flatMap((line) => readTyped(line).map((text) => [line.uuid ?? '', redact(text.trim())] as const))
      .filter(([uuid, text]) => !view.includes(text) && !onReceipt.has(uuid))
    expect(gone).toEqual([])
    const quoted = /\n6\. All user messages\n([\s\S]*?)\n7\. Pending tasks\n/.exec(view)?.[1] ?? ''
    expect(quoted).not.toMatch(/<task-notification>|<system-reminder>|<local-command-|\[Request interrupted/)
  })
})
