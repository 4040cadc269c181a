/**
 * The ledger: files and identifiers the work is using, grouped by file, the most likely to be needed first, within a
 * budget. Rebuilt from the whole history at every compaction, so it neither grows nor decays over rounds.
 */

import { type Block, isText, isToolResult, isToolUse, toBlocks } from '../log/block.ts'
import { isSyntheticError, type KnownRecord, readTypedText } from '../log/record.ts'
import { collectStrings, describeToolCall, type FileTouch, readResultText } from '../log/tool-calls.ts'
import type { Estimator } from '../tokens/estimator.ts'
import { redact } from './redact.ts'

interface Ledger {
  readonly files: readonly LedgerFileLine[]
  /** Identifiers that belong to none of the listed files. */
  readonly names: readonly string[]
  readonly lines: readonly string[]
  readonly text: string
  readonly tokens: number
}

interface LedgerBudget {
  readonly tokens: number
  readonly estimate: Estimator
}

export function buildLedger(history: readonly KnownRecord[], rules: LedgerBudget): Ledger {
  const { files, identifiers } = weighNames(findMentions(history))
  const candidates: readonly LedgerCandidate[] = [
    ...files.map((file) => ({ weight: file.weight, text: file.path, file, name: null })),
    ...identifiers.map((name) => ({ weight: name.weight, text: name.name, file: null, name })),
  ]
  const ranked = candidates
    .map((candidate) => ({ candidate, density: candidate.weight / measureName(candidate.text, rules) }))
    .toSorted(
      (one, other) => other.density - one.density || (one.candidate.text < other.candidate.text ? -1 : 1),
    )
    .map(({ candidate }) => candidate)
    .slice(0, rules.tokens)
    .filter(({ text }) => redact(text) === text)
  return fitLedger(ranked, rules)
}

/** As many of the ranked candidates as fit, found by binary search: one more never shortens the text by much. */
function fitLedger(ranked: readonly LedgerCandidate[], rules: LedgerBudget): Ledger {
  let fits = 0
  let most = ranked.length + 1
  while (most - fits > 1) {
    const tried = Math.floor((fits + most) / 2)
    if (renderLedger(ranked.slice(0, tried), rules).tokens <= rules.tokens) fits = tried
    else most = tried
  }
  return renderLedger(ranked.slice(0, fits), rules)
}

function renderLedger(chosen: readonly LedgerCandidate[], rules: LedgerBudget): Ledger {
  const listed = new Set(chosen.flatMap(({ file }) => (file === null ? [] : [file.path])))
  const pathWords = new Set([...listed].flatMap((path) => path.split(/[^A-Za-z0-9_$]+/)))
  const names = chosen.flatMap(({ name }) => (name === null || pathWords.has(name.name) ? [] : [name]))
  const symbols = new Map<string, string[]>([...listed, ''].map((path) => [path, []]))
  for (const { name, file } of names) symbols.get(file !== null && listed.has(file) ? file : '')?.push(name)
  const files = chosen.flatMap(({ file }) =>
    file === null ? [] : [{ ...file, symbols: symbols.get(file.path) ?? [] }],
  )
  const rest = symbols.get('') ?? []
  const lines = chosen.length === 0 ? [] : formatLedger(files, rest)
  const text = lines.join('\n')
  return { files, names: rest, lines, text, tokens: text === '' ? 0 : rules.estimate.text(text) }
}

/** A file or an identifier; the other is null. */
interface LedgerCandidate {
  readonly weight: number
  readonly text: string
  readonly file: FileWeight | null
  readonly name: IdentifierWeight | null
}

/** Repeated eight times, so that rounding does not make all short names cost the same. */
function measureName(name: string, { estimate }: LedgerBudget): number {
  return estimate.text(` ${name}`.repeat(8))
}

// The text of a ledger: one line a file, followed by its identifiers. Paths stay whole, so that they can be searched
// for and handed to a tool as they are.

interface LedgerFileLine {
  readonly path: string
  readonly edits: number
  readonly reads: number
  /** Identifiers last seen in it. */
  readonly symbols: readonly string[]
}

function formatLedger(files: readonly LedgerFileLine[], names: readonly string[]): readonly string[] {
  const body = files.filter((file) => !isBareName(file)).map(formatFileLine)
  const also = [...files.filter(isBareName).map(({ path }) => path), ...names]
  return [LEDGER_HEADING, ...body, ...(also.length === 0 ? [] : [`Also: ${also.join(' ')}`])]
}

const LEDGER_HEADING = 'In use (+n: edits)'

/** A bare file name about which nothing else is known gets no line of its own. */
function isBareName({ path, edits, symbols }: LedgerFileLine): boolean {
  return !path.includes('/') && edits === 0 && symbols.length === 0
}

function formatFileLine({ path, edits, symbols }: LedgerFileLine): string {
  const state = edits === 0 ? '' : ` +${edits}`
  return `${path}${state}${symbols.length === 0 ? '' : `: ${symbols.join(' ')}`}`
}

// How likely each name is to be needed next: each mention weighs one over its age, and mentions add up. The three
// constants are not critical: half or twice of any changes the recall on recorded sessions by a few points.

/** A name in a tool result was seen, but not yet used. */
const RESULT_WEIGHT = 0.5
/** A text with many names says less about each: its weight is divided by the fourth root of their number. */
const DILUTION_EXPONENT = 0.25
/** In calls: the newest two count about equally. */
const NEAR_CALLS = 2

interface FileWeight {
  readonly path: string
  readonly weight: number
  readonly edits: number
  readonly reads: number
}

interface IdentifierWeight {
  readonly name: string
  readonly weight: number
  /** The file it was last seen in, if known. */
  readonly file: string | null
  /** The record it was last seen in. */
  readonly uuid: string
}

export function weighNames(mentions: readonly Mention[]): {
  readonly files: readonly FileWeight[]
  readonly identifiers: readonly IdentifierWeight[]
} {
  const wholePath = createPathResolver(mentions)
  const files = new Map<string, FileWeight>()
  const identifiers = new Map<string, IdentifierWeight>()
  for (const mention of mentions) {
    const share = mentionWeight(mention)
    const whole = mention.about === null ? null : wholePath(mention.about)
    const named = new Set([...mention.names.files, ...mention.touches.map(({ path }) => path)])
    for (const path of new Set([...named].map(wholePath))) addFileWeight(files, path, share)
    for (const touch of mention.touches) countTouch(files, wholePath(touch.path), touch)
    for (const name of mention.names.identifiers) {
      const before = identifiers.get(name)
      const weight = (before?.weight ?? 0) + share
      identifiers.set(name, { name, weight, file: whole ?? before?.file ?? null, uuid: mention.uuid })
    }
  }
  return { files: [...files.values()], identifiers: [...identifiers.values()] }
}

function mentionWeight({ by, age, names }: Mention): number {
  const count = Math.max(1, names.files.size + names.identifiers.size)
  return (by === 'result' ? RESULT_WEIGHT : 1) / (age + NEAR_CALLS) / count ** DILUTION_EXPONENT
}

function addFileWeight(files: Map<string, FileWeight>, path: string, share: number): void {
  const before = files.get(path) ?? { path, weight: 0, edits: 0, reads: 0 }
  files.set(path, { ...before, weight: before.weight + share })
}

function countTouch(files: Map<string, FileWeight>, path: string, { action }: FileTouch): void {
  const file = files.get(path)
  if (file === undefined) return
  const isRead = action === 'read'
  files.set(path, { ...file, edits: file.edits + (isRead ? 0 : 1), reads: file.reads + (isRead ? 1 : 0) })
}

/** A file may be named in full, relative to a folder, or bare: each means the newest full path with that ending. */
function createPathResolver(mentions: readonly Mention[]): (path: string) => string {
  const byBase = new Map<string, Set<string>>()
  for (const { names, touches } of mentions) {
    for (const path of [...names.files, ...touches.map((touch) => touch.path)]) {
      if (!path.startsWith('/')) continue
      const known = byBase.get(toFileName(path)) ?? new Set()
      byBase.set(toFileName(path), known.add(path))
    }
  }
  return (path) => {
    if (path.startsWith('/')) return path
    // Diffs prefix both sides with a letter.
    const tail = `/${path.replace(/^(?:(?:\.|[ab])\/)+/, '')}`
    return [...(byBase.get(toFileName(path)) ?? [])].findLast((known) => known.endsWith(tail)) ?? path
  }
}

// Where a history names files and identifiers. A summary only repeats earlier records and is left out, unless those
// records are not in the log.

interface Mention {
  /** Named by the user or the model, or found in a tool result. */
  readonly by: 'work' | 'result'
  /** Model calls between this and the end of the history. */
  readonly age: number
  readonly names: NamesInText
  /** The files its tool call acted on. */
  readonly touches: readonly FileTouch[]
  /** The first file of its tool call: identifiers of the result are attributed to it. */
  readonly about: string | null
  /** The record that contains it. */
  readonly uuid: string
}

type Sighting = Omit<Mention, 'age' | 'uuid'>

/** Credentials are removed before names are read: part of a password may look like an identifier. */
export function findMentions(history: readonly KnownRecord[]): readonly Mention[] {
  const sightings: (Sighting & { readonly turn: number; readonly uuid: string })[] = []
  const touched = new Map<string, readonly FileTouch[]>()
  let turn = 0
  let response = ''
  for (const record of history) {
    if (isSyntheticError(record)) continue
    if (record.isCompactSummary === true) {
      const texts = record.type === 'user' ? toBlocks(record.message.content).map(readBlockText) : []
      if (sightings.length === 0)
        sightings.push({ ...createSighting('result', texts), turn, uuid: record.uuid })
      continue
    }
    if (record.type === 'assistant' && record.message.id !== response) {
      response = record.message.id
      turn += 1
    }
    for (const seen of findSightings(record, touched)) sightings.push({ ...seen, turn, uuid: record.uuid })
  }
  return sightings.map(({ turn: at, ...mention }) => ({ ...mention, age: turn - at }))
}

/** `touched`: files by tool call id, filled in as calls are met. */
function findSightings(record: KnownRecord, touched: Map<string, readonly FileTouch[]>): readonly Sighting[] {
  if (record.type === 'assistant')
    return toBlocks(record.message.content).flatMap((block) => {
      if (isText(block)) return [createSighting('work', [block.text])]
      if (!isToolUse(block)) return []
      const { touches } = describeToolCall(block.name, block.input)
      touched.set(block.id, touches)
      return [createSighting('work', collectStrings(block.input), touches)]
    })
  if (record.type !== 'user') return []
  const typed = readTypedText(record)
  const results = toBlocks(record.message.content)
    .filter(isToolResult)
    .map((block) => {
      const about = touched.get(block.tool_use_id)?.[0]?.path ?? null
      return { ...createSighting('result', [readResultText(block.content)]), about }
    })
  return typed === null ? results : [...results, createSighting('work', [typed])]
}

function readBlockText(block: Block): string {
  return isText(block) ? block.text : ''
}

function createSighting(
  by: Mention['by'],
  texts: readonly string[],
  touches: readonly FileTouch[] = [],
): Sighting {
  const names = findNames(redactLines(texts.join('\n')))
  return { by, names, touches, about: touches[0]?.path ?? null }
}

/** Precedes every credential that is not recognisable by its own prefix. */
const SECRET_CUE =
  /pass|pwd|secret|token|key|auth|bearer|cookie|credential|:\/\/|-----BEGIN|\b(?:curl|mysql|mariadb|sshpass|docker|podman|helm|mongo|redis-cli|openssl|7z)/i

/** Redacts only lines with a cue, for speed: except for private keys, every pattern matches within one line. */
function redactLines(text: string): string {
  if (!SECRET_CUE.test(text)) return text
  if (text.includes('-----BEGIN')) return redact(text)
  return text
    .split('\n')
    .map((line) => (SECRET_CUE.test(line) ? redact(line) : line))
    .join('\n')
}

// Names in a text: files, and identifiers in camelCase or snake_case. Plain words are left out, since they do not
// show which code is meant.

/** Runs of the characters of paths and identifiers. */
const NAME_CHUNKS = /[A-Za-z0-9_$@~./+-]{3,}/g
const WORD = /[A-Za-z_$][A-Za-z0-9_$]{2,}/g
const CAMEL_CASE = /[a-z0-9][A-Z]|[A-Z][A-Z][a-z]/
const SNAKE_CASE = /[A-Za-z0-9]_[A-Za-z0-9]/
const MAX_IDENTIFIER_CHARACTERS = 80
const MAX_PATH_CHARACTERS = 300
/** Letters and digits alternate often: a hash, an id, a piece of base64. */
const RANDOM_TEXT = /(?:[0-9]+[A-Za-z]+){4,}|^[0-9a-f_]{16,}$/

/** A name without a folder is a file only with a known extension; otherwise it may be `object.field`. */
const FILE_EXTENSIONS = new Set(
  (
    'ts tsx mts cts js jsx mjs cjs json jsonl jsonc go mod sum work py pyi ipynb rs toml lock rb java kt kts scala c h cc cpp ' +
    'hpp cs fs swift php pl lua sh bash zsh fish ps1 sql md mdx rst txt csv tsv yaml yml xml html htm css scss less svg ' +
    'vue svelte astro proto graphql gql tf hcl nix zig dart ex exs erl hs ml cfg conf ini env log gz zip png jpg pdf'
  ).split(' '),
)
const EXTENSION = /\.([A-Za-z][A-Za-z0-9]{0,9})$/

interface NamesInText {
  /** Paths as written in the text, or bare file names. */
  readonly files: ReadonlySet<string>
  readonly identifiers: ReadonlySet<string>
}

export function findNames(text: string): NamesInText {
  const files = new Set<string>()
  const identifiers = new Set<string>()
  for (const match of text.matchAll(NAME_CHUNKS)) {
    // In quoted code `\nName` is a line break followed by a name.
    const chunk = text[match.index - 1] === '\\' ? match[0].slice(1) : match[0]
    const file = chunk.length <= MAX_PATH_CHARACTERS && chunk.includes('.') ? parseFilePath(chunk) : null
    if (file !== null) files.add(file)
    if (looksLikeIdentifier(chunk))
      for (const [word] of chunk.matchAll(WORD)) if (isIdentifier(word)) identifiers.add(word)
  }
  return { files, identifiers }
}

function isIdentifier(word: string): boolean {
  return word.length <= MAX_IDENTIFIER_CHARACTERS && looksLikeIdentifier(word) && !RANDOM_TEXT.test(word)
}

/** The last part of a path. */
export function toFileName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function looksLikeIdentifier(chunk: string): boolean {
  return CAMEL_CASE.test(chunk) || SNAKE_CASE.test(chunk)
}

/** The chunk as a path to a file, without trailing punctuation of the sentence; null if it is none. */
function parseFilePath(chunk: string): string | null {
  const path = chunk.replace(/[.+-]+$/, '')
  if (path.endsWith('/') || path.startsWith('//')) return null
  const base = toFileName(path)
  const ending = EXTENSION.exec(base)?.[1]
  if (ending === undefined || base.length <= ending.length + 1) return null
  const isKnownEnding = FILE_EXTENSIONS.has(ending)
  return isKnownEnding || (path.includes('/') && /^[a-z0-9]{1,5}$/.test(ending)) ? path : null
}
