/** Where Tidemark's own sessions say something. */
import {
  blocksOf,
  isKnown,
  isText,
  isToolResult,
  REDACTED,
  redact,
  type SessionRecord,
  typedText,
} from '@tidemark/core'
import { type OwnListing, overOwnSessions } from './own-sessions.ts'

export interface OwnMatch {
  readonly id: string
  readonly line: number
  readonly who: 'person' | 'model' | 'tool' | 'engine'
  /** What stands around it, without secrets. */
  readonly text: string
}

/** Whatever the case of its letters; once for each text that says it. */
export function findInOwnSessions(
  home: string,
  wanted: string,
  signal?: AbortSignal,
): Promise<OwnListing<OwnMatch>> {
  return overOwnSessions(home, signal, (id, { records }) =>
    records.flatMap(({ record, line }) =>
      saidIn(record)
        .filter(({ text }) => placeOf(text, wanted) !== -1)
        .map(({ who, text }) => ({ id, line, who, text: around(redact(text), wanted) })),
    ),
  )
}

type Said = Pick<OwnMatch, 'who' | 'text'>

function saidIn(record: SessionRecord): readonly Said[] {
  if (!isKnown(record) || (record.type !== 'user' && record.type !== 'assistant')) return []
  const speaker = record.type === 'assistant' ? 'model' : typedText(record) === null ? 'engine' : 'person'
  return blocksOf(record.message.content).flatMap((block): readonly Said[] => {
    if (isToolResult(block)) return [{ who: 'tool', text: resultText(block.content) }]
    return isText(block) ? [{ who: speaker, text: block.text }] : []
  })
}

function resultText(content: unknown): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((block) => (isText(block) ? block.text : '')).join('\n') : ''
}

function placeOf(text: string, wanted: string): number {
  return text.toLowerCase().indexOf(wanted.toLowerCase())
}

const AROUND = 60

/** What was looked for may itself be a secret. */
function around(text: string, wanted: string): string {
  const at = placeOf(text, wanted)
  if (at === -1) return REDACTED
  const [from, to] = [Math.max(0, at - AROUND), Math.min(text.length, at + wanted.length + AROUND)]
  const words = text.slice(from, to).replace(/\s+/g, ' ').trim()
  return `${from > 0 ? '…' : ''}${words}${to < text.length ? '…' : ''}`
}
