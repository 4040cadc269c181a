/**
 * Random conversations through the library against the simulator: tools that come and go, pins, compactions of every
 * form, undo, model switches, reopening, faults, lone surrogates, and a model that repeats tool call ids. A conversation
 * survives if every prompt ends well, apart from the faults that were planted, and the last prompt is answered.
 */
import {
  createSimulator,
  createSummarizer,
  type Fault,
  type Script,
  withSummaries,
} from '@tidemark/simulator'
import { anthropic, createTidemark, type Session, type Tidemark, toolResult, user } from 'tidemark'
import { createFixedClock, createFixedIds, type FixedClock } from '../golden/harness.ts'
import { createRandom, type Random } from '../golden/random.ts'

export interface FuzzOutcome {
  readonly seed: number
  /** The steps that were taken, each with how it ended. */
  readonly steps: readonly string[]
  /** Why the conversation is dead; null if it survived. */
  readonly death: string | null
  /** What the session counted, and what the provider billed; null if the conversation died. */
  readonly bill: FuzzBill | null
}

/** Tokens and dollars by the session's own count and by the bill. */
export interface FuzzBill {
  readonly counted: BillSide
  readonly billed: BillSide
  /** True if a response broke off or was aborted, so that its output is an estimate. */
  readonly isEstimated: boolean
}

interface BillSide {
  readonly calls: number
  readonly promptTokens: number
  readonly outputTokens: number
  readonly dollars: number | null
}

const MODELS = [
  'claude-sonnet-5-5',
  'claude-opus-5-5',
  'claude-opus-5',
  'claude-opus-4-8',
  'claude-opus-4-6',
  'claude-sonnet-5',
  'claude-sonnet-4-6',
  'claude-haiku-5-5',
  'claude-fable-5-2',
] as const
const TOOL_NAMES = ['Read', 'Bash', 'Edit', 'Grep', 'lookup_order', 'mcp__tracker__search', 'TodoWrite']
const HIGH_SURROGATE = '\ud83d'
const SESSION_ID = 'fuzz'
const URL = 'http://simulator.test'
const MINUTE = 60_000

interface Stage {
  readonly random: Random
  readonly loop: 'run' | 'own'
  readonly tide: Tidemark
  readonly simulator: ReturnType<typeof createSimulator>
  readonly clock: FixedClock
  readonly plan: ModelPlan
  session: Session
  tools: readonly object[]
  /** Uuids of appended records, for pins and pivots. */
  readonly uuids: readonly string[]
  /** True while a planted fault may still make a prompt fail. */
  isFaulty: boolean
}

/** How the scripted model answers next. */
interface ModelPlan {
  rounds: number
  repeatsIds: boolean
  hasSurrogates: boolean
}

/** Runs one random conversation. The same seed gives the same conversation. */
export async function runFuzzSession(seed: number): Promise<FuzzOutcome> {
  const random = createRandom(`fuzz/${seed}`)
  const stage = await openStage(random)
  const steps: string[] = []
  let death: string | null = null
  let bill: FuzzBill | null = null
  const count = random.between(4, 14)
  try {
    for (let index = 0; index < count && death === null; index += 1) {
      const step = chooseStep(random)
      const end = await STEPS[step](stage)
      steps.push(`${step}: ${end}`)
      if (isDeath(end) && !stage.isFaulty) death = `step ${index + 1}, ${step}: ${end}`
      stage.clock.advance(20_000)
    }
    if (death === null) {
      stage.isFaulty = false
      const end = await endWell(stage)
      steps.push(`last prompt: ${end}`)
      if (end !== 'ok') death = `last prompt: ${end}`
    }
    bill = readBill(stage)
    await stage.tide.close()
  } catch (error) {
    death = error instanceof Error ? (error.stack ?? error.message) : String(error)
  }
  return { seed, steps, death, bill: death === null ? bill : null }
}

function readBill({ session, simulator }: Stage): FuzzBill {
  const { calls, tokens, spent } = session.money()
  const requests = simulator.requests.filter(({ usage }) => usage !== null)
  const sum = (pick: (request: (typeof requests)[number]) => number): number =>
    requests.reduce((total, request) => total + pick(request), 0)
  return {
    counted: {
      calls,
      promptTokens: tokens.input + tokens.cacheRead + tokens.writeShort + tokens.writeLong,
      outputTokens: tokens.output,
      dollars: spent.total,
    },
    billed: {
      calls: requests.length,
      promptTokens: sum(({ usage }) =>
        usage === null ? 0 : usage.input + usage.cacheRead + usage.write5m + usage.write1h,
      ),
      outputTokens: sum(({ usage }) => usage?.output ?? 0),
      dollars: sum(({ cost }) => cost?.total ?? 0),
    },
    isEstimated: spent.assumed.some((text) => text.includes('broke off')),
  }
}

/** What ends a session for good: a request that our own check or the provider refuses. */
function isDeath(end: string): boolean {
  return /^(invalid|failed|prefix|status 4|not ok)/.test(end)
}

async function openStage(random: Random): Promise<Stage> {
  const clock = createFixedClock()
  const uuids: string[] = []
  const plan: ModelPlan = { rounds: 1, repeatsIds: false, hasSurrogates: false }
  const script = createRandomScript(random, plan)
  const simulator = createSimulator({
    script: withSummaries(script, createSummarizer()),
    clock,
    seed: 'fuzz',
    keepRequests: Number.POSITIVE_INFINITY,
  })
  const tide = createTidemark({
    model: chooseModel(random, simulator.fetch),
    memory: true,
    env: {},
    clock,
    ids: createFixedIds(),
    ...(random.chance(70) ? { system: 'You are a coder.' } : {}),
    history: random.chance(30),
    onEvent: (event) => {
      if (event.type === 'appended')
        uuids.push(...event.records.flatMap(({ uuid }) => (typeof uuid === 'string' ? [uuid] : [])))
    },
  })
  const session = await tide.open(SESSION_ID)
  const tools = random.chance(25) ? [] : chooseTools(random)
  const loop = random.chance(40) ? 'own' : 'run'
  return { random, loop, tide, simulator, clock, plan, session, tools, uuids, isFaulty: false }
}

function chooseModel(random: Random, fetch: typeof globalThis.fetch): ReturnType<typeof anthropic> {
  const window = random.pick([30_000, 40_000, 80_000, 200_000])
  return anthropic(random.pick(MODELS), {
    apiKey: 'any',
    baseUrl: URL,
    fetch,
    window,
    maxOutput: 4_000,
    ...(random.chance(40) ? { parameters: { thinking: { type: 'adaptive' } } } : {}),
  })
}

function chooseTools(random: Random): readonly object[] {
  return TOOL_NAMES.filter(() => random.chance(60)).map((name) => ({
    name,
    description: `Does ${name}.`,
    input_schema: { type: 'object', properties: {} },
  }))
}

function createRandomScript(random: Random, plan: ModelPlan): Script {
  let lastId = 'toolu_fuzz_0'
  let calls = 0
  return ({ tools }) => {
    const names = tools.flatMap(({ name }) => (typeof name === 'string' ? [name] : []))
    const [first, ...others] = names
    const text = `${random.text(random.between(5, 200))}${plan.hasSurrogates ? HIGH_SURROGATE : ''}`
    if (plan.rounds <= 0 || first === undefined) return { blocks: [{ type: 'text', text }] }
    plan.rounds -= 1
    const uses = Array.from({ length: random.between(1, 3) }, () => {
      calls += 1
      const id = plan.repeatsIds && random.chance(50) ? lastId : `toolu_fuzz_${calls}`
      lastId = id
      const name = random.pick([first, ...others])
      return {
        type: 'tool_use',
        id,
        name,
        input: { file_path: `src/${random.text(6).trim()}.ts`, command: 'npm test' },
      }
    })
    return { blocks: [...(random.chance(50) ? [{ type: 'text', text }] : []), ...uses] }
  }
}

const STEPS = {
  prompt: (stage) => sendPrompt(stage, `Please do this. ${stage.random.text(150)}`),
  'long prompt': (stage) => sendPrompt(stage, stage.random.text(stage.random.between(4_000, 12_000))),
  'prompt cut in a character': (stage) => sendPrompt(stage, `An emoji cut in half: ${HIGH_SURROGATE}`),
  'model repeats ids': (stage) => withModel(stage, { repeatsIds: true }),
  'model writes surrogates': (stage) => withModel(stage, { hasSurrogates: true }),
  'other tools': async (stage) => {
    stage.tools = stage.random.chance(20) ? [] : chooseTools(stage.random)
    return 'ok'
  },
  pin: async ({ session, uuids, random }) => {
    const [first, ...others] = uuids
    return first === undefined ? 'nothing to pin' : endOf(await session.pin(random.pick([first, ...others])))
  },
  compact: async (stage) => {
    const { session, random, uuids } = stage
    const form = random.pick(['full', 'from', 'up_to'] as const)
    const [first, ...others] = uuids
    const end = endOf(
      await session.compact({
        ...(form === 'full' || first === undefined ? {} : { form, pivot: random.pick([first, ...others]) }),
        ...(random.chance(40) ? { summarizer: 'local' } : {}),
      }),
    )
    return `compaction ${end}`
  },
  undo: async ({ session }) => `undo ${endOf(await session.undo())}`,
  'switch model': async ({ session, random, simulator }) =>
    `switch ${endOf(await session.switchModel(chooseModel(random, simulator.fetch)))}`,
  wait: async ({ clock, random }) => {
    clock.advance(random.between(2, 90) * MINUTE)
    return 'ok'
  },
  reopen: async (stage) => {
    await stage.session.close()
    stage.session = await stage.tide.open(SESSION_ID)
    return 'ok'
  },
  fault: async (stage) => {
    stage.simulator.queueFaults(stage.random.pick(FAULTS))
    const end = await sendPrompt(stage, 'Go on.')
    return `with a fault: ${end}`
  },
  abort: async (stage) => {
    const { random, session, tools } = stage
    if (stage.loop === 'own') return 'ok'
    stage.plan.rounds = random.between(0, 3)
    const stop = new AbortController()
    const run = session.run('Do it.', { tools, runTool: () => createResult(random), signal: stop.signal })
    let events = random.between(1, 12)
    for await (const { type } of run) {
      if (type === 'reply') events -= 1
      if (events === 0) stop.abort()
    }
    return `aborted: ${endOf(await run.outcome)}`
  },
} satisfies Record<string, (stage: Stage) => Promise<string>>

const FAULTS: readonly [Fault, ...Fault[]] = [
  { type: 'status', status: 529 },
  { type: 'cut', afterEvents: 4 },
  { type: 'error-event', afterEvents: 3, errorType: 'overloaded_error' },
  { type: 'cut', afterEvents: 1 },
  { type: 'cut', afterEvents: 9 },
  { type: 'reset' },
  { type: 'reset', afterEvents: 6 },
]

function chooseStep(random: Random): keyof typeof STEPS {
  const names = Object.keys(STEPS) as (keyof typeof STEPS)[]
  const [first = 'prompt', ...others] = names
  return random.chance(45) ? 'prompt' : random.pick([first, ...others])
}

type Outcome = { readonly ok: boolean; readonly reason?: string; readonly message?: string }

function endOf({ ok, reason, message }: Outcome): string {
  return ok ? 'ok' : `${reason ?? 'not ok'}: ${message ?? ''}`
}

async function withModel(stage: Stage, how: Partial<ModelPlan>): Promise<string> {
  Object.assign(stage.plan, how)
  const end = await sendPrompt(stage, 'Please go on.')
  Object.assign(stage.plan, { repeatsIds: false, hasSurrogates: false })
  return end
}

async function endWell(stage: Stage): Promise<string> {
  const first = await sendPrompt(stage, 'Last question: is all done?')
  return first === 'ok' ? first : sendPrompt(stage, 'Is all done?')
}

async function sendPrompt(stage: Stage, text: string): Promise<string> {
  stage.plan.rounds = stage.random.between(0, 3)
  if (stage.loop === 'own') return sendInOwnLoop(stage, text)
  const runTool = (): string => createResult(stage.random)
  return endOf(await stage.session.run(text, { tools: stage.tools, runTool }).outcome)
}

function createResult(random: Random): string {
  const text = random.text(random.between(20, 9_000))
  return random.chance(15) ? `${text}${HIGH_SURROGATE}` : text
}

type Call = { readonly id: string; readonly name: string; readonly type: string }

/** A body that was cut on the way has no content. */
function readBody(text: string): { readonly content?: readonly Call[] } {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

/** The loop of a caller with its own client. A refusal is reported to the session, which then gives another request. */
async function sendInOwnLoop(stage: Stage, text: string): Promise<string> {
  const { session, simulator, random } = stage
  await session.append(user(text))
  const sent = new Set<string>()
  for (let round = 0; round < 12; round += 1) {
    const request = await session.next({ tools: stage.tools, settle: true })
    if (!request.ok) return endOf(request)
    if (sent.has(request.text)) return 'failed: the same bytes twice'
    const sending = simulator.fetch(`${URL}/v1/messages`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-api-key': 'any',
        'anthropic-version': '2023-06-01',
        ...request.headers,
      },
      body: request.text,
    })
    const response = await sending.catch(() => new Response(null, { status: 529 }))
    const body = readBody(await response.text())
    if (body.content === undefined) {
      if (response.status !== 529) sent.add(request.text)
      await session.refused({ status: response.status, body })
      continue
    }
    await session.append(body)
    const calls = body.content.filter(({ type }) => type === 'tool_use')
    if (calls.length === 0) return 'ok'
    const ids = [...new Set(calls.map(({ id }) => id))]
    for (const id of ids) await session.append(toolResult(id, createResult(random)))
  }
  return 'failed: no end in sight'
}
