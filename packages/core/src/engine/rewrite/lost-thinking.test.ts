import { Teller } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { createProfile } from '../../policy/strict-profile.ts'
import type { Span } from '../../summarize/span.ts'
import type { Entry } from '../../view/entry.ts'
import { type Keeping, thinkersIn, thinkingLost } from './lost-thinking.ts'

const BOUND = createProfile({ thinking: { binding: 'prefix' } })

function entries(...ids: readonly string[]): readonly Entry[] {
  const teller = new Teller('told')
  for (const id of ids) {
    if (id.startsWith('note')) teller.attachment({ type: 'todo', content: id }, { uuid: id })
    else
      teller.assistant(id, [
        { type: 'thinking', thinking: id, signature: 's' },
        { type: 'text', text: 'x' },
      ])
  }
  return teller.view.entries.toArray()
}

const span = (parts: Partial<Span>): Span => ({
  form: 'full',
  summarised: [],
  kept: [],
  pinned: [],
  unanswered: [],
  aside: [],
  input: [],
  unpinned: [],
  pivot: null,
  movedFrom: null,
  note: null,
  ...parts,
})

const keeping = (parts: Partial<Span>, more: Partial<Keeping> = {}): Keeping => ({
  span: span(parts),
  superseded: [],
  isBlock: false,
  late: [],
  ...more,
})

describe('thinking that a compaction makes invalid', () => {
  it.each<[string, Keeping, readonly string[]]>([
    ['all that stands behind a summary', keeping({ form: 'up_to', kept: entries('a', 'b') }), ['a', 'b']],
    ['nothing that stands in front of it', keeping({ form: 'from', kept: entries('a', 'b') }), []],
    [
      'nothing that follows a block directly',
      keeping({ form: 'up_to', kept: entries('a') }, { isBlock: true }),
      [],
    ],
    ['what is pinned', keeping({ form: 'from', kept: entries('a'), pinned: entries('p') }), ['p']],
    [
      'what stands behind something that is left out',
      keeping({ form: 'from', kept: entries('a', 'note', 'b') }, { superseded: ['note'] }),
      ['b'],
    ],
    ['what came meanwhile', keeping({}, { late: entries('late') }), ['late']],
  ])('%s', (_, kept, lost) => {
    expect(thinkingLost(kept, BOUND)).toEqual(lost)
    expect(thinkingLost(kept, createProfile({ thinking: { binding: 'model' } }))).toEqual([])
  })

  it('counts each response once, and none whose thinking is gone', () => {
    const [first] = entries('a')
    if (first === undefined) throw new Error('there is one')
    const cleared = { whole: false, thinking: true, results: [], inputs: [] }
    expect(thinkersIn([first, first, { ...first, cleared }])).toEqual(['a'])
    expect(thinkersIn([{ ...first, cleared }])).toEqual([])
  })
})
