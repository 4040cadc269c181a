/** What comes back after a compaction, and what the engine itself puts into a summary. */
import { count, flag, listOf, name } from '../check.ts'
import { type Fields, field } from '../field.ts'

export interface RehydratePolicy {
  readonly files: {
    /** Most recently read files, read again from disk. */
    readonly count: number
    /** Tokens of one; more is cut with a marker. */
    readonly eachTokens: number
    /** Tokens of all; one that does not fit is skipped and the next tried. */
    readonly totalTokens: number
    /** Tools that read a file; the path is in `file_path`, `notebook_path` or `path` of their input. */
    readonly readTools: readonly string[]
    /** Tools that change one. */
    readonly writeTools: readonly string[]
  }
  /** Skills in use, newest first. */
  readonly skills: {
    /** Tokens of one; more is cut with a note that the full text can be read again. */
    readonly eachTokens: number
    /** Tokens of all. */
    readonly totalTokens: number
  }
  /** What carriers of the host's own may bring. */
  readonly host: {
    /** Tokens of one thing; more is cut with a note where its carrier allows that, else it is left out. */
    readonly eachTokens: number
    /** Tokens of all that one carrier brings. */
    readonly totalTokens: number
  }
  readonly todos: boolean
  /** Tools whose input is the whole todo list, where the host does not give it. */
  readonly todoTools: readonly string[]
  /** The plan file, in full. */
  readonly plan: boolean
  /** The reminder that plan mode is on. */
  readonly planMode: boolean
  /** Background agents that run, or have finished and were not collected. */
  readonly agents: boolean
  /** Tools, agents and MCP instructions that the kept messages no longer show. */
  readonly deltas: boolean
}

/** What is not left to the summariser: checked, and added where it is missing. */
export interface LedgerPolicy {
  /** Tokens of all user messages put back; unanswered ones are outside it and never cut. */
  readonly userMessagesTokens: number
  /** Tokens of one; a longer one is cut in the middle, with a pointer to the transcript. */
  readonly userMessageTokens: number
  /** Tokens of the list of files touched. */
  readonly filesTokens: number
  /** Tokens of the list of names the work turned on, newest heaviest. */
  readonly namesTokens: number
  /** Newest errors named with what followed them. */
  readonly errors: number
}

export const rehydrateFields: Fields<RehydratePolicy> = {
  files: {
    count: field(5, count()),
    eachTokens: field(5_000, count(1)),
    totalTokens: field(50_000, count()),
    readTools: field<readonly string[]>(['Read'], listOf(name())),
    writeTools: field<readonly string[]>(['Edit', 'MultiEdit', 'Write', 'NotebookEdit'], listOf(name())),
  },
  skills: { eachTokens: field(5_000, count(1)), totalTokens: field(25_000, count()) },
  host: { eachTokens: field(5_000, count(1)), totalTokens: field(10_000, count()) },
  todos: field(true, flag()),
  todoTools: field<readonly string[]>(['TodoWrite'], listOf(name())),
  plan: field(true, flag()),
  planMode: field(true, flag()),
  agents: field(true, flag()),
  deltas: field(true, flag()),
}

export const ledgerFields: Fields<LedgerPolicy> = {
  userMessagesTokens: field(30_000, count()),
  userMessageTokens: field(2_000, count(1)),
  filesTokens: field(2_000, count()),
  namesTokens: field(1_500, count()),
  errors: field(10, count()),
}
