/** What holds for carriers whatever the state around them does, over many compactions. */

import { countPropertyRuns, SessionBuilder } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ContextEntry, formatAttachmentText } from '../../src/context/context-entry.ts'
import { flattenContext, listTracedMessages } from '../../src/context/flatten-context.ts'
import type { Attachment } from '../../src/log/record.ts'
import {
  agentsSource,
  hostSource,
  instructionsSource,
  planModeSource,
  planSource,
  skillsSource,
  todosSource,
} from '../../src/sources/builtin-sources.ts'
import {
  arrangeAttachmentsAroundSummary,
  collectSourceAttachments,
  dropOptionalAttachments,
  findLastCompactionAttachments,
} from '../../src/sources/collect-sources.ts'
import {
  type ContextSource,
  readAttachmentKey,
  type SourceAttachment,
} from '../../src/sources/context-source.ts'
import { filesSource } from '../../src/sources/file-source.ts'
import { addCall, compactWith, createCarryContext, Disk } from './carried-session.ts'

/** State that moves from round to round; every text says which version it is. */
interface World {
  readonly disk: Disk
  readonly carriers: readonly ContextSource[]
  truth: { todos: number; plan: number; agents: readonly string[]; planning: boolean; note: number }
}

function world(): World {
  const disk = new Disk()
  const self: World = {
    disk,
    truth: { todos: 0, plan: 0, agents: [], planning: false, note: 0 },
    carriers: [
      hostSource({ name: 'note', read: () => [{ text: `note ${self.truth.note}` }] }),
      filesSource({ reader: disk }),
      todosSource({
        read: () =>
          Array.from({ length: self.truth.todos }, (_, index) => ({
            content: `todo ${index}`,
            status: 'pending',
          })),
      }),
      planSource(() => ({ path: '/plan.md', text: `plan ${self.truth.plan}` })),
      planModeSource(() => self.truth.planning),
      instructionsSource(() => [{ path: '/CLAUDE.md', text: 'Canary: never push to main.\r\n\t✓' }]),
      agentsSource(() =>
        self.truth.agents.map((id) => ({ id, purpose: `work of ${id}`, status: 'running' as const })),
      ),
      skillsSource(() => [{ name: 'review', text: 'Review with care.' }]),
    ],
  }
  return self
}

const step = fc.record({
  touched: fc.array(fc.constantFrom('/a', '/b', '/c', '/d', '/e', '/f', '/g'), { maxLength: 3 }),
  todos: fc.nat(3),
  plan: fc.nat(2),
  agents: fc.subarray(['agent-1', 'agent-2', 'agent-3']),
  planning: fc.boolean(),
  note: fc.nat(1),
  keeps: fc.nat(8),
})

async function live(
  self: World,
  builder: SessionBuilder,
  now: typeof step extends fc.Arbitrary<infer T> ? T : never,
) {
  self.truth = now
  builder.user('go on')
  for (const path of now.touched) {
    self.disk.files.set(path, `content ${path} ${self.disk.reads.length}`)
    addCall(builder, 'Read', { file_path: path })
  }
  return now.keeps === 0
    ? []
    : [...builder.view.entries].filter(({ record }) => record.type === 'attachment').slice(-now.keeps)
}

function attachmentsIn(entries: Iterable<ContextEntry>): readonly Attachment[] {
  return [...entries].flatMap(({ record }) => (record.type === 'attachment' ? [record.attachment] : []))
}

describe('over twenty compactions', () => {
  it('there is one copy of each thing, equal to its source, whatever is kept', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 20, maxLength: 20 }),
        fc.boolean(),
        async (steps, carriersFirst) => {
          const self = world()
          const builder = new SessionBuilder()
          for (const now of steps) {
            const kept = await live(self, builder, now)
            await compactWith(builder, self.carriers, { kept, carriersFirst })
            const shown = attachmentsIn(builder.view.entries)
            const keys = shown.map((attachment) => readAttachmentKey(attachment))
            expect(keys).toEqual([...new Set(keys)])
            const text = (key: string): unknown => {
              const found = shown.find((attachment) => readAttachmentKey(attachment) === key)
              return found?.content ?? found?.planContent
            }
            expect(text('standing:/CLAUDE.md')).toBe('Canary: never push to main.\r\n\t✓')
            expect(text('plan:/plan.md')).toBe(`plan ${now.plan}`)
            expect(text('note:')).toBe(`note ${now.note}`)
            expect(text('todos:')).toBe(
              now.todos === 0
                ? undefined
                : Array.from({ length: now.todos }, (_, index) => `[pending] todo ${index}`).join('\n'),
            )
            expect(keys.includes('plan-mode:')).toBe(now.planning)
            expect(keys.filter((key) => key?.startsWith('agents:'))).toEqual(
              expect.arrayContaining(now.agents.map((id) => `agents:${id}`)),
            )
            expect(keys.filter((key) => key?.startsWith('agents:'))).toHaveLength(now.agents.length)
          }
        },
      ),
      { numRuns: 15 },
    )
  })

  it('the same state gives the same bytes in the same order', async () => {
    const self = world()
    self.truth = { todos: 2, plan: 1, agents: ['agent-1'], planning: true, note: 0 }
    const builder = new SessionBuilder()
    self.disk.files.set('/a', 'A')
    addCall(builder, 'Read', { file_path: '/a' })
    const first = (await compactWith(builder, self.carriers)).outcome.carried.map(({ attachment }) =>
      JSON.stringify(attachment),
    )
    for (let round = 0; round < 5; round += 1) {
      builder.user('go on')
      const { outcome } = await compactWith(builder, self.carriers.toReversed())
      expect(outcome.carried.map(({ attachment }) => JSON.stringify(attachment))).toEqual(first)
    }
  })
})

it('budgets are never exceeded, by one or by all', async () => {
  const sizes = fc.array(fc.nat(12_000), { maxLength: 12 })
  const budget = fc.record({ eachTokens: fc.integer({ min: 1, max: 2_000 }), totalTokens: fc.nat(5_000) })
  await fc.assert(
    fc.asyncProperty(sizes, budget, async (lengths, given) => {
      const builder = new SessionBuilder()
      const disk = new Disk()
      for (const [index, length] of lengths.entries()) {
        disk.files.set(`/f${index}`, 'word and\n'.repeat(length / 9))
        addCall(builder, 'Read', { file_path: `/f${index}` })
      }
      const carriers = [
        filesSource({ reader: disk }),
        skillsSource(() => lengths.map((length, index) => ({ name: `s${index}`, text: 'x'.repeat(length) }))),
        hostSource({
          name: 'host',
          mayCut: true,
          read: () => lengths.map((length, index) => ({ id: `h${index}`, text: 'é '.repeat(length) })),
        }),
      ]
      const rehydrate = { files: given, skills: given, host: given }
      const context = createCarryContext(builder, [], { rehydrate })
      const { carried } = await collectSourceAttachments(carriers, context)
      for (const kind of ['files', 'skills', 'host'] as const) {
        const own = carried.filter((one) => one.kind === kind)
        for (const { tokens, attachment } of own) {
          expect(tokens).toBe(context.measure(formatAttachmentText(attachment)))
          expect(tokens).toBeLessThanOrEqual(given.eachTokens)
        }
        expect(own.reduce((sum, { tokens }) => sum + tokens, 0)).toBeLessThanOrEqual(given.totalTokens)
      }
      expect(carried.filter(({ kind }) => kind === 'files').length).toBeLessThanOrEqual(10)
    }),
    { numRuns: countPropertyRuns(60, 12) },
  )
})

describe('shedding', () => {
  const carried = (
    key: string,
    tokens: number,
    sheddable: SourceAttachment['sheddable'],
  ): SourceAttachment => ({
    ...{ carrier: key, kind: 'host', key, attachment: { type: 'x' }, tokens, source: '', sheddable },
  })
  const list = [
    carried('standing', 50, null),
    carried('file new', 10, 'files'),
    carried('file old', 20, 'files'),
    carried('todos', 50, null),
    carried('skill new', 5, 'skills'),
    carried('skill mid', 6, 'skills'),
    carried('skill old', 7, 'skills'),
    carried('agent running', 9, null),
    carried('agent ended', 8, 'agents'),
  ]
  const { target } = createCarryContext(new SessionBuilder()).policy.compact

  it.each([
    [0, []],
    [1, ['skill old']],
    [8, ['skill old', 'skill mid']],
    [14, ['skill old', 'skill mid', 'file old']],
    [50, ['skill old', 'skill mid', 'file old', 'file new', 'agent ended']],
    [1_000, ['skill old', 'skill mid', 'file old', 'file new', 'agent ended']],
  ])('to free %d: %j', (overBy, keys) => {
    const kept = dropOptionalAttachments(list, overBy, target)
    expect(list.filter((one) => !kept.includes(one)).map(({ key }) => key)).toEqual(
      expect.arrayContaining(keys),
    )
    expect(list.length - kept.length).toBe(keys.length)
  })

  it('never touches what may not go, nor the newest skill, and loses nothing', () => {
    const one = fc.record({
      tokens: fc.nat(100),
      sheddable: fc.constantFrom(null, 'skills', 'files', 'agents'),
    })
    fc.assert(
      fc.property(
        fc.array(one),
        fc.nat(2_000),
        fc.nat(3),
        fc.shuffledSubarray([...target.shed]),
        (given, overBy, keptSkills, order) => {
          const all = given.map(({ tokens, sheddable }, index) =>
            carried(`c${index}`, tokens, sheddable as SourceAttachment['sheddable']),
          )
          const kept = dropOptionalAttachments(all, overBy, { ...target, keptSkills, shed: order })
          const gone = all.filter((each) => !kept.includes(each))
          const freedTokens = gone.reduce((sum, { tokens }) => sum + tokens, 0)
          const skills = all.filter(({ sheddable }) => sheddable === 'skills')
          expect(gone.filter(({ sheddable }) => sheddable === null || !order.includes(sheddable))).toEqual([])
          expect(skills.slice(0, keptSkills).filter((skill) => gone.includes(skill))).toEqual([])
          expect(kept).toEqual(all.filter((each) => !gone.includes(each)))
          // What went last is of the last kind that was touched, and the newest of it.
          const last = order
            .flatMap((kind) => gone.filter(({ sheddable }) => sheddable === kind).toReversed())
            .at(-1)
          if (last !== undefined) expect(freedTokens - last.tokens).toBeLessThan(overBy)
        },
      ),
    )
  })
})

describe('carriers in front', () => {
  function texts(builder: SessionBuilder): readonly string[] {
    const [first] = listTracedMessages(flattenContext(builder.view))
    const content = first?.message.content ?? ''
    return typeof content === 'string' ? [content] : content.map(({ text }) => String(text))
  }

  it('are those that did not change, in their former order, so that the request begins as before', async () => {
    const self = world()
    const builder = new SessionBuilder()
    self.truth = { todos: 1, plan: 1, agents: [], planning: false, note: 1 }
    const round = async (): Promise<readonly string[]> => {
      builder.user('go on')
      await compactWith(builder, self.carriers, { carriersFirst: true })
      return texts(builder)
    }
    await round()
    const second = await round()
    expect(second.indexOf('Summary: work.')).toBe(5)
    self.truth = { ...self.truth, note: 2 }
    const { carried } = await collectSourceAttachments(self.carriers, createCarryContext(builder))
    const arranged = arrangeAttachmentsAroundSummary(carried, findLastCompactionAttachments(builder.view))
    expect([arranged.front.map(({ key }) => key), arranged.behind.map(({ key }) => key)]).toEqual([
      ['standing:/CLAUDE.md', 'todos:', 'plan:/plan.md', 'skills:review'],
      ['note:'],
    ])
    const third = await round()
    expect(third.slice(0, 4)).toEqual(second.slice(0, 4))
    expect(third.indexOf('Summary: work.')).toBe(4)
    self.truth = { ...self.truth, todos: 2 }
    const fourth = await round()
    expect(fourth.slice(0, 1)).toEqual(third.slice(0, 1))
    expect(fourth[1]).not.toBe(third[1])
  })

  it('are none after the first compaction', () => {
    expect(
      arrangeAttachmentsAroundSummary([], findLastCompactionAttachments(new SessionBuilder().view)),
    ).toEqual({
      front: [],
      behind: [],
    })
  })
})
