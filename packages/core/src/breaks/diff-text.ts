/** What changed, as text a person can open: bounded, and without secrets. Made only when somebody asks for it. */
import { factOf } from './fact.ts'
import { type Place, textAt } from './parting.ts'
import type { Difference } from './reason.ts'
import type { SentPiece, SentRequest } from './sent.ts'

export interface DiffQuestion {
  readonly before: SentRequest
  readonly after: SentRequest
  readonly differences: readonly Difference[]
  readonly parting: Place | null
}

/** Takes secrets out of a text. */
export type Redact = (text: string) => string

const MOST_CHARACTERS = 20_000
const MOST_OF_A_SIDE = 2_000
const CONTEXT = 80

export function diffText(question: DiffQuestion, redact: Redact): string {
  const parts = question.differences.map((difference) => {
    const sides = sidesOf(difference, question).flatMap(([before, after]) =>
      shown(redact(before), redact(after)),
    )
    return [`@@ ${redact(factOf(difference))} @@`, ...sides].join('\n')
  })
  const text = parts.length === 0 ? 'Nothing in the request changed.' : parts.join('\n\n')
  return text.length <= MOST_CHARACTERS ? `${text}\n` : `${text.slice(0, MOST_CHARACTERS)}\n… cut here\n`
}

type Sides = readonly [before: string, after: string]

/** The texts that differ; none where the fact says it all. */
function sidesOf(difference: Difference, question: DiffQuestion): readonly Sides[] {
  const { before, after } = question
  switch (difference.kind) {
    case 'tool-changed':
      return [[pieceText(before.tools, difference.name), pieceText(after.tools, difference.name)]]
    case 'section-changed':
      return [[pieceText(before.system, difference.name), pieceText(after.system, difference.name)]]
    case 'tools-added':
    case 'tools-removed':
      return difference.names.map((name) => [pieceText(before.tools, name), pieceText(after.tools, name)])
    case 'sections-added':
    case 'sections-removed':
      return difference.names.map((name) => [pieceText(before.system, name), pieceText(after.system, name)])
    case 'message-changed':
    case 'message-removed':
    case 'message-inserted':
      return [messageSides(question)]
    default:
      return plainSides(difference)
  }
}

function plainSides(difference: Difference): readonly Sides[] {
  return 'before' in difference ? [[difference.before ?? '', difference.after ?? '']] : []
}

function pieceText(pieces: readonly SentPiece[], name: string): string {
  return pieces.find((piece) => piece.name === name)?.text ?? ''
}

/** The block where the requests part, as it was and as it is. */
function messageSides({ before, after, parting }: DiffQuestion): Sides {
  if (parting === null) return ['', '']
  return [textAt(before.messages, parting), textAt(after.messages, parting)]
}

/** The lines of both sides around the first thing that differs. */
function shown(before: string, after: string): readonly string[] {
  if (before === after) return before === '' ? [] : ['  (the same but for what is redacted)']
  const from = Math.max(0, commonLength(before, after) - CONTEXT)
  return [...sideLines('-', before, from), ...sideLines('+', after, from)]
}

function commonLength(one: string, other: string): number {
  let length = 0
  while (length < one.length && one[length] === other[length]) length += 1
  return length
}

function sideLines(sign: '-' | '+', text: string, from: number): readonly string[] {
  if (text === '') return []
  const piece = text.slice(from, from + MOST_OF_A_SIDE)
  const whole = `${from > 0 ? '…' : ''}${piece}${from + MOST_OF_A_SIDE < text.length ? '…' : ''}`
  return whole.split('\n').map((line) => `${sign} ${line}`)
}
