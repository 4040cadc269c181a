/** A session on the simulator that can be brought to any size, with every request that went out and every event kept. */
import {
  createSimulator,
  type ManualClock,
  manualClock,
  type Script,
  type Simulator,
} from '@tidemark/simulator'
import { isSummaryRequest, prose } from '@tidemark/simulator/internal'
import {
  anthropic,
  assistant,
  createDeadlines,
  createTidemark,
  type Said,
  type Session,
  type SessionEvent,
  type TidemarkOptions,
  toolResult,
  user,
} from 'tidemark'
import { createMemoryJournal, type MemoryStore } from 'tidemark/testing'
import { expect } from 'vitest'

export interface StageOptions {
  readonly script: Script
  /** Tokens of the window, as the engine is told. */
  readonly window: number
  /** As the provider really has it; the same unless told. */
  readonly realWindow?: number
  readonly modelId?: string
  readonly more?: Partial<TidemarkOptions>
}

export interface Stage {
  readonly session: Session
  readonly simulator: Simulator
  readonly clock: ManualClock
  readonly store: MemoryStore
  /** The bodies of the requests, as they were sent. */
  readonly bodies: string[]
  readonly events: SessionEvent[]
}

export const SESSION = 'talk'

const TOOLS = {
  Read: {
    description: 'Reads a file.',
    inputSchema: { type: 'object', properties: { file_path: { type: 'string' } } },
    run: (): string => 'nothing',
  },
}

export async function setStage(options: StageOptions): Promise<Stage> {
  const { script, window, realWindow = window, modelId = 'claude-sonnet-4-5', more = {} } = options
  const clock = manualClock()
  const simulator = createSimulator({ script, clock, window: realWindow })
  const bodies: string[] = []
  const fetch: typeof globalThis.fetch = (input, init) => {
    bodies.push(String(init?.body))
    return simulator.fetch(input instanceof Request ? input : String(input), init)
  }
  const maxOutput = Math.min(8_000, Math.floor(window / 8))
  const store: MemoryStore = new Map()
  const events: SessionEvent[] = []
  const tide = createTidemark({
    model: anthropic(modelId, { apiKey: 'any', fetch, window, maxOutput }),
    journal: createMemoryJournal(store),
    blobs: null,
    env: {},
    clock,
    deadlines: createDeadlines(clock),
    system: 'You are a careful engineer.',
    onEvent: (event) => void events.push(event),
    ...more,
  })
  const session = await tide.open(SESSION, { tools: TOOLS })
  return { session, simulator, clock, store, bodies, events }
}

/** What a failure may not touch. */
export interface Picture {
  readonly messages: string
  readonly log: readonly string[]
}

export function pictureOf({ session, store }: Stage): Picture {
  return { messages: JSON.stringify(session.messages()), log: [...(store.get(SESSION)?.lines ?? [])] }
}

/** Byte for byte what it was; what was said since may stand behind it. No rewrite is in the log. */
export function expectUntouched(stage: Stage, { messages, log }: Picture): void {
  const now = pictureOf(stage)
  expect(now.messages.slice(0, messages.length - 1)).toBe(messages.slice(0, -1))
  expect(now.log.slice(0, log.length)).toEqual(log)
  expect(now.log.slice(log.length).filter((line) => /compact_boundary|isCompactSummary/.test(line))).toEqual(
    [],
  )
}

export function isSummaryBody(body: string): boolean {
  const { messages, compaction } = JSON.parse(body)
  return compaction !== undefined || isSummaryRequest({ kind: 'message', messages })
}

const ROUNDS_TO_FILL = 30

/** Talk is added until the conversation has so many tokens, on the safe side. Mostly words: little can be cleared. */
export async function fillTo({ session }: Stage, tokens: number, name: string): Promise<void> {
  const each = Math.ceil(tokens / ROUNDS_TO_FILL)
  for (let number = 0; session.contextRemaining().high < tokens; number += 1)
    await session.append(...round(`${name}-${number}`, each))
}

function round(name: string, tokens: number): readonly Said[] {
  const call = { type: 'tool_use', id: `toolu_${name}`, name: 'Read', input: { file_path: `src/${name}.ts` } }
  return [
    user(`Task ${name}: look at src/${name}.ts.`),
    assistant({ content: [{ type: 'text', text: prose(name, Math.ceil(tokens * 0.9)) }, call] }),
    toolResult(call.id, 'export {}'),
    assistant(`${name} is looked at.`),
  ]
}

/** Waits for `work` while time goes by: whatever hangs is ended by its deadline. */
export async function whileTimePasses<Value>(
  { clock }: Pick<Stage, 'clock'>,
  work: Promise<Value>,
): Promise<Value> {
  let isOver = false
  const over = (): void => {
    isOver = true
  }
  work.then(over, over)
  for (let beats = 0; !isOver && beats < 20_000; beats += 1) {
    for (let turn = 0; turn < 20 && !isOver; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    if (!isOver) await clock.advance(30_000)
  }
  return work
}
