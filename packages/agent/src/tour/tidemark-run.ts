/** The job with Tidemark: the agent of `tidemark chat` on the simulator, with a clock that the tour advances. */
import { createManualClock, createSimulator, type ManualClock, type Script } from '@tidemark/simulator'
import { anthropic, type ModelChoice, type Session, type SessionEvent } from 'tidemark'
import { openAgent } from '../agent/agent.ts'
import type { Agent } from '../agent/agent-options.ts'
import { NO_RULES } from '../agent/permissions.ts'
import { createRunBill, type RunBill } from './tour-bill.ts'
import {
  createTourModel,
  TOUR_PROMPTS,
  TOUR_SETTINGS,
  TOUR_TOOL_NAMES,
  type TourJobSettings,
} from './tour-job.ts'
import type { TourProject } from './tour-project.ts'
import { createTrialScript } from './trial-script.ts'

type TidemarkRunNews =
  | { readonly type: 'prompt'; readonly text: string; readonly minutesBefore: number }
  | { readonly type: 'event'; readonly event: SessionEvent }
  | { readonly type: 'failed'; readonly message: string }

/** The run of the job with Tidemark. */
export interface TidemarkRun {
  readonly session: Session
  /** The body of the last request, as the provider received it. */
  lastRequest(): string
  /** The last summary as the model wrote it; null if there was none. */
  lastSummary(): string | null
  bill(): RunBill
  /** Runs the whole job, and yields its events. */
  play(): AsyncGenerator<TidemarkRunNews, void>
  /** Closes the session, so that the user can continue it. From then on, time passes, and the model answers by `createTrialScript`. */
  handOver(): Promise<TourSession>
  close(): Promise<void>
}

/** The session of the tour after its job, for the user to try. */
export interface TourSession {
  readonly id: string
  readonly folder: string
  readonly home: string
  readonly env: TourProject['env']
  readonly toolNames: readonly string[]
  /** Returns a simulated model with this name; without a name, the tour's model. */
  createModel(name?: string): ModelChoice
}

const SESSION_ID = 'tour'
const JOB_MINUTES = TOUR_PROMPTS.reduce((sum, { minutesBefore }) => sum + minutesBefore, 0)

/** Opens the agent for the job, whose prompts are sent by `play`. The provider refuses one prompt, as planted. */
export async function openTidemarkRun(
  project: TourProject,
  { model, window, maxTokens, signal }: TourJobSettings,
): Promise<TidemarkRun> {
  // The clock starts so that the job ends at the present time, because the user may continue the session.
  const clock = createManualClock(Date.now() - JOB_MINUTES * 60_000)
  const refusal = `prompt is too long: ${window + 1_204} tokens > ${window} maximum`
  const { script, lastSummary } = createTourModel({ refusal })
  const talk = createTrialScript()
  let isHandedOver = false
  let lastRequest = ''
  const { simulator, createModel } = createProvider({
    ...{ model, window, maxTokens, clock },
    script: (request, context) => (isHandedOver ? talk : script)(request, context),
    async onRequest(body) {
      lastRequest = body
      if (isHandedOver) await moveToNow(clock)
    },
  })
  const { folder, home, env } = project
  const agent = await openAgent({
    folder,
    home,
    sessionId: SESSION_ID,
    model: createModel(),
    settings: { permissions: NO_RULES, env: {}, notices: [] },
    mode: 'allow-all',
    toolNames: TOUR_TOOL_NAMES,
    env,
    engine: { clock },
  })
  const bill = (): RunBill => createRunBill(simulator.requests)
  return {
    session: agent.session,
    lastRequest: () => lastRequest,
    lastSummary,
    bill,
    play: () => playPrompts(agent, clock, signal),
    async handOver() {
      await agent.close()
      isHandedOver = true
      return { id: SESSION_ID, folder, home, env, toolNames: TOUR_TOOL_NAMES, createModel }
    },
    async close() {
      if (!isHandedOver) await agent.close()
    },
  }
}

/** Opens the session of an earlier tour, to continue it. The simulator's cache is empty at first. */
export function reopenTourSession({ folder, home, env }: TourProject): TourSession {
  const clock = createManualClock(Date.now())
  const script = createTrialScript()
  const { createModel } = createProvider({
    ...TOUR_SETTINGS,
    clock,
    script,
    onRequest: () => moveToNow(clock),
  })
  return { id: SESSION_ID, folder, home, env, toolNames: TOUR_TOOL_NAMES, createModel }
}

async function moveToNow(clock: ManualClock): Promise<void> {
  await clock.advance(Math.max(0, Date.now() - clock.now()))
}

interface ProviderOptions extends Omit<TourJobSettings, 'signal'> {
  readonly clock: ManualClock
  readonly script: Script
  /** Called with the body of each request before it is answered. */
  readonly onRequest: (body: string) => Promise<void>
}

/** Creates the simulator, and a function that returns its models. */
function createProvider({ model, window, maxTokens, clock, script, onRequest }: ProviderOptions) {
  const simulator = createSimulator({ script, clock, window, keepRequests: Number.POSITIVE_INFINITY })
  const createModel = (name = model): ModelChoice =>
    anthropic(name, {
      apiKey: 'none-needed',
      window,
      parameters: { max_tokens: maxTokens },
      fetch: async (input, init) => {
        if (typeof init?.body === 'string') await onRequest(init.body)
        return await simulator.fetch(input as string, init)
      },
    })
  return { simulator, createModel }
}

/** Gives the agent the prompts of the user, each after its pause. */
async function* playPrompts(
  agent: Agent,
  clock: ManualClock,
  signal: AbortSignal | undefined,
): AsyncGenerator<TidemarkRunNews, void> {
  for (const { text, minutesBefore } of TOUR_PROMPTS) {
    yield { type: 'prompt', text, minutesBefore }
    await clock.advance(minutesBefore * 60_000)
    const run = agent.run(text, signal === undefined ? {} : { signal })
    for await (const event of run) yield { type: 'event', event }
    const outcome = await run.outcome
    if (outcome.ok) continue
    yield { type: 'failed', message: outcome.message }
    return
  }
}
