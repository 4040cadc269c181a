/**
 * Every place where a history names files and identifiers, with who named them and how long ago: what the ledger
 * weighs. A summary says nothing anew and is left out, unless what it summarised is not in the log.
 */
import { type Block, blocksOf, isText, isToolResult, isToolUse } from '../log/block.ts'
import { isSyntheticError, type KnownRecord, typedText } from '../log/record.ts'
import { describeToolCall, type FileTouch, resultText, stringsIn } from '../log/tool-calls.ts'
import { redact } from './redact.ts'

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
