/**
 * The local note keeper: keeps the notes of a session true from its log alone, without a model. It is fed the records of
 * the branch one by one. The cost of adding a record does not depend on how many came before; rendering costs as much as
 * the notes are long.
 */

import { hasReplied, readAssistantTexts } from '../facts/assistant-texts.ts'
import { createTodoTracker, isOpenTodo, isTodoInProgress, type TodoItem } from '../facts/todo-list.ts'
import { createToolRunTracker, type ToolRun } from '../facts/tool-runs.ts'
import { createUserPromptReader, type ReadUserPrompt } from '../facts/user-prompts.ts'
import { isTextBlock, toBlocks } from '../log/block.ts'
import { isCompactBoundary, isSyntheticError, type KnownRecord } from '../log/record.ts'
import { runAtOnce, type Steps } from '../log/work-steps.ts'
import { quoteBlock } from '../text/code-blocks.ts'
import { truncateEnd } from '../text/truncate-text.ts'
import { CommandNotes, formatCommand } from './command-notes.ts'
import { FileNotes } from './file-notes.ts'
import type { NoteGroup } from './fit-notes.ts'
import { ModelNotes } from './model-notes.ts'
import { cleanNoteText, createNewestList, formatNoteTime, toNoteLine } from './note-text.ts'
import { type NotesRenderOptions, type NotesSources, renderNotes } from './render-notes.ts'
import { isInstruction, UserNotes } from './user-notes.ts'
import { createWorklog } from './worklog.ts'

export interface NoteKeeper {
  /** Adds the next record of the branch. Records of subagents are left out. */
  add(record: KnownRecord): void
  /** Sets the title that the session was given. Default: the first words of the first request. */
  setTitle(title: string): void
  /** Writes the notes, within `totalTokens` unless the template alone has more. */
  render(options: NotesRenderOptions): KeptNotes
  /** Writes the notes in steps. Records that are added meanwhile may be in them, but do not count as covered. */
  renderInSteps(options: NotesRenderOptions): Steps<KeptNotes>
}

export interface KeptNotes {
  readonly text: string
  /** uuid of the last record that was added; null if there was none. */
  readonly coveredUuid: string | null
}

const TODO_CHARACTERS = 200
const MOST_TURN_RUNS = 300
const MOST_WAITING = 5
const LATEST_TEXT_CHARACTERS = 700
const SUMMARY_CHARACTERS = 5_000
const SHORT_SUMMARY_CHARACTERS = 1_500
const REQUEST_CHARACTERS = 200
/** Work of collecting the sections, in characters that would be read in the same time. */
const COLLECTION_WORK = 60_000

/** Creates a keeper for one branch. After a rewind the host creates a new one. `cwd`: the working directory, if it is known. */
export function createNoteKeeper({ cwd }: { readonly cwd?: string } = {}): NoteKeeper {
  return new LocalNoteKeeper(cwd)
}

class LocalNoteKeeper implements NoteKeeper {
  readonly #prompts = createUserPromptReader(cleanNoteText)
  readonly #runs = createToolRunTracker()
  readonly #todos = createTodoTracker()
  readonly #user = new UserNotes()
  readonly #model = new ModelNotes()
  readonly #files = new FileNotes()
  readonly #commands = new CommandNotes()
  readonly #worklog = createWorklog()
  /** The calls since the latest instruction, without their inputs and results. */
  #turnRuns = createNewestList<ToolRun>(MOST_TURN_RUNS)
  /** Calls without a result, by id. */
  readonly #open = new Map<string, ToolRun>()
  #doneTodos: ReadonlySet<string> = new Set()
  #gitBranch = ''
  #earlierSummary = ''
  /** Id of the newest response; what it was when the latest instruction came; whether the model has responded since. */
  #response = ''
  #responseBefore = ''
  #hasBegun = false
  #covered: string | null = null
  #place = -1

  constructor(cwd: string | undefined) {
    if (cwd !== undefined) this.#files.setFolder(cwd)
  }

  add(record: KnownRecord): void {
    if (record.isSidechain === true) return
    this.#covered = record.uuid
    this.#place += 1
    const time = formatNoteTime(record.timestamp)
    this.#addSurroundings(record)
    if (record.type === 'assistant' && !isSyntheticError(record)) this.#addResponse(record.message.id)
    const prompt = this.#prompts.read(record, this.#place)
    if (prompt !== null) this.#addPrompt(prompt, record, time)
    this.#user.add(record, prompt, this.#place)
    for (const text of readAssistantTexts(record, cleanNoteText)) this.#model.addText(text, this.#place)
    // Claude Code logs each block of a response as a record of its own: the call may not be in the log yet.
    if (record.type === 'assistant' && record.message.stop_reason === 'tool_use') this.#model.addCall()
    const { started, finished, continued } = this.#runs.add(record, this.#place)
    for (const run of started) {
      this.#model.addStart(run)
      this.#user.addCall()
      this.#open.set(run.id, run)
    }
    for (const run of finished) this.#addRun(run, record)
    for (const run of continued) {
      this.#commands.add(run)
      this.#worklog.continueRun(run, time)
    }
    if (isCompactBoundary(record)) {
      this.#model.endSegment()
      this.#commands.endSegment(this.#place)
    }
  }

  setTitle(title: string): void {
    this.#user.setTitle(title)
  }

  render(options: NotesRenderOptions): KeptNotes {
    return runAtOnce(this.renderInSteps(options))
  }

  *renderInSteps(options: NotesRenderOptions): Steps<KeptNotes> {
    const coveredUuid = this.#covered
    const sections = this.#collectSections(options.use === 'summary')
    yield COLLECTION_WORK
    return { text: yield* renderNotes(sections, options), coveredUuid }
  }

  #addSurroundings(record: KnownRecord): void {
    const { cwd, gitBranch } = record as KnownRecord & { readonly gitBranch?: unknown }
    if (typeof cwd === 'string' && cwd !== '') this.#files.setFolder(cwd)
    if (typeof gitBranch === 'string' && gitBranch !== '') this.#gitBranch = gitBranch
    // A summary counts only if the records that it stands for are not in the log.
    if (record.isCompactSummary !== true || record.type !== 'user' || this.#user.readLatest() !== null) return
    const texts = toBlocks(record.message.content).flatMap((block) =>
      isTextBlock(block) ? [block.text] : [],
    )
    this.#earlierSummary = cleanNoteText(texts.join('\n').trim())
  }

  /** Adds a record of a response. Blocks of one response may be logged after a message that it has not seen. */
  #addResponse(id: string): void {
    this.#response = id
    if (id !== this.#responseBefore) this.#hasBegun = true
  }

  #addPrompt(prompt: ReadUserPrompt, record: KnownRecord, time: string): void {
    if (prompt.inputs.every(({ kind }) => kind === 'answer' || kind === 'refusal')) {
      this.#model.beginTurn(prompt.isCorrection)
      return
    }
    this.#model.endTurn(time)
    this.#model.beginTurn(prompt.isCorrection)
    this.#worklog.beginStep(time, prompt.text)
    if (!prompt.inputs.some((input) => isInstruction(input, record))) return
    this.#turnRuns = createNewestList(MOST_TURN_RUNS)
    this.#responseBefore = this.#response
    this.#hasBegun = false
    // A call of an earlier turn that has no result by now gets none. An attachment belongs to the turn.
    if (record.type === 'user') this.#open.clear()
  }

  #addRun(run: ToolRun, record: KnownRecord): void {
    const time = formatNoteTime(record.timestamp)
    this.#open.delete(run.id)
    // The result of a call of an older response may come after the latest instruction.
    if (this.#hasBegun) this.#turnRuns.add({ ...run, input: null, result: '', edits: [], touches: [] })
    this.#commands.add(run)
    const paths = this.#files.add(run, record.timestamp)
    this.#commands.addEdits(paths)
    this.#worklog.addEdits(paths)
    this.#worklog.addRun(run, time)
    this.#model.addRun(run)
    if (this.#todos.add(run)) this.#addFinishedTodos(time)
  }

  #addFinishedTodos(time: string): void {
    const items = this.#todos.read()?.items ?? []
    const done = items.filter((item) => !isOpenTodo(item)).map(({ text }) => text)
    const fresh = done.filter((text) => !this.#doneTodos.has(text))
    this.#doneTodos = new Set(done)
    const named = fresh.map((text) => toNoteLine(cleanNoteText(text), REQUEST_CHARACTERS / 2))
    if (named.length > 0) this.#worklog.endStep(`done: ${named.join('; ')}`, time)
  }

  /** `areFactsListed`: the user's messages and failing commands stand beside the notes, so they are not repeated. */
  #collectSections(areFactsListed: boolean): NotesSources {
    return {
      title: this.#user.formatTitle() === '' ? [] : [toGroup('', [this.#user.formatTitle()])],
      state: [
        ...(areFactsListed ? this.#user.nameInstruction() : this.#user.listInstruction()),
        toGroup('', this.#describeProgress()),
        ...this.#listTodos(),
        ...this.#listLatestText(),
      ],
      task: [
        ...(areFactsListed ? [] : this.#user.listRequests()),
        ...this.#model.listPlan(this.#user.countRequests()),
        ...(areFactsListed ? [] : this.#user.listAnswers()),
        ...this.#user.listUnconfirmed(),
      ],
      decisions: (options) => this.#model.formatTexts(options),
      files: (options) => this.#files.formatSection(options),
      workflow: this.#commands.listWorkflow(),
      errors: [
        ...this.#user.listCorrections(),
        ...this.#commands.listFailingTests(),
        ...(areFactsListed ? [] : this.#commands.listFailing()),
        ...this.#commands.listFixed(),
      ],
      system: [
        toGroup('', [
          ...this.#files.describeProject(),
          ...(this.#gitBranch === '' ? [] : [`- Git branch: ${toNoteLine(cleanNoteText(this.#gitBranch))}`]),
        ]),
        ...this.#listEarlierSummary(),
      ],
      learnings: [],
      results: this.#model.listAnswers(),
      worklog: this.#worklog.listSteps(),
    }
  }

  /** Tells how the latest instruction stands, and which calls have no result yet. */
  #describeProgress(): readonly string[] {
    const latest = this.#user.readLatest()
    const text = this.#model.readLatestEnd()
    const runs = this.#turnRuns.list().toReversed()
    const open = [...this.#open.values()]
    const waiting = open.slice(-MOST_WAITING).map((run) => `- No result yet: ${formatRun(run)}`)
    if (latest === null) return waiting
    const isReplied = hasReplied(latest, text === null ? [] : [text], runs)
    const last = runs.at(-1)
    const calls = `${runs.length}${runs.length === MOST_TURN_RUNS ? ' or more' : ''} tool call${runs.length === 1 ? '' : 's'}`
    const done = last === undefined ? '' : `${calls} since then, the last one ${formatRun(last)}.`
    if (isReplied) return [`The model has answered it, see Key results. ${done}`.trim(), ...waiting]
    if (last === undefined) {
      return [this.#hasBegun ? 'The model is at work on it.' : 'The model has not begun with it.', ...waiting]
    }
    return [`The model is at work on it: ${done}`, ...waiting]
  }

  #listTodos(): readonly NoteGroup[] {
    const { items = [], callIndex = -1 } = this.#todos.read() ?? {}
    const open = items.filter(isOpenTodo)
    if (items.length === 0) return []
    const isOlder = (this.#user.readLatest()?.place ?? -1) > callIndex
    const age = isOlder ? ', last changed before the latest instruction' : ''
    const count = `${items.length - open.length} of ${items.length} done${age}`
    if (open.length === 0) return [toGroup('', [`Todo list, ${count}.`])]
    const lines = open.map((item) => ({ full: formatTodo(item), rank: 0 }))
    return [{ title: `Todo list, ${count}:`, items: lines }]
  }

  #listLatestText(): readonly NoteGroup[] {
    const latest = this.#model.readLatest()
    if (latest === null || (this.#user.readLatest()?.place ?? -1) > latest.place) return []
    // Key results have the answer.
    if (this.#model.hasAnswered()) return []
    const full = quoteBlock(truncateEnd(latest.text, LATEST_TEXT_CHARACTERS))
    return [{ title: "The model's latest text:", items: [{ full, rank: 2 }] }]
  }

  #listEarlierSummary(): readonly NoteGroup[] {
    if (this.#earlierSummary === '') return []
    const full = quoteBlock(truncateEnd(this.#earlierSummary, SUMMARY_CHARACTERS))
    const short = quoteBlock(truncateEnd(this.#earlierSummary, SHORT_SUMMARY_CHARACTERS))
    const title = 'Summary of an earlier part, which is not in this log:'
    return [{ title, items: [{ full, short, rank: 2 }] }]
  }
}

function toGroup(title: string, lines: readonly string[]): NoteGroup {
  return { title, items: lines.map((full) => ({ full, rank: 1 })) }
}

function formatTodo(item: TodoItem): string {
  const text = toNoteLine(cleanNoteText(item.text), TODO_CHARACTERS)
  return `- [${isTodoInProgress(item) ? '>' : ' '}] ${text}`
}

function formatRun({ name, command, path }: ToolRun): string {
  if (command !== null) return `${name} ${formatCommand(command)}`
  return path === null ? name : `${name} ${toNoteLine(cleanNoteText(path))}`
}
