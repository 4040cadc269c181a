/** Signs in a log that a request was sent with something changed: a new start, a command, a notice, a file written. */
import { blocksOf, isKnown, isObject, isToolUse, type SessionRecord } from '@tidemark/core'
import { isClaudeCodeRestart, type ReadRecord } from '@tidemark/wire'
import type { BreakCause, Cause } from './cache-report.ts'

/** Looks at what was written since the last request; null where there is no such sign. */
export type Sign = (since: readonly ReadRecord[]) => Cause | null

/** Behind a start everything may differ: tools, system prompt, settings. */
export const restart: Sign = (since) => {
  const found = since.find(({ record }, index) => isClaudeCodeRestart(record, since[index - 1]?.record))
  return found === undefined
    ? null
    : { cause: 'restarted', evidence: `line ${found.line}: the program was started anew` }
}

const COMMANDS: ReadonlyMap<string, BreakCause> = new Map([
  ['model', 'model-changed'],
  ['fast', 'speed-changed'],
  ['effort', 'effort-changed'],
  ['mcp', 'tools-changed'],
  ['plugin', 'tools-changed'],
  ['reload-plugins', 'tools-changed'],
  ['ide', 'tools-changed'],
  ['chrome', 'tools-changed'],
  ['agents', 'tools-changed'],
  ['output-style', 'system-changed'],
  ['add-dir', 'system-changed'],
  ['memory', 'memory-changed'],
  ['init', 'memory-changed'],
  ['config', 'settings-changed'],
  ['login', 'account-changed'],
  ['logout', 'account-changed'],
])

export const command: Sign = (since) =>
  firstOf(since, (record) => {
    const name = /<command-name>\/?([\w-]+)/.exec(textOf(record))?.[1] ?? ''
    const cause = COMMANDS.get(name)
    return cause === undefined ? null : { cause, evidence: `command /${name}` }
  })

/** Hosts tell the model by an attachment when tools or instructions come and go. */
export const notice: Sign = (since) =>
  firstOf(since, (record) => {
    const { attachment } = record as { readonly attachment?: unknown }
    const type = record.type === 'attachment' && isObject(attachment) ? String(attachment.type ?? '') : ''
    if (/tools?_delta$|agents?(?:_listing)?_delta$/.test(type))
      return { cause: 'tools-changed', evidence: `notice ${type}` }
    return /^mcp_instructions|^output_style/.test(type)
      ? { cause: 'system-changed', evidence: `notice ${type}` }
      : null
  })

const MEMORY_FILE = /(?:^|[\\/])(?:CLAUDE(?:\.local)?\.md|AGENTS\.md|\.mcp\.json|settings(?:\.local)?\.json)$/
const WRITERS = new Set(['Write', 'Edit', 'MultiEdit'])

export const memoryWritten: Sign = (since) =>
  firstOf(since, (record) => {
    if (!isKnown(record) || record.type !== 'assistant') return null
    const uses = blocksOf(record.message.content).filter(isToolUse)
    const written = uses.filter(({ name }) => WRITERS.has(name)).map(({ input }) => pathIn(input))
    const path = written.find((each) => MEMORY_FILE.test(each))
    const name = path?.split(/[\\/]/).at(-1)
    return name === undefined ? null : { cause: 'memory-changed', evidence: `${name} was written` }
  })

/** The working folder is in the system prompt. */
export const otherFolder: Sign = (since) => {
  const folders = since.map(({ record, line }) => ({ line, cwd: (record as { readonly cwd?: unknown }).cwd }))
  const told = folders.filter(({ cwd }) => typeof cwd === 'string')
  const moved = told.find(({ cwd }, index) => index > 0 && cwd !== told[index - 1]?.cwd)
  return moved === undefined
    ? null
    : { cause: 'system-changed', evidence: `line ${moved.line}: the working folder changed` }
}

function firstOf(since: readonly ReadRecord[], look: (record: SessionRecord) => Cause | null): Cause | null {
  for (const { record, line } of since) {
    const found = look(record)
    if (found !== null) return { ...found, evidence: `line ${line}: ${found.evidence}` }
  }
  return null
}

function textOf(record: SessionRecord): string {
  const { message } = record as { readonly message?: unknown }
  const content = record.type === 'user' && isObject(message) ? message.content : undefined
  return typeof content === 'string' ? content : ''
}

function pathIn(input: unknown): string {
  const path = isObject(input) ? input.file_path : undefined
  return typeof path === 'string' ? path : ''
}
