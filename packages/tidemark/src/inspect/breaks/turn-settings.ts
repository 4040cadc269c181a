/**
 * The thinking settings a turn ran with, as far as a log of Claude Code shows them: it writes them beside each
 * prompt, and none where a skill or a command starts the turn or is loaded in the middle of it.
 */
import {
  blocksOf,
  isKnown,
  isObject,
  isToolResult,
  isToolUse,
  type SessionRecord,
  typedText,
} from '@tidemark/core'
import type { ReadRecord } from '@tidemark/wire'

export interface TurnSettings {
  /** As logged; null where none are. */
  readonly thinking: string | null
  readonly isSkill: boolean
  /** The line that says so; 0 before the first. */
  readonly line: number
}

export interface SettingsReader {
  take(read: ReadRecord): void
  readonly standing: TurnSettings
}

const SKILL_TOOL = 'Skill'

export function createSettingsReader(): SettingsReader {
  const skillCalls = new Set<string>()
  let standing: TurnSettings = { thinking: null, isSkill: false, line: 0 }
  let isAfterCommand = false
  return {
    take({ record, line }) {
      for (const id of skillCallsIn(record)) skillCalls.add(id)
      if (record.type !== 'user') return
      const isSkill = isSkillText(record, skillCalls) || (isAfterCommand && record.isMeta === true)
      if (isSkill) standing = { thinking: null, isSkill: true, line }
      else if (isPrompt(record)) standing = { thinking: thinkingOf(record), isSkill: false, line }
      isAfterCommand = isCommand(record)
    },
    get standing() {
      return standing
    },
  }
}

function skillCallsIn(record: SessionRecord): readonly string[] {
  if (!isKnown(record) || record.type !== 'assistant') return []
  return blocksOf(record.message.content)
    .filter(isToolUse)
    .filter(({ name }) => name === SKILL_TOOL)
    .map(({ id }) => id)
}

/** The text of a skill, which the host puts behind the result of the call that asked for it. */
function isSkillText(record: SessionRecord, skillCalls: ReadonlySet<string>): boolean {
  const { sourceToolUseID } = record as { readonly sourceToolUseID?: unknown }
  return record.isMeta === true && typeof sourceToolUseID === 'string' && skillCalls.has(sourceToolUseID)
}

/** Words of the person that answer no call. */
function isPrompt(record: SessionRecord): boolean {
  return (
    typedText(record) !== null &&
    isKnown(record) &&
    record.type === 'user' &&
    !answers(record.message.content)
  )
}

function answers(content: Parameters<typeof blocksOf>[0]): boolean {
  return blocksOf(content).some(isToolResult)
}

function isCommand(record: SessionRecord): boolean {
  const { message } = record as { readonly message?: unknown }
  const content = isObject(message) ? message.content : undefined
  return typeof content === 'string' && /^\s*<command-(?:name|message)>/.test(content)
}

function thinkingOf(record: SessionRecord): string | null {
  const { thinkingMetadata } = record as { readonly thinkingMetadata?: unknown }
  return isObject(thinkingMetadata) ? JSON.stringify(thinkingMetadata) : null
}
