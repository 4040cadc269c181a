/**
 * Every place where a history names files and identifiers, with who named them and how long ago: what the ledger
 * weighs. A summary says nothing anew and is left out, unless what it summarised is not in the log.
 */
import { type Block, blocksOf, isText, isToolResult, isToolUse } from '../conversation/block.ts'
import { isSyntheticError, type KnownRecord } from '../conversation/record.ts'
import { typedText } from '../conversation/typed-text.ts'
import { type Names, namesIn } from './names.ts'
import { redact } from './redact.ts'
import { type FileTouch, kindOf, stringsIn, touchesOf } from './tool-kind.ts'
import { resultText } from './tool-run.ts'

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
  const touches = touchesOf(block.input, kindOf(block.input))
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
