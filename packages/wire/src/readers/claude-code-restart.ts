/** Where a log of Claude Code says that the program was started anew: system prompt and tools may then differ. */
import { isObject, type SessionRecord } from '@tidemark/core'

export function isClaudeCodeRestart(record: SessionRecord, before: SessionRecord | undefined): boolean {
  return saysStart(record) || saysExit(record) || isOtherVersion(record, before)
}

/** Hooks that run at a start leave a line; one that runs after a compaction is no start. */
function saysStart(record: SessionRecord): boolean {
  const told = [fieldOf(record, 'data'), fieldOf(record, 'attachment')].find(isObject)
  const name = told?.hookName
  return typeof name === 'string' && /^SessionStart:(?!compact)/.test(name)
}

/** Whoever writes on after leaving has come back. */
function saysExit(record: SessionRecord): boolean {
  const message = fieldOf(record, 'message')
  const content = isObject(message) ? message.content : undefined
  return typeof content === 'string' && /^\s*<command-name>\/(?:exit|quit)<\/command-name>/.test(content)
}

function isOtherVersion(record: SessionRecord, before: SessionRecord | undefined): boolean {
  const [now, then] = [record, before].map((given) => given && fieldOf(given, 'version'))
  return typeof now === 'string' && typeof then === 'string' && now !== then
}

function fieldOf(record: SessionRecord, field: string): unknown {
  return isObject(record) ? record[field] : undefined
}
