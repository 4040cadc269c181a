/**
 * The ledger: which names the work is using, grouped by file, the likeliest to be needed first, within a budget.
 * Made anew from the whole history at every compaction, so it neither grows nor fades over rounds.
 */

import { type Block, blocksOf, isText, isToolResult, isToolUse } from '../log/block.ts'
import { isSyntheticError, type KnownRecord, typedText } from '../log/record.ts'
import { describeToolCall, type FileTouch, resultText, stringsIn } from '../log/tool-calls.ts'
import type { Estimator } from '../tokens/estimator.ts'
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

// Every place where a history names files and identifiers, with who named them and how long ago: what the ledger
// weighs. A summary says nothing anew and is left out, unless what it summarised is not in the log.

export interface Mention {
  /** Named by those who work, or met in what a tool gave back. */
  readonly by: 'work' | 'result'
  /** Calls to the model between this and the end of the history. */
  readonly age: number
  readonly names: Names
  /** What the call it belongs to did to which files. */
  readonly touches: readonly FileTouch[]
  /** The first file of the call: what a result without file names of its own is about. */
  readonly about: string | null
  /** The record it stands in. */
  readonly uuid: string
}

type Sighting = Omit<Mention, 'age'> & { readonly turn: number }

/** Secrets are out before a name is taken: part of a password may look like an identifier. */
export function mentionsOf(history: readonly KnownRecord[]): readonly Mention[] {
  const sightings: Sighting[] = []
  const touched = new Map<string, readonly FileTouch[]>()
  let turn = 0
  let response = ''
  for (const record of history) {
    if (isSyntheticError(record)) continue
    if (record.isCompactSummary === true) {
      if (sightings.length === 0) sightings.push({ ...summaryNames(record), turn, uuid: record.uuid })
      continue
    }
    if (record.type === 'assistant' && record.message.id !== response) {
      response = record.message.id
      turn += 1
    }
    for (const found of sightingsIn(record, touched)) sightings.push({ ...found, turn, uuid: record.uuid })
  }
  return sightings.map(({ turn: at, ...mention }) => ({ ...mention, age: turn - at }))
}

type Found = Omit<Mention, 'age' | 'uuid'>

function sightingsIn(record: KnownRecord, touched: Map<string, readonly FileTouch[]>): readonly Found[] {
  if (record.type === 'assistant')
    return blocksOf(record.message.content).flatMap((block) => saidIn(block, touched))
  if (record.type !== 'user') return []
  const typed = typedText(record)
  const results = blocksOf(record.message.content).flatMap((block) => resultIn(block, touched))
  return typed === null ? results : [...results, found('work', [typed], [])]
}

function saidIn(block: Block, touched: Map<string, readonly FileTouch[]>): readonly Found[] {
  if (isText(block)) return [found('work', [block.text], [])]
  if (!isToolUse(block)) return []
  const { touches } = describeToolCall(block.name, block.input)
  touched.set(block.id, touches)
  return [found('work', stringsIn(block.input), touches)]
}

function resultIn(block: Block, touched: ReadonlyMap<string, readonly FileTouch[]>): readonly Found[] {
  if (!isToolResult(block)) return []
  const about = touched.get(block.tool_use_id)?.[0]?.path ?? null
  return [{ ...found('result', [resultText(block.content)], []), about }]
}

function summaryNames(record: KnownRecord): Found {
  const content = record.type === 'user' ? record.message.content : ''
  return found(
    'result',
    [
      blocksOf(content)
        .map((block) => (isText(block) ? block.text : ''))
        .join('\n'),
    ],
    [],
  )
}

function found(by: Mention['by'], texts: readonly string[], touches: readonly FileTouch[]): Found {
  const names = namesIn(withoutSecrets(texts.join('\n')))
  return { by, names, touches, about: touches[0]?.path ?? null }
}

/** Before what is no secret by its own letters stands one of these. */
const CUE =
  /pass|pwd|secret|token|key|auth|bearer|cookie|credential|:\/\/|-----BEGIN|\b(?:curl|mysql|mariadb|sshpass|docker|podman|helm|mongo|redis-cli|openssl|7z)/i

/** Line by line, and only where a cue stands: all that the patterns look for, a private key aside, is on one line. */
function withoutSecrets(text: string): string {
  if (!CUE.test(text)) return text
  if (text.includes('-----BEGIN')) return redact(text)
  return text
    .split('\n')
    .map((line) => (CUE.test(line) ? redact(line) : line))
    .join('\n')
}

// Names in a text: files, and identifiers that look like ones (camelCase, snake_case). Plain words are left out:
// they say nothing about which code is meant.

/** Runs of characters that paths and identifiers are made of. */
const CHUNKS = /[A-Za-z0-9_$@~./+-]{3,}/g
const WORDS = /[A-Za-z_$][A-Za-z0-9_$]{2,}/g
const CAMEL = /[a-z0-9][A-Z]|[A-Z][A-Z][a-z]/
const SNAKE = /[A-Za-z0-9]_[A-Za-z0-9]/
const LONGEST = 80
const LONGEST_PATH = 300
/** Many changes between letters and digits: a hash, an id, a piece of base64. */
const RANDOM = /(?:[0-9]+[A-Za-z]+){4,}|^[0-9a-f_]{16,}$/

/** Without a folder before it, only a known ending tells a file from `object.field`. */
const ENDINGS = new Set(
  (
    'ts tsx mts cts js jsx mjs cjs json jsonl jsonc go mod sum work py pyi ipynb rs toml lock rb java kt kts scala c h cc cpp ' +
    'hpp cs fs swift php pl lua sh bash zsh fish ps1 sql md mdx rst txt csv tsv yaml yml xml html htm css scss less svg ' +
    'vue svelte astro proto graphql gql tf hcl nix zig dart ex exs erl hs ml cfg conf ini env log gz zip png jpg pdf'
  ).split(' '),
)
const ENDING = /\.([A-Za-z][A-Za-z0-9]{0,9})$/

interface Names {
  /** Paths of files as they stand in the text, or bare file names. */
  readonly files: ReadonlySet<string>
  readonly identifiers: ReadonlySet<string>
}

export function namesIn(text: string): Names {
  const files = new Set<string>()
  const identifiers = new Set<string>()
  for (const match of text.matchAll(CHUNKS)) {
    // In quoted code `\nName` is a line break and a name.
    const chunk = text[match.index - 1] === '\\' ? match[0].slice(1) : match[0]
    const file = chunk.length <= LONGEST_PATH && chunk.includes('.') ? fileIn(chunk) : null
    if (file !== null) files.add(file)
    if (isTelling(chunk))
      for (const [word] of chunk.matchAll(WORDS)) if (isIdentifier(word)) identifiers.add(word)
  }
  return { files, identifiers }
}

function isIdentifier(word: string): boolean {
  return word.length <= LONGEST && isTelling(word) && !RANDOM.test(word)
}

/** The last part of a path. */
export function fileName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function isTelling(chunk: string): boolean {
  return CAMEL.test(chunk) || SNAKE.test(chunk)
}

/** A path that ends in a file, without the dots and dashes that belong to the sentence around it. */
function fileIn(chunk: string): string | null {
  const path = chunk.replace(/[.+-]+$/, '')
  if (path.endsWith('/') || path.startsWith('//')) return null
  const base = fileName(path)
  const ending = ENDING.exec(base)?.[1]
  if (ending === undefined || base.length <= ending.length + 1) return null
  const isKnownEnding = ENDINGS.has(ending)
  return isKnownEnding || (path.includes('/') && /^[a-z0-9]{1,5}$/.test(ending)) ? path : null
}
