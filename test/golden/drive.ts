/** Drives one golden session through the library against the simulator and keeps what could be observed. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createCoder, createSimulator, type Fault, type Script, withSummaries } from '@tidemark/simulator'
import {
  anthropic,
  attachment,
  createTidemark,
  type ModelChoice,
  openai,
  type Session,
  type Tidemark,
  toolResult,
  user,
} from 'tidemark'
import { chooseMadeUpModel, createMadeUpWorld } from '../support/made-up-provider/talk-world.ts'
import {
  carriersFor,
  createFixedClock,
  createFixedIds,
  type FixedClock,
  HOOKS,
  type HostState,
  SUMMARISERS,
  simulateLocalModel,
  systemFor,
  withCacheEdits,
  writeProject,
} from './harness.ts'
import { createRandom } from './random.ts'
import {
  createScriptedModel,
  defineTools,
  imageBlock,
  runScriptedTool,
  type ScriptedModel,
  type ToolOutcome,
} from './scripted-model.ts'
import { LOCAL_MODEL, type SessionPlan, type Step } from './sessions.ts'

export interface ObservedStep {
  readonly step: string
  /** `ok`, or the reason why not. */
  readonly end: string
  /** Betas and body of every request that reached `fetch`. */
  readonly requests: readonly string[]
  /** Lines that were appended to the log. */
  readonly records: readonly string[]
}

export interface ObservedSession {
  readonly steps: readonly ObservedStep[]
  readonly log: string
  /** The whole conversation as Markdown, where the plan asks for it. */
  readonly markdown: string | null
}

/** What the steps share. */
interface Stage {
  readonly plan: SessionPlan
  readonly tide: Tidemark
  readonly simulator: ReturnType<typeof createSimulator>
  readonly fetch: typeof globalThis.fetch
  readonly model: ScriptedModel
  readonly coder: ReturnType<typeof createCoder>
  readonly clock: FixedClock
  readonly host: HostState
  session: Session
  tools: readonly object[]
  prompts: string[]
  pinned: string | null
}

const SESSION_ID = 'golden'
const MINUTE = 60_000

export async function driveSession(plan: SessionPlan, folder: string): Promise<ObservedSession> {
  const requests: string[] = []
  const home = join(folder, 'home')
  const stage = await openStage(plan, { folder, home, requests })
  const log = join(home, 'sessions', `${SESSION_ID}.jsonl`)
  const steps: ObservedStep[] = []
  let known = 0
  for (const [index, step] of plan.steps.entries()) {
    const end = await doStep(stage, step, index)
    const lines = existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1) : []
    steps.push({
      step: `${index + 1} ${step.do}`,
      end,
      requests: requests.splice(0),
      records: lines.slice(known),
    })
    known = lines.length
    stage.clock.advance(20_000)
  }
  const markdown = plan.exported ? await stage.session.export({ title: plan.name }) : null
  await stage.tide.close()
  return { steps, log, markdown }
}

interface Places {
  readonly folder: string
  readonly home: string
  readonly requests: string[]
}

/**
 * The golden sessions cover compactions with a summary; those with notes have tests of their own. Requests in the
 * background would make the order of the log a matter of time.
 */
function policyFor({ policy }: SessionPlan): object {
  return {
    notes: { enabled: false },
    ...policy,
    compact: { ...Object(policy?.compact), background: false },
  }
}

function chooseServer(
  { provider, window = 60_000 }: SessionPlan,
  script: Script,
  simulator: Pick<Stage['simulator'], 'fetch'>,
): typeof globalThis.fetch {
  return provider === 'made-up' ? createMadeUpWorld({ script, window }).server.fetch : simulator.fetch
}

async function openStage(plan: SessionPlan, { folder, home, requests }: Places): Promise<Stage> {
  const clock = createFixedClock()
  const project = join(folder, 'project')
  mkdirSync(project, { recursive: true })
  writeProject(project)
  const board = ['ticket 7: sums are wrong']
  const host: HostState = { branch: 'main', board, isPlanning: false, folder: project }
  // Results stand in the order in which they arrive, and those that touch the disk arrive at no certain time.
  const parallel = plan.history === true ? 1 : 3
  const model = createScriptedModel(plan.name, { thinks: plan.thinks === true, parallel })
  const coder = createCoder({ seed: plan.name, turns: 4, resultTokens: Math.ceil(plan.resultSize / 6) })
  const script = plan.coder === true ? coder.script : model.script
  const answers = withSummaries(script, SUMMARISERS[plan.summariser ?? 'good'])
  const simulator = createSimulator({
    script: answers,
    clock,
    seed: plan.name,
    models: simulateLocalModel(LOCAL_MODEL),
    ...(plan.realWindow === undefined ? {} : { window: plan.realWindow }),
    ...(plan.cacheEdits === true ? { cachedClearing: true } : {}),
  })
  const server = chooseServer(plan, answers, simulator)
  const fetch: typeof globalThis.fetch = (input, init) => {
    const betas = new Headers(init?.headers).get('anthropic-beta') ?? ''
    requests.push(`betas: ${betas}\n${String(init?.body)}`)
    return server(input, init)
  }
  const tide = createTidemark({
    model: chooseModel(plan, fetch),
    home,
    env: {},
    clock,
    ids: createFixedIds(),
    ...systemFor(plan.system, host),
    policy: policyFor(plan),
    ...(plan.carriers === true ? carriersFor(host) : {}),
    ...(plan.hooks === true ? HOOKS : {}),
    hostTools: { readOnly: ['mcp__tracker__search'] },
    history: plan.history === true,
    // The path of the log differs from run to run.
    transcript: false,
    autonomous: plan.autonomous === true,
  })
  const session = await tide.open(SESSION_ID)
  const tools = plan.coder === true ? coder.tools : defineTools(plan.tools)
  return {
    plan,
    tide,
    simulator,
    fetch,
    model,
    coder,
    clock,
    host,
    session,
    tools,
    prompts: [],
    pinned: null,
  }
}

function chooseModel(
  {
    model,
    provider,
    window,
    parameters,
    cacheEdits,
  }: Pick<SessionPlan, 'model' | 'provider' | 'window' | 'parameters' | 'cacheEdits'>,
  fetch: typeof globalThis.fetch,
): ModelChoice {
  if (provider === 'made-up') return chooseMadeUpModel(fetch, window ?? 60_000)
  if (provider !== undefined)
    return openai(model, { apiKey: 'any', fetch, window: window ?? 60_000, maxOutput: 4_000, api: provider })
  const choice = anthropic(model, {
    apiKey: 'any',
    baseUrl: 'http://simulator.test',
    fetch,
    ...(window === undefined ? {} : { window, maxOutput: Math.min(4_000, window / 4) }),
    ...(parameters === undefined ? {} : { parameters: JSON.parse(JSON.stringify(parameters)) }),
  })
  return cacheEdits === true ? withCacheEdits(choice) : choice
}

type Outcome = { readonly ok: boolean; readonly reason?: string }

function endOf(outcome: Outcome): string {
  return outcome.ok ? 'ok' : (outcome.reason ?? 'not ok')
}

async function doStep(stage: Stage, step: Step, index: number): Promise<string> {
  const { session, host, clock, simulator } = stage
  switch (step.do) {
    case 'prompt':
      return prompt(
        stage,
        step,
        `Please do part ${index + 1}. ${createRandom(`${stage.plan.name}/${index}`).text(150)}`,
      )
    case 'large-prompt':
      stage.model.expectPrompt(1)
      return run(stage, createRandom(`${stage.plan.name}/${index}`).text(step.characters))
    case 'compact':
      return compact(stage, step)
    case 'compact-in-steps':
      return compactInSteps(stage)
    case 'undo':
      return endOf(await session.undo())
    case 'unpin':
      return stage.pinned === null ? 'nothing pinned' : endOf(await session.unpin(stage.pinned))
    case 'wait':
      clock.advance(step.minutes * MINUTE)
      return 'ok'
    case 'tools':
      stage.tools = defineTools(step.names)
      return 'ok'
    case 'host':
      host.branch = step.branch
      host.board = [...host.board, 'ticket 9: slow search']
      host.isPlanning = !host.isPlanning
      return 'ok'
    case 'attach':
      await session.append(attachment('selection', `lines ${index} to 90 of src/login.ts`))
      return 'ok'
    case 'reopen':
      await session.close()
      stage.session = await stage.tide.open(SESSION_ID)
      return 'ok'
    case 'switch':
      return endOf(await session.switchModel(chooseModel(step, stage.fetch)))
    case 'fault':
      simulator.queueFaults(FAULTS[step.fault])
      return 'ok'
    case 'unanswered-calls':
      return leaveCallsUnanswered(stage)
    case 'history':
      return (await session.history({ text: 'order' })).body
  }
}

const FAULTS: Readonly<Record<Extract<Step, { do: 'fault' }>['fault'], Fault>> = {
  overloaded: { type: 'status', status: 529 },
  cut: { type: 'cut', afterEvents: 4 },
  'error-event': { type: 'error-event', afterEvents: 3, errorType: 'overloaded_error' },
  'too-long': {
    type: 'status',
    status: 400,
    errorType: 'invalid_request_error',
    message: 'prompt is too long: 61000 tokens > 60000 maximum',
  },
}

interface PromptStep {
  readonly rounds: number
  readonly image?: boolean
  readonly pinned?: boolean
}

async function prompt(stage: Stage, { rounds, image, pinned }: PromptStep, text: string): Promise<string> {
  const { session, model, plan } = stage
  model.expectPrompt(rounds)
  const content = image === true ? [{ type: 'text', text }, imageBlock()] : text
  // A prompt is given in one of two ways: to `run` itself, or appended before.
  if (plan.loop === 'run' && pinned !== true && stage.prompts.length % 2 === 1) return run(stage, content)
  const [uuid = ''] = await session.append(user(content))
  stage.prompts.push(uuid)
  if (pinned === true) {
    stage.pinned = uuid
    await session.pin(uuid)
  }
  return plan.loop === 'run' ? run(stage, null) : ownLoop(stage)
}

async function run(stage: Stage, content: string | readonly object[] | null): Promise<string> {
  if (content !== null) stage.prompts.push('')
  const { tools } = stage
  return endOf(await stage.session.run(content, { tools, runTool: (call) => answer(stage, call) }).outcome)
}

type Call = { readonly id: string; readonly name: string; readonly input: unknown }

function answer({ plan, coder }: Stage, call: Call): ToolOutcome {
  if (plan.coder !== true) return runScriptedTool(call, plan.resultSize)
  const { content, is_error } = coder.toolResult({ ...call, type: 'tool_use' })
  return { content: String(content), isError: is_error === true }
}

async function ownLoop(stage: Stage, settle = false): Promise<string> {
  const { session } = stage
  for (;;) {
    const calls = await nextCalls(stage, settle)
    if (typeof calls === 'string') return calls
    for (const call of calls) {
      const isHistory = call.name === 'history'
      const { content, isError }: ToolOutcome = isHistory
        ? await session.history(Object(call.input))
        : answer(stage, call)
      await session.append(toolResult(call.id, content, isError === true ? { isError } : {}))
    }
    if (calls.length === 0) return 'ok'
  }
}

/** Sends the next request and appends the response. Gives its calls, or why there was no request. */
async function nextCalls(
  { session, tools, fetch }: Stage,
  settle: boolean,
): Promise<readonly Call[] | string> {
  const request = await session.next({ tools, settle })
  if (!request.ok) return request.reason
  const headers = {
    'content-type': 'application/json',
    'x-api-key': 'any',
    'anthropic-version': '2023-06-01',
  }
  const response = await fetch('http://simulator.test/v1/messages', {
    method: 'POST',
    headers: { ...headers, ...request.headers },
    body: request.text,
  })
  const message: { readonly content?: readonly (Call & { readonly type: string })[] } = JSON.parse(
    await response.text(),
  )
  if (message.content === undefined) return `status ${response.status}`
  await session.append(message)
  return message.content.filter(({ type }) => type === 'tool_use')
}

/** The calls of one response get no result; the next request settles them. */
async function leaveCallsUnanswered(stage: Stage): Promise<string> {
  stage.model.expectPrompt(1)
  await stage.session.append(user('Please run the tests once more.'))
  const calls = await nextCalls(stage, false)
  const refused = await stage.session.next({ tools: stage.tools })
  return `${calls.length} calls, ${refused.ok ? 'ok' : refused.reason}, ${await ownLoop(stage, true)}`
}

async function compact(stage: Stage, { form, local }: Extract<Step, { do: 'compact' }>): Promise<string> {
  const known = stage.prompts.filter((uuid) => uuid !== '')
  const pivot = known[Math.floor(known.length / 2)]
  const outcome = await stage.session.compact({
    ...(form === 'full' || pivot === undefined ? {} : { form, pivot }),
    ...(local === true ? { summarizer: 'local' } : { instructions: 'Keep the names of all files.' }),
  })
  return endOf(outcome)
}

async function compactInSteps({ session }: Stage): Promise<string> {
  const plan = await session.planCompaction()
  if (!plan.ok) return endOf(plan)
  const draft = await session.prepare(plan)
  return draft.ok ? endOf(await session.commit(draft)) : endOf(draft)
}
