/** The receipt of a compaction: what left, what is no longer said anywhere, and where it can be read. */
import type { CompactionPreview } from 'tidemark'
import { count } from '../figures.ts'
import { shown } from '../inspect/shown.ts'
import { heading } from '../layout.ts'
import type { Screen } from '../screen.ts'
import { cutEnd, left } from '../width.ts'

type Losses = CompactionPreview['receipt']['lost']
type Kind = 'files' | 'userMessages' | 'errors' | 'identifiers'

const KINDS: readonly (readonly [Kind, string, string])[] = [
  ['files', 'file', 'files'],
  ['userMessages', 'message of yours', 'messages of yours'],
  ['errors', 'error', 'errors'],
  ['identifiers', 'name', 'names'],
]

const MOST = 4
const NAME = 22

export function receiptLines({ receipt }: CompactionPreview, screen: Screen): readonly string[] {
  const { summarised, kept, carried, lost, retrievable } = receipt
  const lines = KINDS.flatMap((kind) => lossLine(kind, lost, screen))
  return [
    heading('Receipt', `${count(retrievable.length, 'record')} can be read again by id`, screen),
    `  summarised ${count(summarised.length, 'record')}, kept ${count(kept.length, 'record')}, brought back ${count(carried.length, 'thing')}`,
    ...(lines.length === 0
      ? ['  nothing that it should hold is lost']
      : ['  no longer said anywhere:', ...lines]),
  ]
}

function lossLine(
  [kind, one, many]: (typeof KINDS)[number],
  lost: Losses,
  screen: Screen,
): readonly string[] {
  const texts = lost[kind]
  const amount = texts.length + (kind === 'identifiers' ? lost.moreIdentifiers : 0)
  if (amount === 0) return []
  const named = texts.slice(0, MOST).map(({ text }) => cutEnd(shown(text), 40, screen.symbols.more))
  const rest = amount > named.length ? ` ${screen.symbols.more}` : ''
  const words = cutEnd(`${named.join(', ')}${rest}`, screen.columns - NAME - 4, screen.symbols.more)
  return [`    ${left(count(amount, one, many), NAME)}${screen.colors.dim(words)}`]
}
