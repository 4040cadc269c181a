/** Tier 3: running notes, and the memory files that load by folder. */
import { count, flag, listOf, name, oneOf } from '../check.ts'
import { type Fields, field } from '../field.ts'

/** What stays verbatim behind the notes. */
export interface KeptMessagesPolicy {
  /** Tokens kept at least … */
  readonly minimumTokens: number
  /** … and messages with text, at least; both must be met. */
  readonly minimumMessages: number
  /** Tokens at which growing backwards stops. What no note covers is kept whatever its size. */
  readonly maximumTokens: number
}

export interface NotesPolicy {
  readonly enabled: boolean
  /** `auto` asks the model where the host gives one, else extracts locally. */
  readonly extractor: 'auto' | 'model' | 'local'
  /** Words of the session's title, at least. */
  readonly titleMinimumWords: number
  /** Words of the session's title, at most. */
  readonly titleMaximumWords: number
  /** Tokens of a section. Over it the next extraction condenses it; a compaction cuts it. */
  readonly sectionTokens: number
  /** Tokens of the whole file. Over it the next extraction is told to shorten it. */
  readonly totalTokens: number
  /** Tokens of conversation before the first extraction. */
  readonly startTokens: number
  /** Tokens grown since the last extraction. */
  readonly growthTokens: number
  /** Tool calls since the last extraction, unless the last turn made none. */
  readonly toolCalls: number
  /** Seconds a compaction waits for an extraction under way. */
  readonly waitSeconds: number
  /** Seconds after which an extraction counts as dead. */
  readonly deadAfterSeconds: number
  readonly kept: KeptMessagesPolicy
}

export interface MemoryFilesPolicy {
  /** Files looked for in each folder. */
  readonly names: readonly string[]
  /** Files with path globs, looked for in each folder. */
  readonly rules: readonly string[]
  /** Hops an `@path` import may take. */
  readonly importHops: number
  /** Tokens of the reminder in front of the conversation. */
  readonly reminderTokens: number
}

const memoryNames = ['CLAUDE.md', '.claude/CLAUDE.md', 'CLAUDE.local.md', 'AGENTS.md']

export const notesFields: Fields<NotesPolicy> = {
  enabled: field(true, flag()),
  extractor: field('auto', oneOf('auto', 'model', 'local')),
  titleMinimumWords: field(5, count(1)),
  titleMaximumWords: field(10, count(1)),
  sectionTokens: field(2_000, count(50)),
  totalTokens: field(12_000, count(500)),
  startTokens: field(10_000, count()),
  growthTokens: field(5_000, count(1)),
  toolCalls: field(3, count()),
  waitSeconds: field(15, count()),
  deadAfterSeconds: field(60, count(1)),
  kept: {
    minimumTokens: field(10_000, count()),
    minimumMessages: field(5, count()),
    maximumTokens: field(40_000, count()),
  },
}

export const memoryFilesFields: Fields<MemoryFilesPolicy> = {
  names: field<readonly string[]>(memoryNames, listOf(name())),
  rules: field<readonly string[]>(['.claude/rules/*.md'], listOf(name())),
  importHops: field(4, count(0, 20)),
  reminderTokens: field(40_000, count()),
}
