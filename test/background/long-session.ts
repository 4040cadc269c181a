/** A session on the simulator that works through its context window again and again, on a virtual clock. */
import { readReportedContextTokens } from '@tidemark/core/tokens/usage'
import {
  createCoder,
  createSimulator,
  createSummarizer,
  type Script,
  withSummaries,
} from '@tidemark/simulator'
import {
  anthropic,
  createTidemark,
  type EventOf,
  type Session,
  type SessionEvent,
  type SessionEventType,
  type Tidemark,
  type TidemarkOptions,
} from 'tidemark'
import { createDeadlines } from 'tidemark/internal'
import { createMemoryJournal, type MemoryStore } from 'tidemark/testing'
import { createVirtualClock, type VirtualClock } from './virtual-clock.ts'

export interface LongSessionOptions {
  readonly policy?: TidemarkOptions['policy']
  /** Other options of `createTidemark`. */
  readonly given?: Partial<TidemarkOptions>
  readonly background?: boolean
  readonly window?: number
  readonly modelId?: string
  /** Milliseconds that a response and a summary take. */
  readonly callMs?: number
  readonly summaryMs?: number
  /** Responses with tool calls before each answer. */
  readonly turns?: number
  readonly resultTokens?: number
  readonly textTokens?: number
  /** What writes the summaries; the simulator's summarizer unless given. */
  readonly summarizer?: Script
  /** Called when a summary was asked for. */
  readonly onSummaryAsked?: () => void
  readonly store?: MemoryStore
}

export interface LongSession {
  readonly tide: Tidemark
  readonly session: Session
  readonly clock: VirtualClock
  readonly store: MemoryStore
  readonly events: readonly SessionEvent[]
  /** Returns the events of one type. */
  list<Type extends SessionEventType>(type: Type): readonly EventOf<Type>[]
  /** Runs one prompt to its end, as time passes. */
  work(): Promise<void>
  /** Runs prompts until an event of this type was emitted, at most 200. */
  workUntil(type: SessionEventType): Promise<void>
  /** Lets time pass until the work has ended. */
  pass<T>(work: Promise<T>): Promise<T>
  /** Lets so many milliseconds pass. */
  wait(ms: number): Promise<void>
  readFigures(): Figures
}

export interface Figures {
  readonly calls: number
  readonly compactions: number
  /** Seconds between a response and the next request of its turn: tools take no time here, only the context does. */
  readonly blockedSeconds: number
  readonly blockedPer100Calls: number
  /** Tokens that a call added on average. */
  readonly growthPerCall: number
  readonly dollars: number
}

/** Small by default, so that a window is full after some forty calls. */
export async function openLongSession(options: LongSessionOptions = {}): Promise<LongSession> {
  const { background = true, window = 24_000, modelId = 'claude-sonnet-4-5', callMs = 8_000 } = options
  const { summaryMs = 30_000, turns = 3, resultTokens = 600, textTokens = 40, policy } = options
  const { summarizer = createSummarizer(), onSummaryAsked, store = new Map(), given } = options
  const clock = createVirtualClock()
  const coder = createCoder({ turns, parallel: 1, resultTokens, textTokens })
  const events: SessionEvent[] = []
  const tally = createTally(clock)
  const simulator = createSimulator({
    script: withSummaries(
      slow(coder.script, clock, callMs),
      slow(summarizer, clock, summaryMs, onSummaryAsked),
    ),
    clock,
    window,
  })
  const tide = createTidemark({
    model: anthropic(modelId, {
      apiKey: 'any',
      fetch: (input, init) => simulator.fetch(input instanceof Request ? input : String(input), init),
      window,
      maxOutput: Math.min(64_000, Math.floor(window / 4)),
    }),
    system: 'You are a careful engineer.',
    journal: createMemoryJournal(store),
    blobs: null,
    clock,
    deadlines: createDeadlines(clock),
    env: { DISABLE_MICROCOMPACT: '1' },
    ...given,
    // With notes kept from the log, nothing would be prepared.
    policy: { notes: { enabled: false }, ...policy, compact: { background, ...policy?.compact } },
    onEvent: (event) => {
      if (event.type !== 'reply' && event.type !== 'side-reply') events.push(event)
      tally.note(event)
    },
  })
  const session = await tide.open('long', {
    tools: coder.tools,
    runTool: (call) => {
      const { content, is_error } = coder.toolResult(call)
      return { content: String(content), isError: is_error === true }
    },
  })
  const tools = createSessionTools({ session, clock, events })
  return {
    tide,
    session,
    clock,
    store,
    events,
    ...tools,
    readFigures: () => ({ ...tally.read(), dollars: session.money().spent.total ?? 0 }),
  }
}

function createSessionTools({
  session,
  clock,
  events,
}: Pick<LongSession, 'session' | 'clock' | 'events'>): Pick<
  LongSession,
  'list' | 'work' | 'workUntil' | 'pass' | 'wait'
> {
  const list: LongSession['list'] = <Type extends SessionEventType>(type: Type) =>
    events.filter((event): event is EventOf<Type> => event.type === type)
  let prompts = 0
  async function work(): Promise<void> {
    prompts += 1
    const end = await clock.passUntil(session.run(`Step ${prompts}: fix the next test.`).outcome)
    if (!end.ok) throw new Error(end.message)
  }
  return {
    list,
    work,
    async workUntil(type) {
      for (let tried = 0; list(type).length === 0; tried += 1) {
        if (tried === 200) throw new Error(`there was no ${type}`)
        await work()
      }
    },
    pass: (running) => clock.passUntil(running),
    wait: (ms) => clock.passUntil(clock.sleep(ms)),
  }
}

function slow(script: Script, clock: VirtualClock, ms: number, onStart: () => void = () => {}): Script {
  return async (request, context) => {
    onStart()
    await clock.sleep(ms)
    return script(request, context)
  }
}

function createTally(clock: VirtualClock) {
  let [calls, compactions, blockedMs, grown, growths] = [0, 0, 0, 0, 0]
  let respondedAt: number | null = null
  let lastTokens: number | null = null
  return {
    note(event: SessionEvent): void {
      if (event.type === 'request-sent') {
        calls += 1
        if (respondedAt !== null) blockedMs += clock.now() - respondedAt
      } else if (event.type === 'turn-ended') respondedAt = null
      else if (event.type === 'compact') {
        compactions += 1
        lastTokens = null
      } else if (event.type === 'answered') {
        respondedAt = clock.now()
        const tokens = readReportedContextTokens(event.reply.usage)
        if (lastTokens !== null) {
          grown += tokens - lastTokens
          growths += 1
        }
        lastTokens = tokens
      }
    },
    read(): Omit<Figures, 'dollars'> {
      const blockedSeconds = blockedMs / 1000
      return {
        calls,
        compactions,
        blockedSeconds,
        blockedPer100Calls: (100 * blockedSeconds) / calls,
        growthPerCall: grown / growths,
      }
    },
  }
}
