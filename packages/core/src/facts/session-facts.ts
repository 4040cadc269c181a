/**
 * What happened in a session, collected record by record: what was said, files, commands, todos, plans, the model's texts.
 * Notes and summaries are written from these facts. An earlier summary is a fact only if the records that it replaced are
 * missing from the log. Every text is without credentials and control characters.
 */

import { isTextBlock, isToolResult, joinTextBlocks, toBlocks } from '../log/block.ts'
import { isCompactBoundary, isSyntheticError, type KnownRecord } from '../log/record.ts'
import type { WorkInSteps } from '../log/work-steps.ts'
import { createCachingRedactor } from '../text/redact.ts'
import { removeControlCharacters, toOneLine } from '../text/truncate-text.ts'
import {
  type CommandFact,
  CommandTracker,
  createFileTracker,
  type FailedCall,
  type FailedCommand,
  type NewestTestRun,
  type ProjectFolders,
  type TouchedFile,
} from './files-and-commands.ts'
import { type AssistantText, type DecisionsAndFindings, ModelTextTracker } from './model-texts.ts'
import { createTodoTracker, isOpenTodo, readPlanText, type TodoItem } from './todo-list.ts'
import type { FileToolNames } from './tool-calls.ts'
import { createToolRunTracker, isFailedStatus, type ToolRun } from './tool-runs.ts'
import { createUserPromptReader, type ParsedUserPrompt, type UserPrompt } from './user-prompts.ts'

// The work in steps. A step begins with a message of the user, a finished todo item or a commit.

/** A step of the work: what was done since a message of the user, a finished todo item or a commit. */
export interface WorklogStep {
  readonly time: string
  /** What the user typed, or another agent sent, if such a message began the step. */
  readonly text: string
  /** Who that was: `user`, or the name of the agent. */
  readonly sender: string
  /** Keys of the files that were changed. */
  readonly files: ReadonlySet<string>
  readonly calls: number
  readonly commands: number
  readonly failed: number
  /** What ended the step: a todo item that was done, or the message of a commit; null if a message of the user did. */
  readonly end: { readonly kind: 'done' | 'committed'; readonly text: string } | null
}

const COMMIT_COMMAND = /\bgit\b[^|;&\n]*\bcommit\b/
/** Finds the first line of a commit's message, given in quotation marks or as a here-document. */
const COMMIT_MESSAGE =
  /\s-[a-z]*m[\s=]*(?:"\$\(cat <<-?\s*['"]?\w+['"]?\s*\n\s*([^\n]+)|(["'])([^\n]+?)(?:\2|\n))/

type OpenStep = { -readonly [Key in keyof WorklogStep]: WorklogStep[Key] } & { readonly files: Set<string> }

function createWorklog(clean: (text: string) => string) {
  const steps: WorklogStep[] = []
  let step = createStep('')

  function endStep(end: WorklogStep['end'], time: string): void {
    if (hasHappened(step) || end !== null) steps.push({ ...step, end })
    step = createStep(time)
  }

  function addCommand({ kind, command, status }: ToolRun, time: string): void {
    // A command that is still running counts when it ends.
    if (kind !== 'run' || command === null || status === 'running') return
    step.commands += 1
    if (isFailedStatus(status)) step.failed += 1
    const message = status === 'ok' ? readCommitMessage(command) : null
    if (message !== null) endStep({ kind: 'committed', text: clean(message) }, time)
  }

  return {
    /** Begins a step with a message of the user or of another agent. */
    beginStep(time: string, message: Pick<WorklogStep, 'text' | 'sender'>): void {
      endStep(null, time)
      step = createStep(time, message)
    },
    addEdits(files: readonly string[]): void {
      for (const file of files) step.files.add(file)
    },
    /** Adds a call with its result. A commit ends the step. */
    addRun(run: ToolRun, time: string): void {
      if (step.time === '') step.time = time
      step.calls += 1
      addCommand(run, time)
    },
    /** Adds the end of a command whose call was added while the command ran. The call that shows the end is added on its own. */
    continueRun: addCommand,
    /** Ends the step with todo items that are done. */
    endStep: (done: string, time: string): void => endStep({ kind: 'done', text: done }, time),
    /** Lists the steps, newest first. */
    list: (): readonly WorklogStep[] => [...steps, ...(hasHappened(step) ? [step] : [])].reverse(),
  }
}

function createStep(time: string, { text, sender } = { text: '', sender: 'user' }): OpenStep {
  return { time, text, sender, files: new Set(), calls: 0, commands: 0, failed: 0, end: null }
}

function hasHappened({ text, calls }: WorklogStep): boolean {
  return text !== '' || calls > 0
}

function readCommitMessage(command: string): string | null {
  if (!COMMIT_COMMAND.test(command)) return null
  const found = COMMIT_MESSAGE.exec(command)
  return found?.[1] ?? found?.[3] ?? null
}

export interface SessionFacts {
  /** Everything the user typed, however it arrived, and what other agents sent. */
  readonly messages: readonly UserPrompt[]
  /** The newest message with an instruction; null if there is none. */
  readonly latest: UserPrompt | null
  /** Index of the record with the model's latest text; -1 if there is none, or if a tool call followed it. */
  readonly replyPlace: number
  /** The model's calls since the latest instruction. */
  readonly turn: TurnProgress
  /** Calls without a result, oldest first. */
  readonly openCalls: readonly ToolRun[]
  /** The newest calls, oldest first. `results`: the newest calls whose results no other fact has. */
  readonly calls: readonly ToolRun[]
  readonly results: readonly ToolRun[]
  readonly files: readonly TouchedFile[]
  /** The working directories of the records, each once. */
  readonly folders: readonly string[]
  readonly project: ProjectFolders
  readonly gitBranch: string
  readonly commands: readonly CommandFact[]
  /** The commands that have failed, also those that have succeeded since. */
  readonly failures: readonly FailedCommand[]
  readonly failedCalls: readonly FailedCall[]
  readonly tests: NewestTestRun
  readonly todos: readonly TodoItem[]
  /** True if the user has given an instruction since the todo list was last changed. */
  readonly areTodosOlder: boolean
  readonly plan: RecordText | null
  /** All texts of the model, oldest first. */
  readonly texts: readonly AssistantText[]
  /** Those of the texts that count as decisions or findings because of their place. */
  readonly decisions: DecisionsAndFindings
  /** The newest answer at the end of a turn. `hasAnswered`: true if the user has typed nothing since it. */
  readonly answer: string | null
  readonly hasAnswered: boolean
  readonly steps: readonly WorklogStep[]
  /** The summary at the start of a log whose earlier records are missing; null if there is none. */
  readonly earlierSummary: RecordText | null
  /** Index of the first record since the newest compaction. */
  readonly segmentStart: number
  /** Removes credentials and control characters from a text of the session. */
  readonly clean: (text: string) => string
}

export interface RecordText {
  readonly text: string
  readonly uuid: string
}

interface TurnProgress {
  readonly calls: number
  readonly last: ToolRun | null
  /** True if the model has responded. */
  readonly hasBegun: boolean
}

export interface FactsKeeper {
  /** Adds the next record of the branch. The cost does not grow with the number of records before it. */
  add(record: KnownRecord): void
  /** Returns the facts so far. More records may be added afterwards. */
  read(): SessionFacts
}

/** Returns the facts of a whole history at once. For a long one use `addRecordsInSteps`. */
export function extractSessionFacts(history: readonly KnownRecord[]): SessionFacts {
  const keeper = createFactsKeeper()
  for (const record of history) keeper.add(record)
  return keeper.read()
}

/** Adds records in steps of one record. Nothing is added until the steps are run. */
export function* addRecordsInSteps(keeper: FactsKeeper, records: Iterable<KnownRecord>): WorkInSteps<void> {
  for (const record of records) {
    keeper.add(record)
    yield measureWork(record)
  }
}

/** Cost of adding a record besides reading its texts, as a number of characters. */
const RECORD_WORK = 1_000

function measureWork(record: KnownRecord): number {
  if (record.type !== 'user' && record.type !== 'assistant') return RECORD_WORK
  return toBlocks(record.message.content).reduce((sum, block) => {
    if (isTextBlock(block)) return sum + block.text.length
    return isToolResult(block) && typeof block.content === 'string' ? sum + block.content.length : sum
  }, RECORD_WORK)
}

const MOST_CALLS = 6
const MOST_RESULTS = 40
const SHORTEST_RESULT = 60
const TODO_CHARACTERS = 100

export interface FactsOptions {
  /** The working directory, if it is known. */
  readonly cwd?: string
  /** Names of the host's tools for files and for its todo list, as the policy has them. */
  readonly tools?: FileToolNames & { readonly todoTools?: readonly string[] }
}

/** Creates a keeper for one branch of the log. After a rewind, a new one must be filled from the start. */
export function createFactsKeeper(options: FactsOptions = {}): FactsKeeper {
  return new BranchFacts(options)
}

type KeptMessage = Omit<UserPrompt, 'isAnswered' | 'hasCalls'> & { hasCalls: boolean }

class BranchFacts implements FactsKeeper {
  readonly #redact = createCachingRedactor()
  readonly #clean = (text: string): string => this.#redact(removeControlCharacters(text))
  readonly #prompts = createUserPromptReader(this.#clean)
  readonly #runs: ReturnType<typeof createToolRunTracker>
  readonly #todos: ReturnType<typeof createTodoTracker>
  readonly #texts = new ModelTextTracker(this.#clean)
  readonly #files = createFileTracker(this.#clean)
  readonly #commands = new CommandTracker(this.#clean)
  readonly #worklog = createWorklog(this.#clean)
  readonly #messages: KeptMessage[] = []
  readonly #calls = new Map<string, ToolRun>()
  readonly #results = new Map<string, ToolRun>()
  readonly #openCalls = new Map<string, ToolRun>()
  readonly #folders = new Set<string>()
  #latest: KeptMessage | null = null
  #turn = { calls: 0, last: null as ToolRun | null, hasBegun: false }
  #doneTodos: ReadonlySet<string> = new Set()
  #plan: RecordText | null = null
  #earlierSummary: RecordText | null = null
  #cwd = ''
  #gitBranch = ''
  /** Id of the newest response. */
  #response = ''
  /** Id of the response that was the newest when the latest instruction came. */
  #responseBefore = ''
  #lastResponse = -1
  #segmentStart = 0
  #place = -1

  constructor({ cwd, tools = {} }: FactsOptions) {
    this.#runs = createToolRunTracker(tools)
    this.#todos = createTodoTracker(tools.todoTools)
    if (cwd !== undefined) this.#files.setFolder(cwd)
  }

  add(record: KnownRecord): void {
    this.#place += 1
    const time = formatTime(record.timestamp)
    this.#addSurroundings(record)
    if (record.type === 'assistant' && !isSyntheticError(record)) this.#addResponse(record.message.id)
    const prompt = this.#prompts.read(record, this.#place)
    if (prompt !== null) this.#addPrompt(prompt, record, time)
    this.#texts.addRecord(record, this.#place)
    const { started, finished, continued } = this.#runs.add(record, this.#place)
    for (const run of started) this.#addStart(run)
    for (const run of finished) this.#addRun(run, time)
    for (const run of continued) {
      this.#commands.add(run)
      this.#worklog.continueRun(run, time)
    }
    if (!isCompactBoundary(record)) return
    this.#texts.endSegment()
    this.#segmentStart = this.#place
  }

  read(): SessionFacts {
    const list = this.#todos.read()
    const latest = this.#latest
    const messages = this.#messages.map((one) => ({ ...one, isAnswered: this.#lastResponse > one.place }))
    return {
      messages,
      latest: messages.findLast(({ uuid }) => uuid === latest?.uuid) ?? null,
      replyPlace: this.#texts.readReplyPlace(),
      turn: this.#turn,
      openCalls: [...this.#openCalls.values()],
      calls: [...this.#calls.values()],
      results: [...this.#results.values()],
      files: this.#files.list(),
      folders: [...this.#folders],
      project: this.#files.readFolders(),
      gitBranch: this.#clean(this.#gitBranch),
      commands: this.#commands.listCommands(),
      failures: this.#commands.listFailures(),
      failedCalls: this.#commands.listFailedCalls(),
      tests: this.#commands.readTests(),
      todos: (list?.items ?? []).map((item) => ({ ...item, text: this.#clean(item.text) })),
      areTodosOlder: (latest?.place ?? -1) > (list?.callIndex ?? -1),
      plan: this.#plan,
      texts: this.#texts.listTexts(),
      decisions: this.#texts.listPlaced(),
      answer: this.#texts.readAnswer(),
      hasAnswered: this.#texts.hasAnswered(),
      steps: this.#worklog.list(),
      earlierSummary: this.#earlierSummary,
      segmentStart: this.#segmentStart,
      clean: this.#clean,
    }
  }

  #addSurroundings(record: KnownRecord): void {
    const { cwd, gitBranch } = record as KnownRecord & { readonly gitBranch?: unknown }
    if (typeof cwd === 'string' && cwd !== '' && cwd !== this.#cwd) {
      this.#cwd = cwd
      this.#folders.add(this.#clean(cwd))
      this.#files.setFolder(this.#clean(cwd))
    }
    if (typeof gitBranch === 'string' && gitBranch !== '') this.#gitBranch = gitBranch
    if (record.type === 'attachment' && typeof record.attachment.planContent === 'string')
      this.#plan = { text: this.#clean(record.attachment.planContent), uuid: record.uuid }
    if (record.isCompactSummary === true && record.type === 'user' && this.#latest === null)
      this.#earlierSummary = {
        text: this.#clean(joinTextBlocks(record.message.content).trim()),
        uuid: record.uuid,
      }
  }

  /** Adds a record of a response. Blocks of one response may be logged after a message that came while it was written. */
  #addResponse(id: string): void {
    this.#response = id
    this.#lastResponse = this.#place
    if (id !== this.#responseBefore) this.#turn.hasBegun = true
  }

  #addPrompt(prompt: ParsedUserPrompt, record: KnownRecord, time: string): void {
    const message = { ...prompt, time, hasCalls: false }
    this.#messages.push(message)
    if (prompt.inputs.every(({ kind }) => kind === 'answer' || kind === 'refusal')) {
      this.#texts.beginTurn(prompt.isCorrection)
      return
    }
    this.#texts.endTurn(time)
    this.#texts.beginTurn(prompt.isCorrection)
    const { sender, inputs } = prompt
    const own = inputs.filter(({ author }) => author.kind === prompt.author.kind)
    const isUsers = sender === 'user' && own.length === inputs.length
    const text = isUsers ? prompt.text : own.map((input) => input.text.trim()).join('\n')
    this.#worklog.beginStep(time, { sender, text })
    if (prompt.instructions.length === 0) return
    this.#latest = message
    this.#turn = { calls: 0, last: null, hasBegun: false }
    this.#responseBefore = this.#response
    // Calls of an earlier turn get no result any more. An attachment is part of the turn, whose calls may get theirs.
    if (record.type === 'user') this.#openCalls.clear()
  }

  #addStart(run: ToolRun): void {
    this.#texts.addStart(run)
    const message = this.#messages.at(-1)
    if (message !== undefined) message.hasCalls = true
    this.#openCalls.set(run.key, run)
    setNewest(this.#calls, run, MOST_CALLS)
  }

  #addRun(run: ToolRun, time: string): void {
    this.#openCalls.delete(run.key)
    if (this.#calls.has(run.key)) this.#calls.set(run.key, run)
    if (hasOwnResult(run)) setNewest(this.#results, run, MOST_RESULTS)
    // A result that arrives before the model responds to the latest instruction is that of an older call.
    if (this.#turn.hasBegun) this.#turn = { ...this.#turn, calls: this.#turn.calls + 1, last: run }
    const changed = this.#files.add(run, time)
    this.#commands.add(run)
    this.#commands.addEdits(changed)
    this.#worklog.addEdits(changed)
    this.#worklog.addRun(run, time)
    this.#texts.addRun(run)
    const plan = run.failed ? null : readPlanText(run)
    if (plan !== null) this.#plan = { text: this.#clean(plan), uuid: run.uuid }
    if (this.#todos.add(run)) this.#addFinishedTodos(time)
  }

  #addFinishedTodos(time: string): void {
    const items = this.#todos.read()?.items ?? []
    const done = items.filter((item) => !isOpenTodo(item)).map(({ text }) => text)
    const fresh = done.filter((text) => !this.#doneTodos.has(text))
    this.#doneTodos = new Set(done)
    const named = fresh.map((text) => toOneLine(this.#clean(text), TODO_CHARACTERS))
    if (named.length > 0) this.#worklog.endStep(named.join('; '), time)
  }
}

/** Sets a run in a map that keeps its `most` newest runs. */
function setNewest(runs: Map<string, ToolRun>, run: ToolRun, most: number): void {
  runs.set(run.key, run)
  const [oldest] = runs.keys()
  if (runs.size > most && oldest !== undefined) runs.delete(oldest)
}

/**
 * Returns true if the result of a tool call has content that no other fact has. Changes of files and errors are facts;
 * a file that was read is attached again or can be read again.
 */
function hasOwnResult({ result, touches, failed }: ToolRun): boolean {
  return touches.length === 0 && !failed && result.trim().length >= SHORTEST_RESULT
}

/** Formats the time of a record: `2026-02-14 21:28`. */
function formatTime(timestamp: string): string {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(timestamp) ? timestamp.slice(0, 16).replace('T', ' ') : ''
}
