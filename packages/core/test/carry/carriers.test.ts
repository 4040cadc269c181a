/** What each carrier brings, word for word, and what happens where one fails. */
import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { formatAttachmentText } from '../../src/context/context-entry.ts'
import {
  agentsSource,
  hostSource,
  instructionsSource,
  planModeSource,
  planSource,
  skillsSource,
  todosSource,
  toHookAttachments,
} from '../../src/sources/builtin-sources.ts'
import { collectSourceAttachments, collectSourceUpdates } from '../../src/sources/collect-sources.ts'
import {
  type ContextSource,
  NO_SHOWN_ATTACHMENTS,
  updateShownAttachments,
} from '../../src/sources/context-source.ts'
import { addCall, createCarryContext, measure } from './carried-session.ts'

async function texts(carrier: ContextSource, builder = new SessionBuilder()): Promise<readonly string[]> {
  const { carried } = await collectSourceAttachments([carrier], createCarryContext(builder))
  return carried.map(({ attachment }) => formatAttachmentText(attachment))
}

const reminder = (...lines: readonly string[]): string =>
  ['<system-reminder>', ...lines, '</system-reminder>'].join('\n')

describe('todos', () => {
  const todos = [
    { content: 'write  tests', status: 'in_progress' },
    { content: 'ship', status: 'pending' },
  ]

  it('come whole from the last list that was written', async () => {
    const builder = new SessionBuilder()
    addCall(builder, 'TodoWrite', { todos: [{ content: 'old', status: 'pending' }] })
    const id = addCall(builder, 'TodoWrite', { todos })
    addCall(builder, 'TodoWrite', { todos: [] }, { isError: true })
    const { carried } = await collectSourceAttachments([todosSource()], createCarryContext(builder))
    expect(carried).toEqual([
      {
        carrier: 'todos',
        kind: 'todos',
        key: 'todos:',
        attachment: {
          type: 'todo',
          content: '[in_progress] write  tests\n[pending] ship',
          itemCount: 2,
          context: 'post-compact',
          key: 'todos:',
        },
        tokens: 36,
        source: id,
        sheddable: null,
      },
    ])
  })

  it('come from the host where it has them, and not at all when empty', async () => {
    const heading = 'The todo list, as it stood when the conversation was compacted.'
    expect(await texts(todosSource({ read: () => todos.slice(1) }))).toEqual([
      reminder(heading, '[pending] ship'),
    ])
    expect(await texts(todosSource({ read: () => [] }))).toEqual([])
    const builder = new SessionBuilder()
    addCall(builder, 'TodoWrite', { todos })
    addCall(builder, 'TodoWrite', { todos: [] })
    expect(await texts(todosSource(), builder)).toEqual([])
  })

  it('are not said again while the call that wrote them is kept', async () => {
    const builder = new SessionBuilder()
    const id = addCall(builder, 'TodoWrite', { todos })
    const kept = [...builder.view.entries]
    const { carried, skipped } = await collectSourceAttachments(
      [todosSource()],
      createCarryContext(builder, kept),
    )
    expect([carried, skipped]).toEqual([
      [],
      [{ carrier: 'todos', key: 'todos:', why: `the call ${id} is among the kept messages` }],
    ])
  })
})

describe('what a person set', () => {
  it.each<[string, ContextSource, readonly string[]]>([
    [
      'the plan',
      planSource(() => ({ path: '/p.md', text: '# Plan\n\n1. x\n' })),
      ['The plan of this session. File: /p.md', '# Plan\n\n1. x\n'],
    ],
    [
      'standing instructions',
      instructionsSource(() => [{ path: '/CLAUDE.md', text: 'Be brief.\t\n' }]),
      ['Standing instructions for this folder. File: /CLAUDE.md', 'Be brief.\t\n'],
    ],
    [
      'plan mode in the host’s words',
      planModeSource(() => 'Do not edit.'),
      ['Plan mode is on.', 'Do not edit.'],
    ],
    [
      'state of the host',
      hostSource({ name: 'deploy', read: () => [{ text: 'staging is at 1.2' }] }),
      ['Attached: deploy.', 'staging is at 1.2'],
    ],
  ])('%s', async (_, carrier, lines) => {
    expect(await texts(carrier)).toEqual([reminder(...lines)])
  })

  it('adds nothing where there is none', async () => {
    const none = [planSource(() => null), instructionsSource(() => []), planModeSource(() => false)]
    expect(await collectSourceAttachments(none, createCarryContext(new SessionBuilder()))).toEqual({
      ...{ carried: [], superseded: [], skipped: [], failed: [] },
    })
  })
})

describe('agents in the background', () => {
  it('are listed while they run or wait to be collected', async () => {
    const carrier = agentsSource(() => [
      { id: 'agent-1', purpose: 'review the diff', status: 'running', output: '/out/1' },
      { id: 'agent-2', purpose: 'run the tests', status: 'finished' },
      { id: 'agent-3', purpose: 'look around', status: 'failed', isCollected: true },
    ])
    expect(await texts(carrier)).toEqual([
      reminder(
        'An agent is working in the background. Do not start it again.',
        'agent-1 (running): review the diff\nOutput: /out/1',
      ),
      reminder(
        'An agent in the background has ended, and its result was not collected. Do not start it again.',
        'agent-2 (finished): run the tests',
      ),
    ])
    const { carried } = await collectSourceAttachments([carrier], createCarryContext(new SessionBuilder()))
    expect(carried.map(({ sheddable }) => sheddable)).toEqual([null, 'agents'])
  })

  it('are listed after that too, if they can be asked again', async () => {
    const agent = { purpose: 'look around', isCollected: true, isAskable: true } as const
    const carrier = agentsSource(() => [
      { id: 'agent-1', status: 'finished', ...agent },
      { id: 'agent-2', status: 'running', ...agent },
    ])
    expect(await texts(carrier)).toEqual([
      reminder(
        'An agent has ended, and its result was given in the conversation.',
        'agent-1 (finished): look around',
      ),
      reminder(
        'An agent is working in the background. Do not start it again.',
        'agent-2 (running): look around',
      ),
    ])
  })
})

describe('skills', () => {
  it('come newest first, cut with a note, within what all may take', async () => {
    const skill = (name: string, length: number) => ({ name, path: `/s/${name}`, text: 'x'.repeat(length) })
    const carrier = skillsSource(() => [skill('one', 4_000), skill('two', 1_200), skill('three', 100)])
    const skills = { eachTokens: 500, totalTokens: 700 }
    const { carried, skipped } = await collectSourceAttachments(
      [carrier],
      createCarryContext(new SessionBuilder(), [], { rehydrate: { skills } }),
    )
    expect(carried.map(({ key }) => key)).toEqual(['skills:one', 'skills:three'])
    expect(carried[0]?.attachment.content).toMatch(
      /^x+\n\[cut: 1\d\d\d of 4000 characters are shown; read \/s\/one again for the full text\]$/,
    )
    expect(skipped.map(({ key }) => key)).toEqual(['skills:two'])
  })
})

describe('a carrier', () => {
  it('that fails is reported and harms no other', async () => {
    const broken = hostSource({ name: 'broken', read: () => Promise.reject(new Error('no network')) })
    const { carried, failed } = await collectSourceAttachments(
      [broken, planModeSource(() => true)],
      createCarryContext(new SessionBuilder()),
    )
    expect([carried.map(({ key }) => key), failed]).toEqual([
      ['plan-mode:'],
      [{ carrier: 'broken', why: 'no network' }],
    ])
  })

  it('of the host keeps within its budget: cut where it may be, else left out and told', async () => {
    const text = 'y'.repeat(80_000)
    const free = hostSource({ name: 'cut', mayCut: true, read: () => [{ text }] })
    const strict = hostSource({ name: 'strict', read: () => [{ text }] })
    const { carried, skipped } = await collectSourceAttachments(
      [free, strict],
      createCarryContext(new SessionBuilder()),
    )
    expect(carried.map(({ carrier }) => carrier)).toEqual(['cut'])
    expect(carried[0]?.tokens).toBeLessThanOrEqual(5_000)
    expect(skipped).toEqual([
      { carrier: 'strict', key: 'strict:', why: 'takes 20014 tokens, and one may take 5000' },
    ])
  })

  it('has a name of its own, without a colon', async () => {
    const named = (name: string): ContextSource => hostSource({ name, read: () => [] })
    for (const names of [['a', 'a'], ['a:b'], ['']])
      await expect(carryAll(names.map(named))).rejects.toMatchObject({ code: 'bad-option' })
  })

  it('can be switched off by its kind', async () => {
    const rehydrate = { todos: false, plan: false, planMode: false, agents: false }
    const carriers = [
      todosSource({ read: () => [{ content: 'x', status: 'pending' }] }),
      planSource(() => ({ path: 'p', text: 'x' })),
      planModeSource(() => true),
      agentsSource(() => [{ id: 'a', purpose: 'x', status: 'running' }]),
    ]
    expect(
      (await collectSourceAttachments(carriers, createCarryContext(new SessionBuilder(), [], { rehydrate })))
        .carried,
    ).toEqual([])
  })
})

async function carryAll(carriers: readonly ContextSource[]): Promise<unknown> {
  return collectSourceAttachments(carriers, createCarryContext(new SessionBuilder()))
}

describe('between compactions', () => {
  it('a change is told, what did not change adds nothing, and an end is told once', async () => {
    const builder = new SessionBuilder()
    let mode: string | null = 'ask'
    let planning = true
    const carriers = [
      hostSource({ name: 'mode', read: () => (mode === null ? [] : [{ text: mode }]) }),
      planModeSource(() => (planning ? 'Plan.' : false)),
    ]
    let shown = NO_SHOWN_ATTACHMENTS
    const turn = async (): Promise<readonly string[]> => {
      shown = updateShownAttachments(shown, builder.view.entries)
      const { carried } = await collectSourceUpdates(carriers, { ...createCarryContext(builder), shown })
      for (const { attachment } of carried) builder.attachment(attachment)
      return carried.map(({ attachment }) =>
        formatAttachmentText(attachment).split('\n').slice(1, -1).join(' / '),
      )
    }
    expect(await turn()).toEqual(['Plan mode is on. / Plan.', 'Attached: mode. / ask'])
    expect(await turn()).toEqual([])
    mode = 'auto'
    expect(await turn()).toEqual(['Attached: mode. This replaces what was said of it before. / auto'])
    expect(await turn()).toEqual([])
    planning = false
    expect(await turn()).toEqual(['No longer in force: Plan mode is on.'])
    expect(await turn()).toEqual([])
    planning = true
    expect(await turn()).toEqual(['Plan mode is on. This replaces what was said of it before. / Plan.'])
    expect(await turn()).toEqual([])
  })

  it('a carrier that fails ends nothing', async () => {
    const builder = new SessionBuilder()
    builder.attachment({ type: 'plan_mode', content: 'Plan.', key: 'plan-mode:' })
    const shown = updateShownAttachments(NO_SHOWN_ATTACHMENTS, builder.view.entries)
    const broken = planModeSource(() => Promise.reject(new Error('gone')))
    expect(await collectSourceUpdates([broken], { ...createCarryContext(builder), shown })).toEqual({
      ...{ carried: [], skipped: [], failed: [{ carrier: 'plan-mode', why: 'gone' }] },
    })
  })
})

describe('what kept messages show', () => {
  it('is left out where it is the same, and named where it is out of date or over', async () => {
    const builder = new SessionBuilder()
    const plan = { type: 'plan_file_reference', planFilePath: '/p', planContent: 'v1' }
    const old = builder.attachment({ ...plan, key: 'plan:/p' })
    const again = builder.attachment({ ...plan, planContent: 'v2', update: true, key: 'plan:/p' })
    const mode = builder.attachment({ type: 'plan_mode', content: 'x' })
    const kept = [...builder.view.entries]
    const carriers = (text: string) => [planSource(() => ({ path: '/p', text })), planModeSource(() => false)]
    const same = await collectSourceAttachments(carriers('v2'), createCarryContext(builder, kept))
    expect([same.carried, same.superseded]).toEqual([[], [old.uuid, mode.uuid]])
    const other = await collectSourceAttachments(carriers('v3'), createCarryContext(builder, kept))
    expect([other.carried.length, other.superseded]).toEqual([1, [old.uuid, again.uuid, mode.uuid]])
  })
})

it('hooks add what they say, bounded, and nothing where they say nothing', () => {
  const { budgets } = createCarryContext(new SessionBuilder())
  const carried = toHookAttachments(
    [
      { hook: 'start', text: 'x'.repeat(20_000) },
      { hook: 'quiet', text: ' \n' },
    ],
    { budgets, measure },
  )
  expect(carried.map(({ key, attachment }) => [key, String(attachment.content).length])).toEqual([
    ['hooks:start', 10_043],
  ])
})
