/** A finished block taken apart again: the hollow form that opens it and the deltas that fill it. */
import {
  type Block,
  type BlockDelta,
  type BlockEnded,
  elementsOf,
  isBlock,
  type Json,
  type JsonObject,
  memberOf,
  membersOf,
  objectText,
  rawUnlessSurvives,
  readJson,
  withMember,
} from '@tidemark/core'
import { given } from '../given.ts'

/** Cuts a text into pieces that make it again when joined. */
export type Split = (text: string) => readonly string[]

export interface Opening {
  readonly block: Block
  readonly raw?: string
  readonly deltas: readonly BlockDelta[]
}

export function openingOf(ended: BlockEnded, split: Split): Opening {
  const { block } = ended
  if (block.type === 'text' && typeof block.text === 'string') return textOpening(ended, split)
  if (block.type === 'thinking' && typeof block.thinking === 'string') return thinkingOpening(ended, split)
  if (block.type.endsWith('tool_use') && block.input !== undefined) return callOpening(ended, split)
  if (block.type === 'compaction' && !block.signature) return compactionOpening(ended)
  return hollow(ended, {}, [])
}

function textOpening(ended: BlockEnded, split: Split): Opening {
  const { text, citations } = ended.block
  const pieces = piecesOf(text, split).map((piece): BlockDelta => ({ kind: 'text', text: piece }))
  if (!Array.isArray(citations) || citations.length === 0) return hollow(ended, { text: '' }, pieces)
  return hollow(ended, { text: '', citations: [] }, [...pieces, ...citationDeltas(ended)])
}

function citationDeltas({ block, raw }: BlockEnded): readonly BlockDelta[] {
  const text = (raw === undefined ? undefined : memberOf(raw, 'citations')) ?? JSON.stringify(block.citations)
  return elementsOf(text).map((each): BlockDelta => {
    return { kind: 'citation', citation: readJson(each) ?? null, ...given({ raw: rawUnlessSurvives(each) }) }
  })
}

/** Thinking whose text is withheld has a signature and nothing else to send. */
function thinkingOpening(ended: BlockEnded, split: Split): Opening {
  const { thinking, signature } = ended.block
  const pieces = piecesOf(thinking, split).map((text): BlockDelta => ({ kind: 'thinking', text }))
  if (typeof signature !== 'string') return hollow(ended, { thinking: '' }, pieces)
  return hollow(ended, { thinking: '', signature: '' }, [...pieces, { kind: 'signature', signature }])
}

/** The API's first piece of input is empty; an empty input gets no other. */
function callOpening(ended: BlockEnded, split: Split): Opening {
  const { block, raw, cutInput } = ended
  const exact = raw === undefined ? undefined : memberOf(raw, 'input')
  const text = cutInput ?? exact ?? JSON.stringify(block.input)
  const pieces = text === '{}' ? [] : piecesOf(text, split)
  const deltas = ['', ...pieces].map((json): BlockDelta => ({ kind: 'input', json }))
  return hollow(ended, { input: {} }, deltas)
}

const IN_COMPACTION_DELTA = new Set(['content', 'encrypted_content'])

/** The form that a threshold brings: one delta with all of it. A signed block comes whole. */
function compactionOpening(ended: BlockEnded): Opening {
  const fields: JsonObject = Object.fromEntries(
    Object.entries(ended.block).filter((entry): entry is [string, Json] => IN_COMPACTION_DELTA.has(entry[0])),
  )
  const empty = Object.fromEntries(Object.keys(fields).map((key) => [key, null]))
  return hollow(ended, empty, [{ kind: 'fields', fields }])
}

function piecesOf(text: unknown, split: Split): readonly string[] {
  return typeof text === 'string' && text !== '' ? split(text) : []
}

function hollow({ block, raw }: BlockEnded, fields: JsonObject, deltas: readonly BlockDelta[]): Opening {
  if (raw === undefined) return { block: { ...block, ...fields, type: block.type }, deltas }
  const members = Object.entries(fields).reduce(
    (all, [key, value]) => withMember(all, key, JSON.stringify(value)),
    membersOf(raw),
  )
  const text = objectText(members)
  const start = readJson(text)
  return { block: isBlock(start) ? start : block, ...given({ raw: rawUnlessSurvives(text) }), deltas }
}
