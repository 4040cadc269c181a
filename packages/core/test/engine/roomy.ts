/** A session with room around it: a log to open, a summary by script, carriers, and what became of it all. */
import { createFakeClock, createFakeJournal, type SessionBuilder } from '@tidemark/core/testing'
import { NOWHERE } from '../../src/clearing/placeholder.ts'
import { registerRules } from '../../src/clearing/tool-result-index.ts'
import {
  type Carrier,
  type Committed,
  type CompactAsked,
  compact,
  createPolicy,
  createProfile,
  type Deadlines,
  type DeepPartial,
  type Journal,
  openSession,
  type Policy,
  type Profile,
  type Room,
  type SessionRecord,
  type SessionState,
  type Signal,
  scalePolicy,
  type TurnEvent,
  type TurnHost,
  type TurnRun,
  type Undone,
  undoAct,
} from '../../src/index.ts'
import { ESTIMATOR } from '../clear/situation.ts'
import { type Scene, type Spoken, scene } from './spoken-model.ts'

/** Work that does not end by itself is over as soon as everything else has been done. */
export const deadlines: Deadlines = {
  within: async (_, work, signal) => {
    if (signal?.aborted === true) return { ok: false, why: 'aborted' }
    const inner = { aborted: false }
    const late = new Promise<'late'>((resolve) => setTimeout(() => resolve('late')))
    const done = work(inner).then((value) => ({ value }))
    done.catch(() => {})
    const end = await Promise.race([done, late])
    inner.aborted = true
    if (end !== 'late') return { ok: true, value: end.value }
    return { ok: false, why: isAborted(signal) ? 'aborted' : 'timeout' }
  },
}

function isAborted(signal: Signal | undefined): boolean {
  return signal?.aborted === true
}

/** What a present-day provider takes. */
export const LENIENT: Profile = createProfile({
  roles: { consecutive: 'merged', prefill: 'allowed', system: 'placed' },
  thinking: { closing: 'not-at-end', firstInModes: [], binding: 'none' },
})

/** The same where thinking is bound to all that comes before it. */
export const BOUND: Profile = createProfile({
  roles: { consecutive: 'merged', prefill: 'allowed', system: 'placed' },
  thinking: { closing: 'not-at-end', firstInModes: [], binding: 'prefix' },
})

export interface RoomyOptions {
  readonly policy?: DeepPartial<Policy>
  readonly profile?: Profile
  readonly window?: number
  readonly room?: Partial<Room>
  readonly host?: Partial<TurnHost>
  readonly replies?: readonly Spoken[]
  /** Summaries are asked of the model. */
  readonly byChain?: boolean
}

export interface Roomy extends Scene {
  readonly room: Room
  readonly run: TurnRun
  readonly events: TurnEvent[]
}

const OWN = ['Read', 'Bash', 'Edit', 'Write', 'TodoWrite'].map((name) => ({
  name,
  input_schema: { type: 'object' },
}))

/** What is offered: all that generated sessions call. */
export const TOOLS = [...OWN, { type: 'search_1', name: 'web_search' }]

/** `records`: what is in the log before. */
export async function roomy(records: readonly SessionRecord[], options: RoomyOptions = {}): Promise<Roomy> {
  const policy = createPolicy(options.policy ?? {})
  const room = roomOf(policy, options)
  const { host, asked } = scene(
    options.replies ?? [],
    {
      policy,
      profile: options.profile ?? LENIENT,
      clock: createFakeClock(Date.UTC(2026, 5, 1)),
      room,
      offered: () => ({ tools: TOOLS, model: 'model-a', parameters: { max_tokens: 100 } }),
      ...options.host,
    },
    journalOf(records),
  )
  const state = await openSession(host.journal, SESSION)
  return { host, asked, room, run: { state, host, signal: undefined }, events: [] }
}

export const SESSION = 'told'

export function journalOf(records: readonly SessionRecord[]): Journal {
  const lines = records.map((record) => JSON.stringify(record))
  return createFakeJournal(new Map([[SESSION, { lines, holder: null }]]))
}

function roomOf(policy: Policy, { room, window = 200_000, byChain = false }: RoomyOptions): Room {
  return {
    estimator: ESTIMATOR,
    scaled: scalePolicy(policy, { window, maxOutput: Math.min(64_000, Math.floor(window / 4)) }),
    rules: registerRules({
      estimator: ESTIMATOR,
      policy: policy.clear,
      largeInput: policy.clear.largeInputTokens,
    }),
    deadlines,
    retrieval: NOWHERE,
    ...(byChain ? {} : { writeSummary: async () => SUMMARY }),
    ...room,
  }
}

export const SUMMARY = 'Summary:\nThe login was looked at and mended.'

/** What an act came to, with what it told on the way. */
export async function acted<End>(roomy: Roomy, act: AsyncGenerator<TurnEvent, End>): Promise<End> {
  for (;;) {
    const step = await act.next()
    if (step.done === true) return step.value
    roomy.events.push(step.value)
  }
}

export function compacted(roomy: Roomy, asked: Partial<CompactAsked> = {}): Promise<Committed> {
  const { run, room } = roomy
  return acted(roomy, compact(run, room, { trigger: 'manual', cause: 'person', ...asked }))
}

export function undone(roomy: Roomy, id?: string): Promise<Undone> {
  return acted(roomy, undoAct(roomy.run, roomy.room, id === undefined ? {} : { id }))
}

/** A carrier of one text, as its source has it now. */
export function carrierOf(name: string, source: { text: string }, more: Partial<Carrier> = {}): Carrier {
  return {
    name,
    kind: 'host',
    tellsChanges: false,
    isWhole: true,
    limit: () => null,
    render: async function* () {
      yield { id: '', attachment: { type: name, content: source.text }, source: 'memory' }
    },
    ...more,
  }
}

/** A round with a result of about so many tokens. */
export function largeRound(builder: SessionBuilder, tokens: number, thinks = false): void {
  const id = builder.id('call')
  const thinking = thinks ? [{ type: 'thinking', thinking: 'hm', signature: builder.id('sig') }] : []
  const path = `/src/${id}.ts`
  builder.assistant(builder.id('msg'), [
    ...thinking,
    { type: 'tool_use', id, name: 'Read', input: { file_path: path } },
  ])
  builder.result(id, 'abc '.repeat(tokens))
  builder.assistant(builder.id('msg'), [
    ...(thinks ? [{ ...thinking[0], signature: builder.id('sig') } as never] : []),
    { type: 'text', text: `read ${path}` },
  ])
}

/** The state of a session as whoever opens it next finds it. */
export function reopened({ host }: Roomy): Promise<SessionState> {
  return openSession(host.journal, SESSION)
}
