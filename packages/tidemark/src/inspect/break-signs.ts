/**
 * Finds signs in a log that a request was sent with a different prefix: a restart, a command, a notice, tools that were
 * loaded, a written memory file, another working directory.
 */

import { describeToolCall } from '@tidemark/core/facts/tool-calls'
import { isToolUse, toBlocks } from '@tidemark/core/log/block'
import { isObject } from '@tidemark/core/log/json'
import { isKnownRecord, type SessionRecord } from '@tidemark/core/log/record'
import { listChangedToolNames } from '@tidemark/core/request/prefix-snapshot'
import { isClaudeCodeRestart } from '@tidemark/wire/readers/claude-code-reader'
import type { RecordWithLine } from '@tidemark/wire/readers/log-reader'
import type { BreakCause, ExplainedCause } from './report.ts'

/** Searches the records since the previous request for one kind of cause. Returns null if there is no sign of it. */
type CauseFinder = (since: readonly RecordWithLine[]) => ExplainedCause | null

/** Finds a restart of the host. A restart can change tools, system prompt and settings. */
export const findRestart: CauseFinder = (since) => {
  const found = since.find(({ record }, index) => isClaudeCodeRestart(record, since[index - 1]?.record))
  return found === undefined
    ? null
    : { cause: 'restarted', evidence: `line ${found.line}: the program was started anew` }
}

/**
 * What a command changes. Commands for the model and its speed are missing: the log has both with each response, and
 * a command that changed neither is no cause.
 */
const CAUSE_BY_COMMAND: ReadonlyMap<string, BreakCause> = new Map([
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

/** What Claude Code prints after a command that changed nothing, such as `Kept model as Opus`. */
const CHANGED_NOTHING =
  /<local-command-stdout>\s*(?:Kept\b|No changes?\b|[^<]*\b(?:cancell?ed|dismissed|interrupted|unchanged)\b)/i

/** Finds a command that changed a setting. `isSameEffort`: the log shows that the effort has not changed. */
export function findSettingCommand(
  since: readonly RecordWithLine[],
  isSameEffort: boolean,
): ExplainedCause | null {
  return findFirst(since, (record, index) => {
    const name = /<command-name>\/?([\w-]+)/.exec(commandText(record))?.[1] ?? ''
    const cause = CAUSE_BY_COMMAND.get(name)
    if (cause === undefined || (cause === 'effort-changed' && isSameEffort)) return null
    const printed = since
      .slice(index + 1)
      .find((later) => commandText(later.record).includes('<local-command-'))
    const isVain = printed !== undefined && CHANGED_NOTHING.test(commandText(printed.record))
    return isVain ? null : { cause, evidence: `command /${name}` }
  })
}

/** Finds an attachment in which the host informs the model about added or removed tools, or about changed instructions. */
export const findChangeNotice: CauseFinder = (since) =>
  findFirst(since, (record) => {
    const { attachment } = record as { readonly attachment?: unknown }
    if (record.type !== 'attachment' || !isObject(attachment) || announcesNothing(attachment)) return null
    const type = String(attachment.type ?? '')
    if (/tools?_delta$|agents?(?:_listing)?_delta$/.test(type))
      return { cause: 'tools-changed', evidence: `notice ${type}` }
    return /^mcp_instructions|^output_style/.test(type)
      ? { cause: 'system-changed', evidence: `notice ${type}` }
      : null
  })

/** Checks whether a notice has lists of what was added or removed, and all of them are empty. */
function announcesNothing(attachment: { readonly [field: string]: unknown }): boolean {
  const lists = Object.entries(attachment).filter(([name]) => /^(?:added|removed|readded)/.test(name))
  return lists.length > 0 && lists.every(([, list]) => Array.isArray(list) && list.length === 0)
}

/**
 * Finds tools that were loaded in the middle of the conversation: a tool search whose result names them, blocks that
 * add or remove tools, and updates of the tools in a Tidemark log.
 */
export const findToolChangeInRecords: CauseFinder = (since) =>
  findFirst(since, (record) => {
    const names = isKnownRecord(record) ? listChangedToolNames(record) : []
    return names.length === 0 ? null : { cause: 'tools-changed', evidence: `loaded ${names.join(', ')}` }
  })

const MEMORY_FILE_PATTERN =
  /(?:^|[\\/])(?:CLAUDE(?:\.local)?\.md|AGENTS\.md|\.mcp\.json|settings(?:\.local)?\.json)$/

/** Finds a tool call that wrote a memory file or a settings file, whose content is part of the prefix. */
export const findMemoryWrite: CauseFinder = (since) =>
  findFirst(since, (record) => {
    if (!isKnownRecord(record) || record.type !== 'assistant') return null
    const touches = toBlocks(record.message.content)
      .filter(isToolUse)
      .flatMap(({ name, input }) => describeToolCall(name, input).touches)
    const path = touches.find((each) => each.action !== 'read' && MEMORY_FILE_PATTERN.test(each.path))?.path
    const name = path?.split(/[\\/]/).at(-1)
    return name === undefined ? null : { cause: 'memory-changed', evidence: `${name} was written` }
  })

/** Finds a change of the working directory, which is part of the system prompt. */
export const findFolderChange: CauseFinder = (since) => {
  let before: string | null = null
  for (const { record, line } of since) {
    const { cwd } = record as { readonly cwd?: unknown }
    if (typeof cwd !== 'string') continue
    if (before !== null && cwd !== before)
      return { cause: 'system-changed', evidence: `line ${line}: the working folder changed` }
    before = cwd
  }
  return null
}

function findFirst(
  since: readonly RecordWithLine[],
  look: (record: SessionRecord, index: number) => ExplainedCause | null,
): ExplainedCause | null {
  for (const [index, { record, line }] of since.entries()) {
    const found = look(record, index)
    if (found !== null) return { ...found, evidence: `line ${line}: ${found.evidence}` }
  }
  return null
}

function commandText(record: SessionRecord): string {
  const { message } = record as { readonly message?: unknown }
  const content = record.type === 'user' && isObject(message) ? message.content : undefined
  return typeof content === 'string' ? content : ''
}
