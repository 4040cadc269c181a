/**
 * Writes the notes from the facts of a session, without a model: each section within its budget, and all of them within
 * theirs. Also keeps the notes of a session up to date from its log.
 */

import type { ContextView } from '../context/context-view.ts'
import {
  addRecordsInSteps,
  createFactsKeeper,
  type FactsKeeper,
  type FactsOptions,
  type SessionFacts,
} from '../facts/session-facts.ts'
import { isKnownRecord, type KnownRecord } from '../log/record.ts'
import { requireRecordAt, type SessionLog } from '../log/session-log.ts'
import type { WorkInSteps } from '../log/work-steps.ts'
import { toOneLine } from '../text/truncate-text.ts'
import {
  chooseNotesTemplate,
  formatNotes,
  NOTES_SECTION_NAMES,
  NOTES_SECTION_TEMPLATES,
  NOTES_TEMPLATE,
  type NoteGroup,
  type NotesLimits,
  type NotesSectionName,
  parseNotes,
  type SectionBudget,
  toNoteGroup,
  writeNoteGroups,
} from './notes-file.ts'
import { createUserSections } from './user-sections.ts'
import {
  createCommandGroups,
  createEarlierSummaryGroups,
  createFailingCommandGroups,
  createFailingTestGroups,
  createFixedErrorGroups,
  createLatestTextGroups,
  createNewestAnswerGroups,
  createPlanGroups,
  createTodoGroups,
  createWorklogGroups,
  describeInstructionProgress,
  describeProject,
  writeDecisionsSection,
  writeFilesSection,
} from './work-sections.ts'

/** Limits of the notes, and what they are for. */
export interface NotesRenderOptions {
  /** Maximum tokens of one section. Only open todos, the latest instruction and commands that still fail may exceed it. */
  readonly sectionTokens: number
  /** Tokens for the decisions and findings of the model, in addition to `sectionTokens` of the section that has them. */
  readonly decisionTokens: number
  readonly totalTokens: number
  readonly countTokens: (text: string) => number
  /** Headings and hints to use instead of the default ones. Sections that the template lacks are added at its end. */
  readonly template?: string
  /** What the notes are for; default `file`. */
  readonly use?: NotesUse
  /** The title that the session was given. Default: the first words of the first request that the model worked on. */
  readonly title?: string
}

/**
 * What notes are written for. `file`: to be read by themselves. `summary`: to stand in the context, where the user's
 * messages and the failing commands are listed word for word, so that the notes only point to them.
 */
type NotesUse = 'file' | 'summary'

/** The items of a section, or a function that writes the section itself. */
type SectionSource = readonly NoteGroup[] | ((budget: SectionBudget) => string)

type Bodies = Record<NotesSectionName, string>

/** Sections in the order in which they give up tokens if all together have too many. */
const YIELDING_ORDER: readonly NotesSectionName[] = [
  ...(['learnings', 'worklog', 'results', 'system', 'task'] as const),
  ...(['workflow', 'files', 'errors', 'state', 'title'] as const),
]
/** Shares of `sectionTokens` to which sections are cut: first all in turn to the first share, then all to the next. */
const CUTS = [0.5, 0.2, 0]
/** Work of collecting the sections, and of writing one, expressed as a number of characters to read. */
const COLLECTION_WORK = 60_000
const SECTION_WORK = 20_000
const TITLE_CHARACTERS = 100

/** Writes the notes, within `totalTokens` unless the template alone has more. */
export function* renderNotes(facts: SessionFacts, options: NotesRenderOptions): WorkInSteps<string> {
  const { totalTokens, countTokens } = options
  const sources = collectSections(facts, options)
  yield COLLECTION_WORK
  const budget = { tokens: options.sectionTokens, countTokens }
  const bodies = Object.fromEntries(NOTES_SECTION_NAMES.map((name) => [name, ''])) as Bodies
  let decisions = writeDecisionsSection(facts, { ...budget, tokens: options.decisionTokens })
  for (const name of NOTES_SECTION_NAMES) {
    bodies[name] = writeSection(sources[name], budget)
    yield SECTION_WORK
  }
  const format = (changed: Partial<Bodies> = {}): string =>
    formatSections(withDecisions({ ...bodies, ...changed }, decisions), options.template)
  let total = countTokens(format())
  // If the other sections leave tokens free, errors are written in full, unless they are listed beside a summary.
  if (total < totalTokens && options.use !== 'summary') {
    const text = format({
      errors: writeSection(sources.errors, { ...budget, spareTokens: totalTokens - total }),
    })
    if (countTokens(text) <= totalTokens) return text
  }
  for (const mayDropAll of [false, true]) {
    for (const share of CUTS) {
      for (const name of YIELDING_ORDER) {
        if (total <= totalTokens) return format()
        const own = bodies[name] === '' ? 0 : countTokens(bodies[name])
        const least = Math.floor(options.sectionTokens * share)
        if (own <= least) continue
        const tokens = Math.max(least, own - (total - totalTokens) - 1)
        bodies[name] = writeSection(sources[name], { ...budget, tokens, mayDropAll })
        total = countTokens(format())
        yield SECTION_WORK
      }
    }
    if (total <= totalTokens) break
    // At this point only open todos, the latest instruction and commands that still fail are left in the sections.
    const tokens = options.decisionTokens - (total - totalTokens)
    decisions = tokens <= 0 ? '' : writeDecisionsSection(facts, { ...budget, tokens })
    total = countTokens(format())
  }
  return format()
}

/** Returns what each section has to say. Nothing is cut yet. */
function collectSections(
  facts: SessionFacts,
  { use, title: given = '' }: NotesRenderOptions,
): Readonly<Record<NotesSectionName, SectionSource>> {
  const user = createUserSections(facts)
  const title = toOneLine(facts.clean(given), TITLE_CHARACTERS) || user.title
  // The summary already lists the user's messages and failing commands, so the notes in it do not repeat them.
  const areFactsListed = use === 'summary'
  return {
    title: [toNoteGroup('', title === '' ? [] : [title])],
    state: [
      ...(areFactsListed ? user.instructionName : user.instruction),
      toNoteGroup('', describeInstructionProgress(facts)),
      ...createTodoGroups(facts),
      ...createLatestTextGroups(facts),
    ],
    task: [
      ...(areFactsListed ? [] : user.requests),
      ...createPlanGroups(facts, user.countRequests),
      ...(areFactsListed ? [] : user.answers),
      ...user.unconfirmed,
    ],
    files: (budget) => writeFilesSection(facts, budget),
    workflow: createCommandGroups(facts),
    errors: [
      ...user.corrections,
      ...createFailingTestGroups(facts),
      ...(areFactsListed ? [] : createFailingCommandGroups(facts)),
      ...createFixedErrorGroups(facts),
    ],
    system: [toNoteGroup('', describeProject(facts)), ...createEarlierSummaryGroups(facts)],
    learnings: [],
    results: createNewestAnswerGroups(facts),
    worklog: createWorklogGroups(facts),
  }
}

function withDecisions(bodies: Readonly<Bodies>, decisions: string): Bodies {
  return { ...bodies, task: [bodies.task, decisions].filter((part) => part !== '').join('\n\n') }
}

/** Matches characters that change the direction of the text after them. */
const DIRECTION_MARK = /[\u202a-\u202e\u2066-\u2069]/g
const LINE_END = /\r\n?/g

function writeSection(source: SectionSource, budget: SectionBudget): string {
  return typeof source === 'function' ? source(budget) : writeNoteGroups(source, budget)
}

/** Puts the bodies below the headings of the template. A section that the template lacks is added, unless it is empty. */
function formatSections(bodies: Readonly<Bodies>, template: string = NOTES_TEMPLATE): string {
  const given = parseNotes(template)
  const names = new Map(
    NOTES_SECTION_NAMES.map((name) => [toKey(NOTES_SECTION_TEMPLATES[name].heading), name]),
  )
  const used = new Set<NotesSectionName>()
  const filled = given.map((section) => {
    const name = names.get(toKey(section.heading))
    if (name === undefined || used.has(name)) return section
    used.add(name)
    return { ...section, body: [section.body, bodies[name]].filter((part) => part !== '').join('\n\n') }
  })
  const added = NOTES_SECTION_NAMES.filter((name) => !used.has(name) && bodies[name] !== '')
  const all = [...filled, ...added.map((name) => ({ ...NOTES_SECTION_TEMPLATES[name], body: bodies[name] }))]
  return formatNotes(all).replace(LINE_END, '\n').replace(DIRECTION_MARK, '')
}

function toKey(heading: string): string {
  return heading.trim().toLowerCase()
}

/**
 * Keeps the notes of a session from its log, without a model. Each update reads only the records that are new; after a
 * rewind to another branch, the notes are made again from that branch.
 */
export interface BranchNotesKeeper {
  /**
   * Reads the new records of the branch. Returns the notes, and the uuid of the last record that they cover. That may
   * be a later record than this state has, if a later state of the branch was read before. `template`: that of the
   * user, in place of the default one. Several updates may run at the same time.
   */
  update(
    state: BranchState,
    limits: NotesLimits,
    options?: { readonly template?: string | undefined; readonly use?: NotesUse },
  ): WorkInSteps<KeptNotes>
}

interface KeptNotes {
  readonly text: string
  /** uuid of the last record that was added; null if there was none. */
  readonly coveredUuid: string | null
}

interface BranchState {
  readonly session: SessionLog
  readonly view: Pick<ContextView, 'branch'>
}

/** A branch that is being read, and how many of its records have been added to the facts. */
interface BranchReading {
  readonly keeper: FactsKeeper
  branch: ContextView['branch']
  added: number
  covered: string | null
}

/** Creates a keeper that has read nothing yet. */
export function createBranchNotesKeeper(options: FactsOptions = {}): BranchNotesKeeper {
  let newest: BranchReading | null = null

  function findReading(branch: ContextView['branch']): BranchReading {
    if (newest?.branch.extends(branch) === true) return newest
    if (newest !== null && branch.extends(newest.branch)) newest.branch = branch
    else newest = { keeper: createFactsKeeper(options), branch, added: 0, covered: null }
    return newest
  }

  return {
    *update({ session, view: { branch } }, { section, decisions, total, countTokens }, options = {}) {
      const reading = findReading(branch)
      yield* addRecordsInSteps(reading.keeper, listNewRecords(reading, session, branch))
      const coveredUuid = reading.covered
      const text = yield* renderNotes(reading.keeper.read(), {
        sectionTokens: section,
        decisionTokens: decisions,
        totalTokens: total,
        countTokens,
        template: chooseNotesTemplate(options.template),
        use: options.use ?? 'file',
      })
      return { text, coveredUuid }
    },
  }
}

/** Lists the records of a branch that were not added yet. */
function* listNewRecords(
  reading: BranchReading,
  session: SessionLog,
  branch: ContextView['branch'],
): Generator<KnownRecord> {
  while (reading.added < branch.length) {
    const record = requireRecordAt(session, branch.at(reading.added) ?? -1)
    reading.added += 1
    if (!isKnownRecord(record)) continue
    reading.covered = record.uuid
    yield record
  }
}
