/** Settings of the notes of a session and of memory files: types, defaults and checks. */
import {
  booleanCheck,
  choiceCheck,
  type FieldSpecs,
  fieldSpec,
  nonBlankCheck,
  uniqueListCheck,
  wholeNumberCheck,
} from './policy-fields.ts'

/** Newest messages that are kept unchanged when session notes replace the earlier conversation. */
interface KeptMessagesPolicy {
  /** Minimum tokens of the kept messages. Older messages are kept until both this and `minimumMessages` are reached. */
  readonly minimumTokens: number
  /** Minimum number of kept messages with text. Older messages are kept until both this and `minimumTokens` are reached. */
  readonly minimumMessages: number
  /**
   * No older messages are added once the kept messages have this many tokens. Messages that the notes do not cover are
   * always kept.
   */
  readonly maximumTokens: number
}

export interface NotesPolicy {
  readonly enabled: boolean
  /** What writes the session notes. `auto` uses the model if the host provides one, otherwise the local extractor. */
  readonly extractor: 'auto' | 'model' | 'local'
  /** Minimum words of the session title. */
  readonly titleMinimumWords: number
  /** Maximum words of the session title. */
  readonly titleMaximumWords: number
  /**
   * Maximum tokens of one section of the notes. The next update of the notes shortens a longer section; a compaction
   * cuts it off.
   */
  readonly sectionTokens: number
  /**
   * Maximum tokens for decisions and findings in the words of the model, in notes kept from the log. They stand in the
   * section about the task, in addition to its `sectionTokens`; nothing else may use them. Each segment of the session,
   * between two compactions, has an equal share.
   */
  readonly decisionTokens: number
  /** Maximum tokens of the notes file. If it is larger, the next update is instructed to shorten the file. */
  readonly totalTokens: number
  /** Conversation size, in tokens, at which notes are written for the first time. */
  readonly startTokens: number
  /** Number of tokens by which the conversation must grow before the notes are updated again. */
  readonly growthTokens: number
  /** Number of tool calls required since the last update of the notes. Not required if the last turn made no tool calls. */
  readonly toolCalls: number
  /** Seconds that a compaction waits for a running update of the notes. */
  readonly waitSeconds: number
  /** Seconds after which a running update of the notes counts as failed. */
  readonly deadAfterSeconds: number
  readonly kept: KeptMessagesPolicy
}

export interface MemoryFilesPolicy {
  /** Names of memory files that are looked for in each folder. */
  readonly names: readonly string[]
  /** Patterns of rule files to look for in each folder. A rule file lists globs of the paths that it applies to. */
  readonly rules: readonly string[]
  /** Maximum depth of `@path` imports in memory files. */
  readonly importHops: number
  /** Maximum tokens of the reminder with memory files at the start of the conversation. */
  readonly reminderTokens: number
}

const memoryNames = ['CLAUDE.md', '.claude/CLAUDE.md', 'CLAUDE.local.md', 'AGENTS.md']

export const notesFields: FieldSpecs<NotesPolicy> = {
  enabled: fieldSpec(true, booleanCheck()),
  extractor: fieldSpec('auto', choiceCheck('auto', 'model', 'local')),
  titleMinimumWords: fieldSpec(5, wholeNumberCheck(1)),
  titleMaximumWords: fieldSpec(10, wholeNumberCheck(1)),
  sectionTokens: fieldSpec(2_000, wholeNumberCheck(50)),
  decisionTokens: fieldSpec(7_000, wholeNumberCheck()),
  totalTokens: fieldSpec(15_500, wholeNumberCheck(500)),
  startTokens: fieldSpec(10_000, wholeNumberCheck()),
  growthTokens: fieldSpec(5_000, wholeNumberCheck(1)),
  toolCalls: fieldSpec(3, wholeNumberCheck()),
  waitSeconds: fieldSpec(15, wholeNumberCheck()),
  deadAfterSeconds: fieldSpec(60, wholeNumberCheck(1)),
  kept: {
    minimumTokens: fieldSpec(1_500, wholeNumberCheck()),
    minimumMessages: fieldSpec(5, wholeNumberCheck()),
    maximumTokens: fieldSpec(3_000, wholeNumberCheck()),
  },
}

export const memoryFilesFields: FieldSpecs<MemoryFilesPolicy> = {
  names: fieldSpec<readonly string[]>(memoryNames, uniqueListCheck(nonBlankCheck())),
  rules: fieldSpec<readonly string[]>(['.claude/rules/*.md'], uniqueListCheck(nonBlankCheck())),
  importHops: fieldSpec(4, wholeNumberCheck(0, 20)),
  reminderTokens: fieldSpec(40_000, wholeNumberCheck()),
}
