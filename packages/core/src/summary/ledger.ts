/**
 * The ledger: which names the work is using, grouped by file, the likeliest to be needed first, within a budget.
 * Made anew from the whole history at every compaction, so it neither grows nor fades over rounds.
 */
import type { KnownRecord } from '../log/record.ts'
import type { FileTouch } from '../log/tool-calls.ts'
import type { Estimator } from '../tokens/estimator.ts'
import { fileName, type Mention, mentionsOf } from './mentions.ts'
import { redact } from './redact.ts'

interface Ledger {
  readonly files: readonly LedgerFile[]
  /** Names that belong to no file that is listed. */
  readonly names: readonly string[]
  readonly lines: readonly string[]
  readonly text: string
  readonly tokens: number
}

interface LedgerRules {
  readonly tokens: number
  readonly estimate: Estimator
}

export function ledgerOf(history: readonly KnownRecord[], rules: LedgerRules): Ledger {
  const { files, identifiers } = weighNames(mentionsOf(history))
  const candidates = [...files.map(fileCandidate), ...identifiers.map(nameCandidate)]
  const ranked = candidates
    .map((candidate) => ({ candidate, density: candidate.weight / cost(candidate.spelt, rules) }))
    .toSorted((one, other) => other.density - one.density || compare(one.candidate, other.candidate))
    .map(({ candidate }) => candidate)
    .slice(0, rules.tokens)
    .filter(({ spelt }) => redact(spelt) === spelt)
  return fitted(ranked, rules)
}

/** Of the ranked candidates as many as fit, found by halving: one more never makes the text shorter by much. */
function fitted(ranked: readonly Candidate[], rules: LedgerRules): Ledger {
  let fits = 0
  let most = ranked.length + 1
  while (most - fits > 1) {
    const tried = Math.floor((fits + most) / 2)
    if (drawn(ranked.slice(0, tried), rules).tokens <= rules.tokens) fits = tried
    else most = tried
  }
  return drawn(ranked.slice(0, fits), rules)
}

function drawn(chosen: readonly Candidate[], rules: LedgerRules): Ledger {
  const listed = new Set(chosen.flatMap(({ file }) => (file === null ? [] : [file.path])))
  const spelt = new Set([...listed].flatMap((path) => path.split(/[^A-Za-z0-9_$]+/)))
  const names = chosen.flatMap(({ name }) => (name === null || spelt.has(name.name) ? [] : [name]))
  const symbols = new Map<string, string[]>([...listed, ''].map((path) => [path, []]))
  for (const { name, file } of names) symbols.get(file !== null && listed.has(file) ? file : '')?.push(name)
  const files = chosen.flatMap(({ file }) =>
    file === null ? [] : [{ ...file, symbols: symbols.get(file.path) ?? [] }],
  )
  const rest = symbols.get('') ?? []
  const lines = chosen.length === 0 ? [] : ledgerLines(files, rest)
  const text = lines.join('\n')
  return { files, names: rest, lines, text, tokens: text === '' ? 0 : rules.estimate.text(text) }
}

interface Candidate {
  readonly weight: number
  readonly spelt: string
  readonly file: WeighedFile | null
  readonly name: WeighedName | null
}

function fileCandidate(file: WeighedFile): Candidate {
  return { weight: file.weight, spelt: file.path, file, name: null }
}

function nameCandidate(name: WeighedName): Candidate {
  return { weight: name.weight, spelt: name.name, file: null, name }
}

/** Repeated, so that a rounded figure does not make short names look alike. */
function cost(spelt: string, { estimate }: LedgerRules): number {
  return estimate.text(` ${spelt}`.repeat(8))
}

function compare(one: Candidate, other: Candidate): number {
  return one.spelt < other.spelt ? -1 : 1
}

// How a ledger is spelt: one line a file, its symbols bare behind it. Paths stay whole: a name that has to be put
// together from two lines is found by nobody who searches, and can be handed to no tool as it stands.

interface LedgerFile {
  readonly path: string
  readonly edits: number
  readonly reads: number
  /** Identifiers last met in it. */
  readonly symbols: readonly string[]
}

function ledgerLines(files: readonly LedgerFile[], names: readonly string[]): readonly string[] {
  const body = files.filter((file) => !isBare(file)).map(lineFor)
  const also = [...files.filter(isBare).map(({ path }) => path), ...names]
  return [HEAD, ...body, ...(also.length === 0 ? [] : [`Also: ${also.join(' ')}`])]
}

const HEAD = 'In use (+n: edits)'

/** A file name of which nothing more is known: no line of its own. */
function isBare({ path, edits, symbols }: LedgerFile): boolean {
  return !path.includes('/') && edits === 0 && symbols.length === 0
}

function lineFor({ path, edits, symbols }: LedgerFile): string {
  const state = edits === 0 ? '' : ` +${edits}`
  return `${path}${state}${symbols.length === 0 ? '' : `: ${symbols.join(' ')}`}`
}

// How likely each name is to be needed next. In records of people's and programs' work the need for a thing falls
// as one over the time since it was met, and adds up over the times it was met; that is all the model there is. Its
// three constants lie on a wide plateau: half or twice of any moves the recall of recorded sessions by a few points.

/** What a tool gave back was met, but not yet used. */
const RESULT_WEIGHT = 0.5
/** A text with many names says less about each: weight goes by the fourth root of how many. */
const DILUTION = 0.25
/** Calls: what the newest two did is about equally near. */
const NEAR = 2

interface WeighedFile {
  readonly path: string
  readonly weight: number
  readonly edits: number
  readonly reads: number
}

interface WeighedName {
  readonly name: string
  readonly weight: number
  /** The file it was last met in, where that is known. */
  readonly file: string | null
  /** The record it was last met in. */
  readonly uuid: string
}

interface WeighedNames {
  readonly files: readonly WeighedFile[]
  readonly identifiers: readonly WeighedName[]
}

export function weighNames(mentions: readonly Mention[]): WeighedNames {
  const wholePath = wholePaths(mentions)
  const files = new Map<string, WeighedFile>()
  const identifiers = new Map<string, WeighedName>()
  for (const mention of mentions) {
    const share = shareOf(mention)
    const whole = mention.about === null ? null : wholePath(mention.about)
    const named = new Set([...mention.names.files, ...mention.touches.map(({ path }) => path)])
    for (const path of new Set([...named].map(wholePath))) enterFile(files, path, share)
    for (const touch of mention.touches) countTouch(files, wholePath(touch.path), touch)
    for (const name of mention.names.identifiers) {
      const before = identifiers.get(name)
      const weight = (before?.weight ?? 0) + share
      identifiers.set(name, { name, weight, file: whole ?? before?.file ?? null, uuid: mention.uuid })
    }
  }
  return { files: [...files.values()], identifiers: [...identifiers.values()] }
}

function shareOf({ by, age, names }: Mention): number {
  const count = Math.max(1, names.files.size + names.identifiers.size)
  return (by === 'result' ? RESULT_WEIGHT : 1) / (age + NEAR) / count ** DILUTION
}

function enterFile(files: Map<string, WeighedFile>, path: string, share: number): void {
  const before = files.get(path) ?? { path, weight: 0, edits: 0, reads: 0 }
  files.set(path, { ...before, weight: before.weight + share })
}

function countTouch(files: Map<string, WeighedFile>, path: string, { act }: FileTouch): void {
  const file = files.get(path)
  if (file === undefined) return
  const isRead = act === 'read'
  files.set(path, { ...file, edits: file.edits + (isRead ? 0 : 1), reads: file.reads + (isRead ? 1 : 0) })
}

type WholePath = (path: string) => string

/** A file is named in full, from a folder, or bare: all of them mean the newest full path that ends so. */
function wholePaths(mentions: readonly Mention[]): WholePath {
  const byBase = new Map<string, Set<string>>()
  for (const { names, touches } of mentions) {
    for (const path of [...names.files, ...touches.map((touch) => touch.path)]) {
      if (!path.startsWith('/')) continue
      const known = byBase.get(fileName(path)) ?? new Set()
      byBase.set(fileName(path), known.add(path))
    }
  }
  return (path) => {
    if (path.startsWith('/')) return path
    // Diffs put a letter in front of both sides.
    const tail = `/${path.replace(/^(?:(?:\.|[ab])\/)+/, '')}`
    return [...(byBase.get(fileName(path)) ?? [])].findLast((known) => known.endsWith(tail)) ?? path
  }
}
