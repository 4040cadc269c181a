/** The job with Tidemark: the agent of `tidemark chat` on the simulator, with a clock that the tour moves. */
import { createManualClock, createSimulator } from '@tidemark/simulator'
import { anthropic, type Session, type SessionEvent } from 'tidemark'
import { createDeadlines } from 'tidemark/internal'
import { openAgent } from '../agent/agent.ts'
import { NO_RULES } from '../agent/permissions.ts'
import { type RunBill, sumRequests } from './tour-bill.ts'
import { createTourModel, type JobSettings, TOUR_PROMPTS, TOUR_TOOLS } from './tour-job.ts'
import type { TourProject } from './tour-project.ts'

export type TidemarkRunNews =
  | { readonly type: 'prompt'; readonly text: string; readonly minutesBefore: number }
  | { readonly type: 'event'; readonly event: SessionEvent }
  | { readonly type: 'failed'; readonly message: string }

export interface TidemarkRun {
  readonly session: Session
  /** The body of the last request, as the provider received it. */
  lastRequest(): string
  /** The last summary as the model wrote it; null if there was none. */
  lastSummary(): string | null
  bill(): RunBill
  /** Runs the whole job, and yields what happens. */
  play(): AsyncGenerator<TidemarkRunNews, void>
  close(): Promise<void>
}

export async function openTidemarkRun(
  project: TourProject,
  { model, window, maxTokens, signal }: JobSettings,
): Promise<TidemarkRun> {
  const clock = createManualClock(Date.now())
  const refusal = `prompt is too long: ${window + 1_204} tokens > ${window} maximum`
  const { script, lastSummary } = createTourModel({ refusal })
  const simulator = createSimulator({
    script,
    clock,
    window,
    keepRequests: Number.POSITIVE_INFINITY,
  })
  let lastRequest = ''
  const agent = await openAgent({
    folder: project.folder,
    home: project.home,
    sessionId: 'tour',
    model: anthropic(model, {
      apiKey: 'none-needed',
      window,
      parameters: { max_tokens: maxTokens },
      fetch: (input, init) => {
        if (typeof init?.body === 'string') lastRequest = init.body
        return simulator.fetch(input as string, init)
      },
    }),
    settings: { permissions: NO_RULES, env: {}, notices: [] },
    mode: 'allow-all',
    toolNames: TOUR_TOOLS,
    env: project.env,
    engine: { clock, deadlines: createDeadlines(clock) },
  })
  const bill = (): RunBill => sumRequests(simulator.requests)
  return {
    session: agent.session,
    lastRequest: () => lastRequest,
    lastSummary,
    bill,
    async *play() {
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
    },
    close: () => agent.close(),
  }
}
