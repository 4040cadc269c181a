/**
 * The deterministic gate: no summary, a model's or our own, is trusted on what the log knows. It is checked against
 * the facts, and what it does not hold is added from them within budgets, in one labelled place at its end.
 */
import type { Estimator } from '../measure/estimate.ts'
import { errorPieces } from './error-pieces.ts'
import type { Facts } from './facts.ts'
import { FILES, filePieces } from './file-pieces.ts'
import { MESSAGES, messagePieces } from './message-pieces.ts'
import { type Missing, missingFrom } from './missing.ts'
import { neutralVoice } from './neutral-voice.ts'
import { fitPieces, type Piece } from './piece.ts'
import { withoutSettledTasks } from './settled-tasks.ts'

export interface GateRules {
  /** Tokens of the person's messages that are put back: of one, and of all. */
  readonly messages: { readonly each: number; readonly total: number }
  /** Tokens of the files that are put back. */
  readonly files: number
  /** Errors that are put back in full, newest first; older ones with their last words. */
  readonly errors: number
  /** Tokens of all that is put back. */
  readonly tokens: number
  readonly estimate: Pick<Estimator, 'text'>
}

export interface Gated {
  /** Checked, repaired, without secrets. */
  readonly text: string
  /** The paragraphs that were added to it. */
  readonly repairs: readonly string[]
  /** What was missing: uuids of messages and results, paths of files, texts of tasks. */
  readonly added: GateList
  /** Of that, what found no room. */
  readonly unfit: readonly string[]
  /** Tasks that stood as pending and are done. */
  readonly settled: readonly string[]
  /** Orders and questions that were marked as what they are. */
  readonly marked: readonly string[]
}

export interface GateList {
  readonly messages: readonly string[]
  readonly files: readonly string[]
  readonly todos: readonly string[]
  readonly errors: readonly string[]
}

export function passGate(summary: string, facts: Facts, rules: GateRules): Gated {
  const voiced = neutralVoice(facts.clean(summary), quotedLines(facts))
  const sorted = withoutSettledTasks(voiced.text, facts.todos)
  const missing = missingFrom(sorted.text, facts, { ...messageRules(rules), errors: rules.errors })
  const repair = repairOf(missing, facts, rules)
  const repaired = [sorted.text.trimEnd(), ...repair.paragraphs].join('\n\n')
  const text = repair.paragraphs.length === 0 ? sorted.text : facts.clean(repaired)
  return {
    text,
    repairs: repair.paragraphs,
    added: listOf(missing),
    unfit: repair.unfit,
    settled: sorted.done,
    marked: voiced.marked,
  }
}

/** Lines of what is told word for word. */
function quotedLines({ messages, commands, todos }: Facts): ReadonlySet<string> {
  const texts = [...messages, ...todos].map(({ text }) => text)
  const errors = commands.map(({ error }) => error)
  return new Set([...texts, ...errors].flatMap((text) => text.split('\n').map((line) => line.trim())))
}

function messageRules({ messages, estimate }: GateRules) {
  return { eachTokens: messages.each, estimate }
}

const HEADINGS: readonly (readonly [section: number, heading: string])[] = [
  [6, 'User messages, word for word:'],
  [3, 'Files touched:'],
  [7, 'Open tasks on the list:'],
  [4, 'Commands that failed and have not succeeded since:'],
]
const ADDED = 'From the log, since the summary above does not have it:'

interface Repair {
  readonly paragraphs: readonly string[]
  readonly unfit: readonly string[]
}

function repairOf(missing: Missing, facts: Facts, rules: GateRules): Repair {
  const caps = new Map([
    [MESSAGES, rules.messages.total],
    [FILES, rules.files],
  ])
  const fitted = fitPieces(piecesOf(missing, facts, rules), {
    total: rules.tokens,
    caps,
    estimate: rules.estimate,
  })
  const parts = HEADINGS.flatMap(([section, heading]) => {
    const own = fitted.placed.filter((piece) => piece.section === section).map(({ text }) => text)
    return own.length === 0 ? [] : [[heading, ...own].join('\n')]
  })
  const unfit = fitted.leftOut.flatMap(({ id }) => (id === null ? [] : [id]))
  return { paragraphs: parts.length === 0 ? [] : [ADDED, ...parts], unfit }
}

/** Messages keep the numbers they have among all. */
function piecesOf(missing: Missing, facts: Facts, rules: GateRules): readonly Piece[] {
  const wanted = new Set(missing.messages.map(({ uuid }) => uuid))
  const messages = messagePieces(facts.messages, 1, messageRules(rules)).filter(({ id }) =>
    wanted.has(id ?? ''),
  )
  const files = filePieces(missing.files, { edited: 3, snippets: 9, read: 5 })
  const newest = new Set(
    facts.commands
      .filter(({ isSettled }) => !isSettled)
      .slice(0, rules.errors)
      .map(({ uuid }) => uuid),
  )
  const errors = errorPieces(missing.commands, [], { open: 4, settled: 4, calls: 4 }).map((piece) =>
    newest.has(piece.id ?? '') ? piece : { ...piece, full: piece.short ?? piece.full, short: null },
  )
  const todos = missing.todos.map(({ text, status }, order) => ({
    section: 7,
    rank: 0,
    order,
    full: `- ${status === 'in_progress' ? 'In work: ' : ''}${text}`,
    short: null,
    group: 'todos',
    id: text,
  }))
  return [...todos, ...messages, ...files.filter(({ group }) => group === FILES), ...errors]
}

function listOf({ messages, files, todos, commands }: Missing): GateList {
  return {
    messages: messages.map(({ uuid }) => uuid),
    files: files.map(({ path }) => path),
    todos: todos.map(({ text }) => text),
    errors: commands.map(({ uuid }) => uuid),
  }
}
