import {
  continueSession,
  GeneratorChoices,
  generateSession,
  type SessionBuilder,
} from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isPrompt, type KnownRecord } from '../../src/log/record.ts'

const numbers = fc.array(fc.nat({ max: 0xffff }), { minLength: 20, maxLength: 160 })
const shown = (builder: SessionBuilder): readonly KnownRecord[] =>
  builder.view.entries.toArray().map((entry) => entry.record)

/** What was said. Attachments and notices beside the fork that led to nothing said stay where they are. */
const isSaid = (record: KnownRecord): boolean =>
  isPrompt(record) || record.type === 'assistant' || record.isCompactSummary === true

describe('a rewind', () => {
  it('gives back what was said there, whatever has been said, compacted and undone since', () => {
    let rewound = 0
    fc.assert(
      fc.property(numbers, numbers, (story, more) => {
        const { builder } = generateSession(new GeneratorChoices(story), { settled: true })
        const tip = builder.tip
        const before = shown(builder).filter(isSaid)
        continueSession(builder, new GeneratorChoices(more))
        builder.user('from there again', { uuid: 'again', parentUuid: tip })
        expect(
          shown(builder)
            .filter(isSaid)
            .map((record) => record.uuid),
        ).toEqual([...before.map((record) => record.uuid), 'again'])
        rewound += 1
      }),
      { numRuns: 150 },
    )
    expect(rewound).toBeGreaterThan(100)
  })
})
