/** A block once its last delta is in: the parsed value, and its exact text where the value would not say the same. */
import type { Block, BlockEnded, OpenBlock } from '@tidemark/core'
import {
  arrayText,
  elementsOf,
  type Member,
  memberOf,
  membersOf,
  objectText,
  rawUnlessSurvives,
  readJson,
  survives,
  withMember,
} from '@tidemark/core'
import { given } from '../given.ts'

export function finishBlock(open: OpenBlock): BlockEnded {
  const { index } = open
  const hasInput = open.input.trim() !== ''
  const input = hasInput ? readJson(open.input) : undefined
  const block = input === undefined ? open.block : { ...open.block, input }
  const raw = rawOf(open, block, input === undefined ? undefined : open.input)
  return {
    type: 'block-ended',
    index,
    block,
    ...given({ raw, cutInput: hasInput && input === undefined ? open.input : undefined }),
  }
}

function rawOf(open: OpenBlock, block: Block, input: string | undefined): string | undefined {
  const plain = open.raw === undefined && open.citations.every(survives)
  if (plain && (input === undefined || survives(input))) return undefined
  let members = open.raw === undefined ? spelled(block) : grown(membersOf(open.raw), block)
  if (input !== undefined) members = withMember(members, 'input', input)
  if (open.citations.length > 0) members = withMember(members, 'citations', citationsText(open))
  return rawUnlessSurvives(objectText(members))
}

function spelled(block: Block): readonly Member[] {
  return membersOf(JSON.stringify(block))
}

/** The members as first announced, those that deltas changed or added spelled anew. */
function grown(members: readonly Member[], block: Block): readonly Member[] {
  return spelled(block).reduce((all, { key, text }) => {
    const before = all.findLast((member) => member.key === key)
    const same = before !== undefined && JSON.stringify(readJson(before.text)) === text
    return same ? all : withMember(all, key, text)
  }, members)
}

function citationsText(open: OpenBlock): string {
  const announced = open.raw === undefined ? undefined : memberOf(open.raw, 'citations')
  const first = announced?.startsWith('[') ? elementsOf(announced) : announcedCitations(open)
  return arrayText([...first, ...open.citations])
}

function announcedCitations({ block, citations }: OpenBlock): readonly string[] {
  const all = Array.isArray(block.citations) ? block.citations : []
  return all.slice(0, all.length - citations.length).map((each) => JSON.stringify(each))
}
