/**
 * The examiner of the notes: works out what is true from a log, looks it up in the notes, and judges each item. Written
 * from docs/notes-exam.md alone; it shares no code with the note keeper.
 */

import { readExamLog } from './exam-log.ts'
import { isNoted, matchesWhole, readQuotes, readSection } from './exam-lookup.ts'
import { type FileTruth, findTruth, squeeze, stripColours, type Truth } from './exam-truth.ts'

export const QUESTIONS = ['todos', 'files', 'commands', 'tests', 'instruction', 'corrections'] as const
export type Question = (typeof QUESTIONS)[number]

/** The items of one question by their judgement. */
export interface Answer {
  readonly right: readonly string[]
  readonly missing: readonly string[]
  readonly contradicted: readonly string[]
  readonly undecided: readonly string[]
}

export type Judgement = keyof Answer
export type ExamReport = Readonly<Record<Question, Answer>>

/** Examines the notes of a session against the lines of its log up to the same point. */
export function examine(lines: readonly string[], notes: string): ExamReport {
  const truth = findTruth(readExamLog(lines))
  const errors = readSection(notes, 'Errors and corrections')
  return {
    todos: examineTodos(truth, readSection(notes, 'Current state')),
    files: examineFiles(truth.editedFiles, readSection(notes, 'Files and functions')),
    commands: examineCommands(truth, [...readSection(notes, 'Workflow'), ...errors]),
    tests: examineTests(truth.failingTests, errors),
    instruction: examineInstruction(truth, readSection(notes, 'Current state')),
    corrections: examineCorrections(truth.corrections, errors),
  }
}

type Judged = readonly [judgement: Judgement, item: string]

function toAnswer(judged: readonly Judged[]): Answer {
  const pick = (wanted: Judgement) =>
    judged.flatMap(([judgement, item]) => (judgement === wanted ? [item] : []))
  return {
    right: pick('right'),
    missing: pick('missing'),
    contradicted: pick('contradicted'),
    undecided: pick('undecided'),
  }
}

function examineTodos({ openTodos, closedTodos }: Truth, section: readonly string[]): Answer {
  const known = [...openTodos, ...closedTodos].sort((one, other) => other.length - one.length)
  const boxes = section.flatMap((line) => {
    const box = /^\s*- \[([ >x])\] (.*)$/.exec(line)
    const text = squeeze(box?.[2] ?? '')
    return box === null
      ? []
      : [{ isDone: box[1] === 'x', text, item: known.find((item) => hasTodo(text, item)) }]
  })
  const open = openTodos.map((item): Judged => {
    const found = boxes.filter((box) => box.item === item)
    if (found.some(({ isDone }) => isDone)) return ['contradicted', `done: ${item}`]
    return [found.length > 0 ? 'right' : 'missing', item]
  })
  const wrong = boxes
    .filter(({ isDone, text, item }) => !isDone && !text.startsWith('…') && !openTodos.includes(item ?? ''))
    .map(({ text }): Judged => ['contradicted', `open: ${text}`])
  return toAnswer([...open, ...wrong])
}

/** A line has an item if it begins with its text or its first 200 characters; what follows is a remark. */
function hasTodo(text: string, item: string): boolean {
  const first = squeeze(item.slice(0, 200))
  return text.startsWith(first) || matchesWhole(text, item)
}

function examineFiles(files: readonly FileTruth[], section: readonly string[]): Answer {
  const lines = section.map((line) => line.replaceAll('\\', '/'))
  const edited = files.map(
    (file): Judged => [lines.some((line) => namesFile(line, file)) ? 'right' : 'missing', file.path],
  )
  const wrong = lines
    .flatMap(listClaimedEdits)
    .filter((claim) => !files.some((file) => isSameFile(claim, file)))
  return toAnswer([...edited, ...wrong.map((claim): Judged => ['contradicted', `edited: ${claim}`])])
}

function namesFile(line: string, file: FileTruth): boolean {
  if (file.spellings.some((path) => hasPath(line, path))) return true
  return readFolderLine(line).some(({ path }) => isSameFile(path, file))
}

/** A bare name counts only where a line begins with it: elsewhere it may be of a file in another folder. */
function hasPath(line: string, path: string): boolean {
  for (let at = line.indexOf(path); at >= 0; at = line.indexOf(path, at + 1)) {
    const before = line.slice(0, at)
    const after = line.slice(at + path.length)
    const isBegun = path.includes('/') ? !/[\w./@~-]$/.test(before) : /^\s*(?:[-*] )?`?$/.test(before)
    if (isBegun && !/^(?:[\w/@~-]|\.\w)/.test(after)) return true
  }
  return false
}

function isSameFile(claim: string, { spellings }: FileTruth): boolean {
  return spellings.some((spelling) => matchesWhole(claim.replace(/^\.\//, ''), spelling))
}

/** The files of a line `FOLDER: NAME, NAME …`, each with its remark. */
function readFolderLine(line: string): readonly { readonly path: string; readonly remark: string }[] {
  const parts = /^\s*(?:[-*] )?`?([^`]*?)\/?`?: (.*)$/.exec(line)
  if (parts === null) return []
  const [, folder = '', names = ''] = parts
  return splitNames(names).map((entry) => {
    const [, name = '', remark = ''] = /^`?([^`(]*?)`?(?:\s+\((.*)\)|\s+[—–-] (.*))?\s*…?$/.exec(entry) ?? []
    return { path: folder === '.' || folder === '' ? name : `${folder}/${name}`, remark }
  })
}

/** Splits at commas outside parentheses. */
function splitNames(names: string): readonly string[] {
  return names.split(/,(?![^(]*\))/).map((name) => name.trim())
}

/** Paths of which a line says that they were edited or created. */
function listClaimedEdits(line: string): readonly string[] {
  const folder = readFolderLine(line).filter(({ remark }) => CLAIM.test(remark))
  if (folder.length > 0) return folder.map(({ path }) => path)
  const parts = /^\s*[-*] (?:`([^`]+)`|(.+?)(?=: | \(| — ))(.*)$/.exec(line)
  const path = parts?.[1] ?? parts?.[2] ?? ''
  return /[/.]/.test(path) && CLAIM.test(parts?.[3] ?? '') ? [path] : []
}

const CLAIM = /\b(?:edited|created)\b/i

const COMMAND_CUT = { head: 120, tail: 0 }

function examineCommands({ askedCommands, allCommands }: Truth, section: readonly string[]): Answer {
  const lines = section.flatMap((line) => {
    const [, command, status] = /^\s*- `([^`]*)` → (ok|failed)\b/.exec(squeeze(line)) ?? []
    return command === undefined ? [] : [{ command, status }]
  })
  return toAnswer(
    askedCommands.map(({ command, status }): Judged => {
      const item = `${command} → ${status}`
      if (status === 'undecided') return ['undecided', item]
      const found = lines.filter((line) => isCommand(line.command, command))
      if (found.length === 0) return ['missing', item]
      // A line cut to 120 characters may be of any command that begins so.
      const wrong = found.filter((line) => {
        const others = allCommands.filter((other) => isCommand(line.command, other.command))
        return !others.some((other) => other.status === line.status || other.status === 'undecided')
      })
      if (wrong.length > 0) return ['contradicted', item]
      return [found.some((line) => line.status === status) ? 'right' : 'missing', item]
    }),
  )
}

function isCommand(noted: string, command: string): boolean {
  return isNoted(noted, command.replaceAll('`', "'"), COMMAND_CUT)
}

function examineTests(failing: readonly string[] | null, section: readonly string[]): Answer {
  const noted = section.flatMap((line) => {
    const name = /^\s*- failing test: (.*)$/.exec(stripColours(line))?.[1]
    return name === undefined ? [] : [squeeze(name)]
  })
  if (failing === null) return toAnswer(noted.map((name) => ['undecided', name]))
  const wrong = noted.filter((name) => !failing.some((test) => matchesWhole(name, test)))
  return toAnswer([
    ...failing.map(
      (test): Judged => [noted.some((name) => matchesWhole(name, test)) ? 'right' : 'missing', test],
    ),
    ...wrong.map((name): Judged => ['contradicted', name]),
  ])
}

function examineInstruction({ instruction }: Truth, section: readonly string[]): Answer {
  const [quote] = readQuotes(section, 'Latest instruction:')
  const { text, isUndecided } = instruction
  if (isUndecided) return toAnswer([['undecided', text ?? '']])
  if (text === null) return toAnswer(quote === undefined ? [] : [['contradicted', quote]])
  if (quote === undefined) return toAnswer([['missing', text]])
  return toAnswer([[isNoted(quote, text, { head: 500, tail: 500 }) ? 'right' : 'contradicted', text]])
}

function examineCorrections(corrections: readonly string[], section: readonly string[]): Answer {
  const quotes = readQuotes(section, 'Corrections by the user:')
  return toAnswer(
    corrections.map((text): Judged => {
      const isThere = quotes.some((quote) => isNoted(quote, text, { head: 300, tail: 0 }))
      return [isThere ? 'right' : 'missing', text]
    }),
  )
}
