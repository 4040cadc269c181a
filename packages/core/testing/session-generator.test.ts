import { flattenContext } from '@tidemark/core/context/flatten-context'
import { isServerToolUse, isThinkingBlock, isToolUse, toBlocks } from '@tidemark/core/log/block'
import type { AssistantRecord, SessionRecord, SystemRecord, UserRecord } from '@tidemark/core/log/record'
import { createChoices, generateSession, listRepairs } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'

/** What a session holds, by name. */
function featuresOf(seed: number): readonly string[] {
  const { records, builder } = generateSession(createChoices(seed, 200))
  const repairs = listRepairs(flattenContext(builder.view)).map((repair) => `repair ${repair.kind}`)
  const rewound = builder.session.branch.length < records.filter((record) => record.uuid !== undefined).length
  return [...records.flatMap(inRecord), ...repairs, ...(rewound ? ['off the branch'] : [])]
}

function inRecord(record: SessionRecord): readonly string[] {
  const metadata = (record as SystemRecord).compactMetadata
  const kept =
    metadata?.preservedMessages === undefined
      ? []
      : [metadata.preservedMessages.anchorUuid.startsWith('boundary') ? 'kept in front' : 'kept behind']
  const unanswered = metadata?.unansweredMessages === undefined ? [] : ['unanswered']
  const blocks =
    record.type === 'user' || record.type === 'assistant'
      ? toBlocks((record as UserRecord | AssistantRecord).message.content)
      : []
  const kinds = blocks.map((block) =>
    isToolUse(block)
      ? 'call'
      : isThinkingBlock(block)
        ? 'thinking'
        : isServerToolUse(block)
          ? 'server call'
          : block.type,
  )
  return [
    record.type,
    ...((record as SystemRecord).subtype !== undefined ? [(record as SystemRecord).subtype as string] : []),
    ...kept,
    ...unanswered,
    ...kinds,
    ...(record.isSidechain ? ['side chain'] : []),
  ]
}

describe('generated sessions', () => {
  it('hold everything a session can hold, often', () => {
    const counts = new Map<string, number>()
    for (let seed = 0; seed < 300; seed += 1) {
      for (const feature of new Set(featuresOf(seed))) counts.set(feature, (counts.get(feature) ?? 0) + 1)
    }
    const wanted = [
      ...[
        'call',
        'thinking',
        'server call',
        'image',
        'document',
        'hologram',
        'tool_result',
        'attachment',
        'progress',
        'side chain',
      ],
      ...[
        'compact_boundary',
        'microcompact_boundary',
        'compact_undone',
        'clear_undone',
        'pin',
        'epoch',
        'delta',
      ],
      ...[
        'kept in front',
        'kept behind',
        'unanswered',
        'off the branch',
        'something-new',
        'file-history-snapshot',
      ],
      ...[
        'repair missing-result',
        'repair late-result',
        'repair duplicate-result',
        'repair duplicate-call',
        'repair orphan-result',
        'repair blank-text',
      ],
    ]
    expect(wanted.filter((feature) => (counts.get(feature) ?? 0) < 5)).toEqual([])
  })

  it('are the same for the same choices', () => {
    expect(generateSession(createChoices(7, 150)).records).toEqual(
      generateSession(createChoices(7, 150)).records,
    )
  })
})
