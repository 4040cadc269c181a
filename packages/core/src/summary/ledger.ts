/**
 * Builds the ledger: a list of the files and code identifiers in use, which is added to a summary. Grouped by file,
 * most likely to be needed first, within a token budget. Rebuilt from the whole log at every compaction, so that
 * repeated compactions neither extend nor degrade it.
 */

import { type Block, isTextBlock, isToolResult, isToolUse, toBlocks } from '../log/block.ts'
import { isSyntheticError, type KnownRecord } from '../log/record.ts'
import {
  collectJsonStrings,
  describeToolCall,
  type FileTouch,
  readToolResultText,
} from '../log/tool-calls.ts'
import { readUserTypedText } from '../log/user-input.ts'
import type { Estimator } from '../tokens/estimator.ts'
import { formatLedger, type LedgerFileLine } from './ledger-text.ts'
import { redact, SECRET_CUES } from './redact.ts'

interface Ledger {
  readonly files: readonly LedgerFileLine[]
  /** Code identifiers that belong to none of the listed files. */
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
  const weights = new Map(identifiers.map(({ name, weight }) => [name, weight]))
  const candidates: readonly LedgerCandidate[] = [
    ...files.map((file) => {
      // A file such as `tide_table.ts` also names the identifier `tide_table`.
      const stem = weights.get(toFileName(file.path).replace(EXTENSION, '')) ?? 0
      return { weight: file.weight + stem, text: file.path, file, name: null }
    }),
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

/**
 * Writes the ledger with as many of the ranked names as fit into the token budget. Their number is found by binary
 * search, because more names almost always need more tokens.
 */
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

/**
 * A file or an identifier that may be listed in the ledger. `name` is null for a file, `file` is null for an
 * identifier.
 */
interface LedgerCandidate {
  readonly weight: number
  readonly text: string
  readonly file: FileWeight | null
  readonly name: IdentifierWeight | null
}

/** Estimates the tokens of a name. Repeats the name eight times, so that rounding does not make all short names cost the same. */
function measureName(name: string, { estimate }: LedgerBudget): number {
  return estimate.text(` ${name}`.repeat(8))
}

// A name's weight estimates how likely it is to be needed next: each mention adds about one divided by its age. Halving
// or doubling any of the three constants below changes recall on recorded sessions by only a few percentage points.

/** Weight factor of a name that occurs in a tool result: the model has seen it but not used it yet. */
const RESULT_WEIGHT = 0.5
/**
 * In a text with n names, a name that occurs k times has its weight multiplied by k / n to this power (the fifth root),
 * so that the names of a long file do not displace all others.
 */
const DILUTION_EXPONENT = 0.2
/** Added to the age of a mention, counted in model calls, so that the newest mentions weigh about the same. */
const NEAR_CALLS = 3

interface FileWeight {
  readonly path: string
  readonly weight: number
}

interface IdentifierWeight {
  readonly name: string
  readonly weight: number
  /** Path of the file in which the identifier was last seen; null if unknown. */
  readonly file: string | null
  /** uuid of the record in which the identifier was last seen. */
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
    for (const [name, times] of mention.names.identifiers) {
      const before = identifiers.get(name)
      const weight = (before?.weight ?? 0) + share * times ** DILUTION_EXPONENT
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
  files.set(path, { path, weight: (files.get(path)?.weight ?? 0) + share })
}

/**
 * Creates a function that resolves a relative path or bare file name to the newest absolute path with that ending, or
 * returns it unchanged.
 */
function createPathResolver(mentions: readonly Mention[]): (path: string) => string {
  const byBase = new Map<string, Set<string>>()
  for (const { names, touches } of mentions) {
    for (const path of [...names.files, ...touches.map((touch) => touch.path)]) {
      const absolute = toAbsolutePath(path)
      if (absolute === null) continue
      const known = byBase.get(toFileName(absolute)) ?? new Set()
      // The path becomes the newest of its name.
      known.delete(absolute)
      byBase.set(toFileName(absolute), known.add(absolute))
    }
  }
  return (path) => {
    const absolute = toAbsolutePath(path)
    if (absolute !== null) return absolute
    // Diffs prefix paths with `a/` or `b/`, which is not part of the path.
    const tail = `/${path.replace(/^(?:(?:\.|[ab])\/)+/, '')}`
    return [...(byBase.get(toFileName(path)) ?? [])].findLast((known) => known.endsWith(tail)) ?? path
  }
}

/** Returns an absolute path, with slashes also on Windows; null if the path is not absolute. */
function toAbsolutePath(path: string): string | null {
  if (path.startsWith('/')) return path
  return /^[A-Za-z]:[\\/]/.test(path) ? path.replaceAll('\\', '/') : null
}

// Search for the places where records mention files and identifiers. A summary only repeats earlier records, so it is
// skipped unless the earlier records are missing from the log.

interface Mention {
  /** `work`: the user or the model wrote the name. `result`: it occurs in a tool result. */
  readonly by: 'work' | 'result'
  /** Number of model calls after this mention. */
  readonly age: number
  readonly names: NamesInText
  /** Files that the tool call containing this mention read or changed. */
  readonly touches: readonly FileTouch[]
  /**
   * Path of the first file that the tool call read or changed; null if there is none. Identifiers in its result are
   * attributed to that file.
   */
  readonly about: string | null
  /** uuid of the record that contains the mention. */
  readonly uuid: string
}

type Sighting = Omit<Mention, 'age' | 'uuid'>

/**
 * Finds all mentions of files and identifiers, oldest first. Credentials are removed first, since part of a password
 * may look like an identifier.
 */
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

/**
 * Finds the mentions in one record. `touched`: the files of each tool call, by the id of the call; the tool calls of
 * this record are added to it.
 */
function findSightings(record: KnownRecord, touched: Map<string, readonly FileTouch[]>): readonly Sighting[] {
  if (record.type === 'assistant')
    return toBlocks(record.message.content).flatMap((block) => {
      if (isTextBlock(block)) return [createSighting('work', [block.text])]
      if (!isToolUse(block)) return []
      const { touches } = describeToolCall(block.name, block.input)
      touched.set(block.id, touches)
      return [createSighting('work', collectJsonStrings(block.input), touches)]
    })
  const typed = readUserTypedText(record)
  if (record.type !== 'user') return typed === null ? [] : [createSighting('work', [typed])]
  const results = toBlocks(record.message.content)
    .filter(isToolResult)
    .map((block) => {
      const about = touched.get(block.tool_use_id)?.[0]?.path ?? null
      return { ...createSighting('result', [readToolResultText(block.content)]), about }
    })
  if (typed !== null) return [...results, createSighting('work', [typed])]
  // Texts that a program added, such as the instructions of a skill.
  const added = toBlocks(record.message.content).filter(isTextBlock)
  return added.length === 0 ? results : [...results, createSighting('result', added.map(readBlockText))]
}

function readBlockText(block: Block): string {
  return isTextBlock(block) ? block.text : ''
}

function createSighting(
  by: Mention['by'],
  texts: readonly string[],
  touches: readonly FileTouch[] = [],
): Sighting {
  const names = findNames(redactLines(texts.join('\n')))
  return { by, names, touches, about: touches[0]?.path ?? null }
}

const SECRET_CUE = new RegExp(`${SECRET_CUES}|-----BEGIN`, 'i')

/**
 * Removes credentials from a text. For speed, checks only lines that match `SECRET_CUE`: except for private keys, every
 * credential is within one line.
 */
function redactLines(text: string): string {
  if (!SECRET_CUE.test(text)) return text
  if (text.includes('-----BEGIN')) return redact(text)
  return text
    .split('\n')
    .map((line) => (SECRET_CUE.test(line) ? redact(line) : line))
    .join('\n')
}

// Names are files, and identifiers in camelCase or snake_case.
// Plain words are not names, since they do not show which code is meant.

/** Matches runs of characters that occur in paths and identifiers. */
const NAME_CHUNKS = /[A-Za-z0-9_$@~./+-]{3,}/g
const WORD = /[A-Za-z_$][A-Za-z0-9_$]{2,}/g
const CAMEL_CASE = /[a-z0-9][A-Z]|[A-Z][A-Z][a-z]/
const SNAKE_CASE = /[A-Za-z0-9]_[A-Za-z0-9]/
const MAX_IDENTIFIER_CHARACTERS = 80
const MAX_PATH_CHARACTERS = 300
/** Matches text in which letters and digits alternate often: a hash, an id, a piece of base64. */
const RANDOM_TEXT = /(?:[0-9]+[A-Za-z]+){4,}|^[0-9a-f_]{16,}$/

/** Extensions by which a name without a folder counts as a file; otherwise it could be `object.field`. */
const FILE_EXTENSIONS = new Set(
  (
    'ts tsx mts cts js jsx mjs cjs json jsonl jsonc go mod sum work py pyi ipynb rs toml lock rb java kt kts scala c h cc cpp ' +
    'hpp cs fs swift php pl lua sh bash zsh fish ps1 sql md mdx rst txt csv tsv yaml yml xml html htm css scss less svg ' +
    'vue svelte astro proto graphql gql tf hcl nix zig dart ex exs erl hs ml cfg conf ini env log gz zip png jpg pdf'
  ).split(' '),
)
const EXTENSION = /\.([A-Za-z][A-Za-z0-9]{0,9})$/

interface NamesInText {
  /** File paths or bare file names, as written in the text. */
  readonly files: ReadonlySet<string>
  /** How often each identifier occurs in the text. */
  readonly identifiers: ReadonlyMap<string, number>
}

export function findNames(text: string): NamesInText {
  const files = new Set<string>()
  const identifiers = new Map<string, number>()
  for (const match of text.matchAll(NAME_CHUNKS)) {
    // In quoted code, `\nName` is a line break followed by a name. In a path on Windows, a backslash precedes a name.
    const isEscaped = text[match.index - 1] === '\\' && /^[nrt]/.test(match[0])
    const chunk = isEscaped ? match[0].slice(1) : match[0]
    const file = chunk.length <= MAX_PATH_CHARACTERS && chunk.includes('.') ? parseFilePath(chunk) : null
    if (file !== null) files.add(file)
    if (looksLikeIdentifier(chunk))
      for (const [word] of chunk.matchAll(WORD))
        if (isIdentifier(word)) identifiers.set(word, (identifiers.get(word) ?? 0) + 1)
  }
  return { files, identifiers }
}

function isIdentifier(word: string): boolean {
  return word.length <= MAX_IDENTIFIER_CHARACTERS && looksLikeIdentifier(word) && !RANDOM_TEXT.test(word)
}

/** Returns the part of a path after the last slash. */
export function toFileName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function looksLikeIdentifier(chunk: string): boolean {
  return CAMEL_CASE.test(chunk) || SNAKE_CASE.test(chunk)
}

/** Returns a piece of text as a file path without the punctuation that ends a sentence; null if it is not a file path. */
function parseFilePath(chunk: string): string | null {
  const path = chunk.replace(/[.+-]+$/, '')
  if (path.endsWith('/') || path.startsWith('//')) return null
  const base = toFileName(path)
  const ending = EXTENSION.exec(base)?.[1]
  if (ending === undefined || base.length <= ending.length + 1) return null
  const isKnownEnding = FILE_EXTENSIONS.has(ending)
  return isKnownEnding || (path.includes('/') && /^[a-z0-9]{1,5}$/.test(ending)) ? path : null
}
