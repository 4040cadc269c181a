/** Updates of the notes: when they are due, what the model may do, one at a time, and what a failure leaves. */
import {
  createFakeClock,
  createTestCompaction,
  type FakeClock,
  type FakeReply,
  runToEnd,
  SessionBuilder,
} from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { createScriptedHost, playTurn, text } from '../../test/engine/test-session.ts'
import type { TurnEvent } from '../engine/events.ts'
import type { CompactionServices, TurnHost } from '../engine/host.ts'
import type { NotesStore, StoredNotes } from '../engine/ports.ts'
import { readSessionState, type SessionState } from '../engine/session-state.ts'
import type { Block } from '../log/block.ts'
import { NOTES_SECTION_TEMPLATES, NOTES_TEMPLATE, parseNotes } from '../notes/notes-file.ts'
import type { BranchNotesKeeper } from '../notes/render-notes.ts'
import { createPolicy } from '../policy/create-policy.ts'
import { isNotesUpdateDue, updateNotesIfDue } from './update-notes.ts'

const PATH = '/notes/summary.md'
const OLD: StoredNotes = { text: NOTES_TEMPLATE, coveredUuid: null, writtenAt: 0, writtenBy: 'model' }
const LONG = 'abc '.repeat(12_000)

/** A store for one session, whose claim is as `claimNotes` of the port says. */
function createStore(clock: FakeClock, first: StoredNotes | null = null) {
  let [notes, claimedAt] = [first, null as number | null]
  const store: NotesStore = {
    read: async () => notes,
    write: async (_, next) => {
      notes = next
    },
    readOverrides: async () => ({}),
    path: () => PATH,
    claim: async (_, { now, deadAfterMs }) => {
      if (claimedAt !== null && now - claimedAt < deadAfterMs) return null
      claimedAt = now
      return {
        release: async () => {
          claimedAt = null
        },
      }
    },
    readClaim: async () => claimedAt,
  }
  return {
    store,
    read: () => notes,
    claimAgain(ms: number) {
      claimedAt = clock.now() - ms
    },
    readClaim: () => claimedAt,
  }
}

interface Made {
  readonly host: TurnHost
  readonly compaction: CompactionServices
  readonly state: SessionState
  readonly stored: ReturnType<typeof createStore>
  readonly asked: ReturnType<typeof createScriptedHost>['asked']
  readonly clock: FakeClock
}

/** A session with one long prompt and its answer; then the model gives `replies`. */
async function talk(
  replies: readonly FakeReply[],
  old: StoredNotes | null = null,
  changes: Partial<TurnHost> = {},
): Promise<Made> {
  const clock = createFakeClock()
  const stored = createStore(clock, old)
  const compaction = createTestCompaction({}, { notes: { store: stored.store, local: null } })
  const tools = ['Read', 'Edit', 'Write'].map((name) => ({ name, input_schema: { type: 'object' } }))
  const { host, asked } = createScriptedHost([{ blocks: [text('Yes.')] }, ...replies], {
    clock,
    compaction,
    pricesOf: () => ({ input: 10, cacheRead: 1, writeShort: 12.5, writeLong: 20, output: 50 }),
    readOfferedPrefix: () => ({ tools, model: 'model-a', parameters: { max_tokens: 100 } }),
    ...changes,
  })
  const { outcome } = await playTurn(await readSessionState(host.journal, 's'), { prompt: LONG }, host)
  return { host, compaction, state: outcome.state, stored, asked, clock }
}

async function update(made: Made, signal?: { aborted: boolean }) {
  const events: TurnEvent[] = []
  const turn = { state: made.state, host: { ...made.host, compaction: made.compaction }, signal }
  const end = await runToEnd(updateNotesIfDue(turn, made.state), (event) => void events.push(event))
  const find = <T extends TurnEvent['type']>(type: T) =>
    events.filter((event): event is Extract<TurnEvent, { type: T }> => event.type === type)
  return { end, events, find }
}

const call = (id: string, name: string, input: object): Block => ({ type: 'tool_use', id, name, input })
const edit = (id: string, old_string: string, new_string: string, file_path = PATH): Block =>
  call(id, 'Edit', { file_path, old_string, new_string })
const STATE_LINE = '_What is being worked on now, what is still open, what comes next._'
const goodEdit = edit('e1', STATE_LINE, `${STATE_LINE}\n\nMending the login.`)

describe('a model that updates the notes', () => {
  it('edits them with the session’s own tool, in memory: nothing is run, and only the cost is logged', async () => {
    const made = await talk([{ blocks: [goodEdit], stop: 'tools' }, { blocks: [text('Done.')] }])
    const { find } = await update(made)
    const notes = made.stored.read()
    expect(parseNotes(notes?.text ?? '')[1]?.body).toBe('Mending the login.')
    expect(notes).toMatchObject({
      writtenBy: 'model',
      coveredUuid: made.state.view.entries.last?.record.uuid,
    })
    expect(find('notes-updated')).toMatchObject([{ by: 'model', cost: { usage: { calls: 2 } } }])
    expect(find('notes-updated')[0]?.cost.dollars).toBeGreaterThan(0)
    expect(find('tool-started')).toEqual([])
    expect(made.stored.readClaim()).toBeNull()
    const kinds = find('appended').flatMap(({ records }) => records.map(({ type }) => type))
    expect(new Set(kinds)).toEqual(new Set(['system']))
    expect(made.asked.at(-1)?.payload.messages.at(-1)).toMatchObject({
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 'e1', content: 'The file was changed.' }],
    })
  })

  it('is shown the notes, the file and the limits, after the conversation as it was sent', async () => {
    const made = await talk([{ blocks: [text('<section name="Current state">\nNew.\n</section>')] }], OLD)
    await update(made)
    const [sent, prompt] = [made.asked[0]?.payload, made.asked[1]?.payload]
    expect(prompt?.messages.slice(0, 1).map(({ role }) => role)).toEqual(['user'])
    expect(prompt?.tools?.map(({ name }) => name)).toEqual(sent?.tools?.map(({ name }) => name))
    const last = JSON.stringify(prompt?.messages.at(-1))
    expect(last).toContain(PATH)
    expect(last).toContain('# Codebase and system documentation')
    expect(last).toContain('At most 2000 tokens a section and 15500 in all')
  })

  it('may answer with sections, or with the whole file', async () => {
    for (const answer of [
      '<section name="Current state">\nMending the login.\n</section>',
      `<notes>\n${NOTES_TEMPLATE.replace(STATE_LINE, `${STATE_LINE}\n\nMending the login.`)}</notes>`,
    ]) {
      const made = await talk([{ blocks: [text(answer)] }])
      await update(made)
      expect(parseNotes(made.stored.read()?.text ?? '')[1]?.body).toBe('Mending the login.')
    }
  })

  it('gets an error for anything else, which is shown, and can then do what it was asked', async () => {
    const others = [
      call('r1', 'Read', { file_path: PATH }),
      call('b1', 'Bash', { command: `echo x > ${PATH}` }),
      edit('x1', 'a', 'b', '/src/login.ts'),
      call('w1', 'Write', { file_path: `${PATH}.bak`, content: 'x' }),
    ]
    const made = await talk([
      { blocks: others, stop: 'tools' },
      { blocks: [goodEdit], stop: 'tools' },
      { blocks: [text('Done.')] },
    ])
    const { find } = await update(made)
    expect(find('notes-tool-refused').map((event) => event.call.id)).toEqual(['r1', 'b1', 'x1', 'w1'])
    const results = made.asked[2]?.payload.messages.at(-1)?.content as readonly Block[]
    expect(results.map(({ is_error }) => is_error)).toEqual([true, true, true, true])
    expect(made.stored.read()?.text).toContain('Mending the login.')
  })

  it('has at most five responses', async () => {
    const asks = Array.from({ length: 9 }, (_, at) => ({
      blocks: [call(`r${at}`, 'Read', { file_path: PATH })],
      stop: 'tools',
    }))
    const made = await talk(asks)
    const { find } = await update(made)
    expect(made.asked).toHaveLength(6)
    expect(find('notes-failed')).toMatchObject([{ reason: 'no-change' }])
  })

  it('writes no secrets down', async () => {
    const secret = 'sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOp'
    const made = await talk([
      { blocks: [text(`<section name="Learnings">\nThe key is ${secret}.\n</section>`)] },
    ])
    await update(made)
    expect(made.stored.read()?.text).toContain('[redacted]')
    expect(made.stored.read()?.text).not.toContain(secret)
  })

  it('is told to condense what is over its limit, and in strong words if all is too long', async () => {
    const body = (tokens: number): string => 'abc '.repeat(tokens).trim()
    const long = NOTES_TEMPLATE.replace(STATE_LINE, `${STATE_LINE}\n\n${body(3_000)}`)
    const made = await talk([{ blocks: [text('<section name="Current state">\nShort.\n</section>')] }], {
      ...OLD,
      text: long,
    })
    await update(made)
    const prompt = JSON.stringify(made.asked[1]?.payload.messages.at(-1))
    expect(prompt).toMatch(
      /The section \\"Current state\\" has \d+ tokens, and 2000 are allowed: condense it now/,
    )
    expect(prompt).not.toContain('THE FILE IS TOO LONG')
    const huge = await talk([{ blocks: [text('Done.')] }], {
      ...OLD,
      text: long.replace(STATE_LINE, body(20_000)),
    })
    await update(huge)
    expect(JSON.stringify(huge.asked[1]?.payload.messages.at(-1))).toContain('THE FILE IS TOO LONG')
  })
})

it('a template that the user has changed holds from the next update on, and no section of the notes is lost', async () => {
  const template = '# Current state\n_Now._\n\n# Customers\n_Who waits for what._\n'
  const written = NOTES_TEMPLATE.replace(STATE_LINE, `${STATE_LINE}\n\nAs it was.`)
  const old = { ...OLD, text: `${written}\nRead the log.\n` }
  const made = await talk([{ blocks: [text('<section name="Customers">\nAda.\n</section>')] }], old)
  const store = { ...made.stored.store, readOverrides: async () => ({ template }) }
  const compaction = { ...made.compaction, notes: { store, local: null } }
  const { find } = await update({ ...made, compaction })
  expect(find('notes-failed')).toEqual([])
  expect(parseNotes(made.stored.read()?.text ?? '')).toEqual([
    { heading: 'Current state', hint: 'Now.', body: 'As it was.' },
    { heading: 'Customers', hint: 'Who waits for what.', body: 'Ada.' },
    { ...NOTES_SECTION_TEMPLATES.worklog, body: 'Read the log.' },
  ])
})

const failures: readonly {
  readonly name: string
  readonly replies: readonly FakeReply[]
  readonly reason: string
}[] = [
  {
    name: 'that fails',
    replies: [{ blocks: [], failure: { kind: 'server', retryable: false, message: 'down' } }],
    reason: 'model-failed',
  },
  { name: 'that says nothing', replies: [{ blocks: [] }], reason: 'no-change' },
  { name: 'without tags', replies: [{ blocks: [text('I would rather not.')] }], reason: 'no-change' },
  {
    name: 'that was cut off',
    replies: [{ blocks: [text('<section name="Current state">\nNew.\n</section>')], stop: 'cut' }],
    reason: 'cut-off',
  },
  {
    name: 'that was cut off after an edit',
    replies: [
      { blocks: [goodEdit], stop: 'tools' },
      { blocks: [text('…')], stop: 'cut' },
    ],
    reason: 'cut-off',
  },
  {
    name: 'with an unknown section',
    replies: [{ blocks: [text('<section name="Poems">\nNew.\n</section>')] }],
    reason: 'bad-notes',
  },
  {
    name: 'that loses sections',
    replies: [{ blocks: [text('<notes>\n# Current state\n\nNew.\n</notes>')] }],
    reason: 'bad-notes',
  },
  {
    name: 'that empties the file',
    replies: [
      { blocks: [call('w', 'Write', { file_path: PATH, content: NOTES_TEMPLATE })], stop: 'tools' },
      { blocks: [text('Done.')] },
    ],
    reason: 'bad-notes',
  },
  {
    name: 'of absurd length',
    replies: [{ blocks: [text(`<section name="Worklog">\n${'abc '.repeat(40_000)}\n</section>`)] }],
    reason: 'bad-notes',
  },
]

describe('an answer', () => {
  const written = NOTES_TEMPLATE.replace(STATE_LINE, `${STATE_LINE}\n\nAs it was.`)
  it.each(failures)('$name leaves the old notes, and an event says so', async ({ replies, reason }) => {
    const made = await talk(replies, { ...OLD, text: written })
    const { find } = await update(made)
    expect(made.stored.read()?.text).toBe(written)
    expect(find('notes-failed')).toMatchObject([{ by: 'model', reason }])
    expect(find('notes-updated')).toEqual([])
    expect(made.stored.readClaim()).toBeNull()
  })

  it('that nobody waits for any more leaves the old notes, and the claim is released', async () => {
    const made = await talk([{ blocks: [text('<section name="Current state">\nNew.\n</section>')] }], {
      ...OLD,
      text: written,
    })
    const { find } = await update(made, { aborted: true })
    expect(made.stored.read()?.text).toBe(written)
    expect(find('notes-failed')).toMatchObject([{ reason: 'aborted' }])
    expect(made.stored.readClaim()).toBeNull()
  })
})

describe('notes kept from the log of a session that is being closed', () => {
  /** Work of a hundred slices, during each of which `ms` pass. */
  async function closeDuring(ms: number) {
    const made = await talk([])
    const local: BranchNotesKeeper = {
      *update() {
        for (let slice = 0; slice < 100; slice += 1) yield 100_000
        return { text: NOTES_TEMPLATE, coveredUuid: null }
      },
    }
    const compaction = createTestCompaction({}, { notes: { store: made.stored.store, local } })
    const host: TurnHost = { ...made.host, pause: async () => made.clock.advance(ms) }
    const { find } = await update({ ...made, compaction, host }, { aborted: true })
    return { made, find }
  }

  it('are finished if that takes a moment', async () => {
    const { find } = await closeDuring(10)
    expect(find('notes-updated')).toHaveLength(1)
  })

  it('are left as they were if it takes longer than two seconds, and the claim is released', async () => {
    const { made, find } = await closeDuring(100)
    expect(find('notes-failed')).toMatchObject([{ by: 'local', reason: 'aborted' }])
    expect([made.stored.read(), made.stored.readClaim()]).toEqual([null, null])
  })
})

describe('one update at a time', () => {
  const NEW: FakeReply = { blocks: [text('<section name="Current state">\nNew.\n</section>')] }

  it('while another runs, in whatever process, nothing is asked', async () => {
    const made = await talk([NEW])
    made.stored.claimAgain(59_999)
    const { events } = await update(made)
    expect([events, made.asked.length]).toEqual([[], 1])
  })

  it('a claim that a crash left behind is taken over after a minute; the old notes were intact meanwhile', async () => {
    const made = await talk([NEW], OLD)
    made.stored.claimAgain(60_000)
    expect(made.stored.read()).toEqual(OLD)
    await update(made)
    expect(made.stored.read()?.text).toContain('New.')
  })

  it('what another process has just covered is not asked for again', async () => {
    const made = await talk([NEW], { ...OLD })
    await made.stored.store.write('s', {
      ...OLD,
      coveredUuid: made.state.view.entries.last?.record.uuid ?? null,
    })
    await update(made)
    expect(made.asked).toHaveLength(1)
  })

  it('a store that fails ends the update with an event', async () => {
    const made = await talk([NEW])
    const store = { ...made.stored.store, write: async () => Promise.reject(new Error('disk full')) }
    const { find } = await update({
      ...made,
      compaction: { ...made.compaction, notes: { store, local: null } },
    })
    expect(find('notes-failed')).toMatchObject([{ reason: 'store', message: 'disk full' }])
    expect(made.stored.readClaim()).toBeNull()
  })
})

describe('an update is due', () => {
  /** A log of a prompt, then `calls` tool calls with results of `tokens` tokens each, then an answer if `isOver`. */
  async function log(calls: number, tokens: number, isOver: boolean) {
    const builder = new SessionBuilder('s')
    const prompt = builder.user('look')
    for (let at = 0; at < calls; at += 1) {
      builder.assistant(`m${at}`, [call(`c${at}`, 'Read', { file_path: `/${at}` })])
      if (at < calls - 1 || isOver) builder.result(`c${at}`, 'abc '.repeat(tokens))
    }
    if (isOver) builder.assistant('last', [text('Done.')])
    const { host } = createScriptedHost([])
    await host.journal.append('s', 0, builder.records)
    const state = await readSessionState(host.journal, 's')
    return (coveredUuid?: string | null, policy = createPolicy({})) =>
      isNotesUpdateDue(
        state,
        { ...host, policy, compaction: createTestCompaction({ policy }) },
        coveredUuid === undefined ? null : { coveredUuid: coveredUuid ?? prompt.uuid },
      )
  }

  it.each([
    { name: 'not for the first time below 10,000 tokens', calls: 4, tokens: 2_000, isOver: true, due: false },
    { name: 'for the first time from 10,000 tokens on', calls: 6, tokens: 2_500, isOver: true, due: true },
    {
      name: 'not with fewer than three tool calls in the middle of a turn',
      calls: 2,
      tokens: 20_000,
      isOver: false,
      due: false,
    },
    {
      name: 'with three tool calls in the middle of a turn',
      calls: 3,
      tokens: 20_000,
      isOver: false,
      due: true,
    },
    {
      name: 'after an answer without tool calls, however few there were',
      calls: 1,
      tokens: 20_000,
      isOver: true,
      due: true,
    },
  ])('$name', async ({ calls, tokens, isOver, due }) => {
    expect((await log(calls, tokens, isOver))()).toBe(due)
  })

  it('again after 5,000 tokens, not before', async () => {
    expect((await log(4, 2_000, true))(null)).toBe(true)
    expect((await log(4, 800, true))(null)).toBe(false)
  })

  it('by the figures of the policy', async () => {
    const policy = createPolicy({ notes: { growthTokens: 1_000, toolCalls: 9 } })
    expect((await log(4, 800, true))(null, policy)).toBe(true)
    expect((await log(4, 800, false))(null, policy)).toBe(false)
  })
})
