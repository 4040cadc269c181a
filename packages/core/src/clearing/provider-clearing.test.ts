import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import { Situation, text, warm } from '../../test/clear/situation.ts'
import {
  findAppliedClearing,
  type ProviderEditPlan,
  type ProviderEditsInput,
  planProviderEdits,
} from './provider-clearing.ts'

const NATIVE = defineMessagesProfile({
  thinking: { binding: 'prefix', firstInModes: [] },
  contextEdits: { clearThinking: 'clear_thinking_x', clearToolUses: 'clear_tool_uses_x' },
})
const MINUTE = 60_000

function edits(situation: Situation, overrides: Partial<ProviderEditsInput> = {}): ProviderEditPlan {
  return planProviderEdits({ ...situation.question({ profile: NATIVE, thinks: true }), ...overrides })
}

/** The provider has done as it was told. */
function applied(situation: Situation, sent: ProviderEditPlan, tokens: number, turns = 0): void {
  const said = { results: 1, thinkingTurns: turns, tokens }
  const done = findAppliedClearing(situation.question(), sent, said)
  if (done === null) throw new Error('nothing new was cleared')
  situation.clear(done.metadata)
}

describe('native', () => {
  it('asks for thinking first, then for results, in the figures of the policy', () => {
    const situation = new Situation()
    situation.reads(8, 10_000)
    situation.say()
    expect(edits(situation).edits).toEqual([
      { act: 'clear-thinking', keepTurns: 'all' },
      {
        act: 'clear-results',
        triggerTokens: 147_000,
        keep: 4,
        clearAtLeastTokens: 20_000,
        excludedTools: ['TodoWrite'],
        clearedInputs: ['Edit', 'Write'],
      },
    ])
    expect(edits(situation, { thinks: false }).edits.map(({ act }) => act)).toEqual(['clear-results'])
  })

  it('keeps as many newest results as fit in 40,000 tokens, never fewer than three, and asks for nothing if all fit', () => {
    const keep = (tokens: number): number | undefined => {
      const situation = new Situation()
      situation.reads(10, tokens)
      situation.say()
      return edits(situation).edits.flatMap((edit) => (edit.act === 'clear-results' ? [edit.keep] : []))[0]
    }
    expect([keep(30_000), keep(13_000), keep(8_000), keep(100)]).toEqual([3, 3, 5, undefined])
  })

  it('holds the cut at the same result until moving it is worth a rewrite', () => {
    const situation = new Situation()
    const all = [...situation.reads(8, 10_000)]
    situation.say()
    const sent = edits(situation)
    expect(sent.firstKeptCall).toBe(all[4])
    applied(situation, sent, 40_000)
    const kept: (number | undefined)[] = []
    for (let turn = 0; turn < 6; turn += 1) {
      situation.reads(1, 4_000)
      situation.say()
      const next = edits(situation)
      kept.push(next.edits.flatMap((edit) => (edit.act === 'clear-results' ? [edit.keep] : []))[0])
      if (next.firstKeptCall !== all[4]) break
    }
    // 4, and one more with each result, until 20,000 tokens could go.
    expect(kept).toEqual([5, 6, 7, 8, 7])
  })

  it('does not move it below the trigger, nor where it would not pay', () => {
    const situation = new Situation()
    const all = situation.reads(8, 10_000)
    situation.say()
    applied(situation, edits(situation), 40_000)
    situation.reads(6, 10_000)
    situation.say()
    const low = { context: { expected: 100_000, high: 100_000 } }
    const dear = { cache: warm({ countTokensToRewrite: () => 1_000_000 }) }
    // It pays after 12 calls, but a compaction follows after 8.
    const soon = { cache: warm({ countTokensToRewrite: () => 120_000 }), growthPerCall: 10_000 }
    expect([low, dear, soon].map((changes) => edits(situation, changes).firstKeptCall)).toEqual([
      all[4],
      all[4],
      all[4],
    ])
    expect(edits(situation, { ...soon, growthPerCall: 5_000 }).firstKeptCall).not.toBe(all[4])
    const needed = { ...dear, context: { expected: 167_000, high: 167_000 } }
    expect(edits(situation, needed).firstKeptCall).not.toBe(all[4])
  })

  it('is priced from the first thing that changes: the call, if its input is cleared with its result', () => {
    const priced = (tool: string): unknown => {
      const situation = new Situation()
      situation.call(tool, { file_path: '/a', old_string: 'a', new_string: 'b' }, text(30_000))
      situation.reads(5, 30_000)
      situation.say()
      const seen: unknown[] = []
      edits(situation, {
        cache: warm({
          countTokensToRewrite(change) {
            seen.push(change.part)
            return 0
          },
        }),
      })
      return seen[0]
    }
    expect([priced('Edit'), priced('Read')]).toEqual(['call', 'result'])
  })

  it('stops before what is pinned, what was not seen, and what an "unchanged" speaks of', () => {
    const situation = new Situation()
    const all = situation.reads(8, 30_000)
    situation.say()
    const third = situation.register.results.at(2)?.uuid ?? ''
    expect(edits(situation, { pins: [third] }).firstKeptCall).toBe(all[2])
    const spoken = new Situation()
    const [base] = [spoken.read('/a', 30_000), spoken.reads(5, 30_000)]
    spoken.call('Read', { file_path: '/a' }, 'File unchanged since last read.')
    spoken.say()
    expect(edits(spoken).firstKeptCall).toBe(base)
    const wide = new Situation()
    wide.reads(2, 30_000)
    const { builder } = wide
    const ids = Array.from({ length: 9 }, () => builder.id('call'))
    builder.assistant(
      'wide',
      ids.map((id) => ({ type: 'tool_use', id, name: 'Read', input: { file_path: id } })),
    )
    for (const id of ids) builder.result(id, text(30_000))
    expect(edits(wide).firstKeptCall).toBe(ids[0])
  })

  it('keeps the newest thinking alone after more than an hour, and holds that cut too', () => {
    const situation = new Situation()
    situation.reads(5, 10, { thinks: true })
    situation.say()
    const idle = edits(situation, { idleMs: 61 * MINUTE })
    expect(idle.edits[0]).toEqual({ act: 'clear-thinking', keepTurns: 1 })
    expect(edits(situation, { idleMs: 60 * MINUTE }).edits[0]).toEqual({
      act: 'clear-thinking',
      keepTurns: 'all',
    })
    applied(situation, idle, 4_000, 4)
    situation.reads(2, 10, { thinks: true })
    situation.say()
    expect(edits(situation).edits[0]).toEqual({ act: 'clear-thinking', keepTurns: 3 })
  })

  it('counts turns and not responses where a turn has several', () => {
    const situation = new Situation()
    const { builder } = situation
    const think = (turn: string): void => {
      for (const part of ['a', 'b'])
        builder.assistant(`${turn}-${part}`, [{ type: 'thinking', thinking: 'so', signature: 's' }])
      builder.user('go on')
    }
    for (const turn of ['one', 'two', 'three']) think(turn)
    const idle = edits(situation, { idleMs: 61 * MINUTE })
    const said = { results: 0, thinkingTurns: 2, tokens: 900 }
    const done = findAppliedClearing(situation.question(), idle, said)
    expect(done?.metadata.clearedThinking).toEqual(['one-a', 'one-b', 'two-a', 'two-b'])
    applied(situation, idle, 900, 2)
    think('four')
    expect(edits(situation).edits).toEqual([{ act: 'clear-thinking', keepTurns: 2 }])
  })

  it('holds the number of kept results until the provider has cleared, whatever is added', () => {
    const situation = new Situation()
    situation.reads(8, 10_000)
    situation.say()
    const lastEdits = edits(situation)
    situation.reads(2, 3_000)
    situation.say()
    expect(edits(situation).edits).not.toEqual(lastEdits.edits)
    expect(edits(situation, { lastEdits }).edits).toEqual(lastEdits.edits)
  })

  it('asks for no clearing while the trigger is far, nor where none may start', () => {
    const situation = new Situation()
    situation.reads(8, 10_000)
    situation.say()
    const far = { context: { expected: 140_000, high: 146_999 } }
    const acts = (overrides: Partial<ProviderEditsInput>) =>
      edits(situation, overrides).edits.map(({ act }) => act)
    expect([acts({}), acts(far), acts({ canStart: false })]).toEqual([
      ['clear-thinking', 'clear-results'],
      ['clear-thinking'],
      ['clear-thinking'],
    ])
  })

  it('tells each clearing once, with the tokens that came to it', () => {
    const situation = new Situation()
    const all = situation.reads(8, 10_000)
    situation.say()
    const sent = edits(situation)
    const said = { results: 4, thinkingTurns: 0, tokens: 39_000 }
    const done = findAppliedClearing(situation.question(), sent, said)
    expect(done?.metadata).toEqual({
      trigger: 'auto',
      way: 'native',
      preTokens: 189_000,
      tokensSaved: 39_000,
      compactedToolIds: all.slice(0, 4),
      clearedAttachmentUUIDs: [],
    })
    situation.clear(
      done?.metadata ?? {
        trigger: '',
        preTokens: 0,
        tokensSaved: 0,
        compactedToolIds: [],
        clearedAttachmentUUIDs: [],
      },
    )
    expect(findAppliedClearing(situation.question(), edits(situation), said)).toBeNull()
    expect(
      findAppliedClearing(situation.question(), sent, { results: 0, thinkingTurns: 0, tokens: 0 }),
    ).toBeNull()
  })
})
