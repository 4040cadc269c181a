/** One run of a client against a simulator of its own, and what the simulator billed for it. */
import {
  type CoderOptions,
  createCoder,
  createSimulator,
  createSummarizer,
  type RequestRecord,
  type Script,
  type SimulatorOptions,
  serve,
  withSummaries,
} from '@tidemark/simulator'
import { CLAUDE, type Client, type Fetch, type RunCall } from './client.ts'
import {
  type DoorOptions,
  type DoorRecord,
  openDirectDoor,
  openTidemarkDoor,
  openTidemarkMiddleware,
} from './door.ts'
import { openDirectProxy, openTidemarkProxy } from './proxy.ts'
import { createComparison, type RequestComparison } from './request-comparison.ts'

export interface RunSettings {
  readonly window: number
  readonly steps: number
  readonly isManaged: boolean
  /** True to keep the session in memory. Default: false, in a home on disk, as a user has it. */
  readonly inMemory?: boolean
  /** True to pass streams on as they come; otherwise they come at their end, as through some proxies, and are timed. */
  readonly isLive?: boolean
  /** How the coder works, apart from its number of steps. */
  readonly coder?: Omit<CoderOptions, 'turns' | 'task'>
}

export interface ClientRun {
  readonly client: string
  readonly window: number
  readonly isManaged: boolean
  /** True if the client is a process of its own. */
  readonly isProcess: boolean
  /** Summaries that the model was asked for. Without Tidemark, the client itself asked. */
  readonly ownSummaries: number
  /** Requests for messages that reached the provider, summaries included. */
  readonly requests: number
  readonly refused: number
  readonly cacheRead: number
  readonly cacheWritten: number
  readonly fresh: number
  /** Dollars for all requests. */
  readonly cost: number
  /** Number of the coder's steps whose tool calls the client ran. */
  readonly steps: number
  readonly calls: readonly RunCall[]
  /** Number of calls that the client ran before Tidemark first changed what the model is shown; null if it never did. */
  readonly callsBeforeRewrite: number | null
  readonly answer: string | null
  /** What the client threw. */
  readonly error: string | null
  readonly door: DoorRecord
  /** What the provider said to refused requests. */
  readonly refusals: readonly string[]
  /** How what Tidemark sent differs from the client's own requests. */
  readonly changes: readonly string[]
}

const SYSTEM = 'You are a careful coder. You read before you write, and you run the tests. '.repeat(100)
const PROMPT = 'Raise the limits of all modules, and keep the tests green.'

export async function runClient(client: Client, settings: RunSettings): Promise<ClientRun> {
  const { window, steps, isManaged, inMemory = false, isLive = false } = settings
  const { provider = CLAUDE } = client
  const { thinkingTokens = 0 } = provider
  const coder = createCoder({ thinkingTokens, ...settings.coder, turns: steps, task: PROMPT })
  const records: RequestRecord[] = []
  let ownSummaries = 0
  const summarize = createSummarizer()
  const countSummaries: Script = (request, context) => {
    ownSummaries += 1
    return summarize(request, context)
  }
  const options: SimulatorOptions = {
    script: withSummaries(coder.script, countSummaries),
    window,
    seed: 'dropin',
    ...(provider.dialect === undefined ? {} : { openai: { dialect: provider.dialect } }),
    onRequest: (record) => void records.push(record),
  }
  const calls: RunCall[] = []
  let callsBeforeRewrite: number | null = null
  const onRewrite = (): void => {
    callsBeforeRewrite ??= calls.length
  }
  const comparison = createComparison(() => callsBeforeRewrite !== null)
  const settled = { window, isManaged, inMemory, isLive, onRewrite }
  const way = await openWay(client, options, settled, comparison)
  const end = await client
    .run({
      ...way,
      model: provider.model,
      system: SYSTEM,
      prompt: PROMPT,
      steps,
      tools: coder.tools,
      runTool(call) {
        calls.push(call)
        const { content, is_error } = coder.toolResult(call as Parameters<typeof coder.toolResult>[0])
        return { text: String(content), isError: is_error === true }
      },
      recordCall: (call) => void calls.push(call),
    })
    .then((answer) => ({ answer, error: null }))
    .catch((thrown: unknown) => ({ answer: null, error: describeError(thrown) }))
  const door = await way.close()
  return {
    client: client.name,
    window,
    isManaged,
    isProcess: client.door === 'url',
    ownSummaries,
    ...sumRequests(records),
    steps: countSteps(calls),
    calls,
    callsBeforeRewrite,
    ...end,
    door,
    changes: comparison.readChanges(),
  }
}

interface Way {
  readonly fetch: Fetch
  readonly middleware: readonly unknown[]
  readonly baseUrl: string
  close(): Promise<DoorRecord>
}

async function openWay(
  { door, provider = CLAUDE, wrapProvider = (fetch) => fetch }: Client,
  options: SimulatorOptions,
  settings: Pick<RunSettings, 'isManaged'> &
    Pick<DoorOptions, 'window' | 'inMemory' | 'isLive' | 'onRewrite'>,
  { watchClient, clientMiddleware, watchProvider }: RequestComparison,
): Promise<Way> {
  const { isManaged, ...given } = settings
  if (door !== 'url') {
    const baseUrl = 'http://simulator.test'
    const simulator = createSimulator(options)
    const upstream = watchProvider(wrapProvider((input, init) => simulator.fetch(input, init)))
    const opened = { ...given, upstream, baseUrl, provider }
    const openManaged = door === 'fetch' ? openTidemarkDoor : openTidemarkMiddleware
    const way = isManaged ? await openManaged(opened) : openDirectDoor(opened)
    const middleware = [clientMiddleware, ...way.middleware]
    return { baseUrl, ...way, ...(door === 'fetch' ? { fetch: watchClient(way.fetch) } : { middleware }) }
  }
  const server = await serve(options)
  const upstream = watchProvider(wrapProvider(globalThis.fetch))
  const opened = { ...given, upstream, baseUrl: server.url, provider }
  const proxy = await (isManaged ? openTidemarkProxy : openDirectProxy)(opened, watchClient)
  return {
    fetch: globalThis.fetch,
    middleware: [],
    baseUrl: proxy.url,
    async close() {
      const record = await proxy.close()
      await server.close()
      return record
    },
  }
}

/** Paths that a model answers; others count tokens or list models. */
const ANSWERING = /\/(?:messages|responses|chat\/completions)$/

function sumRequests(records: readonly RequestRecord[]) {
  const requests = records.filter(({ endpoint }) => ANSWERING.test(endpoint))
  const sum = (pick: (record: RequestRecord) => number | null | undefined): number =>
    requests.reduce((total, record) => total + (pick(record) ?? 0), 0)
  const refused = requests.filter(({ status }) => status >= 400 && status < 500)
  return {
    requests: requests.length,
    refused: refused.length,
    refusals: [...new Set(refused.map(({ error }) => error?.message ?? ''))],
    cacheRead: sum(({ usage }) => usage?.cacheRead),
    cacheWritten: sum(({ usage }) => (usage === null ? 0 : usage.write5m + usage.write1h)),
    fresh: sum(({ usage }) => usage?.input),
    cost: sum(({ cost }) => cost?.total),
  }
}

/** The ids of the coder's calls tell the step; repairs of a step are not counted again. */
function countSteps(calls: readonly RunCall[]): number {
  return new Set(calls.map(({ id }) => /^toolu_coder_([0-9a-z]+)_/.exec(id)?.[1] ?? id)).size
}

function describeError(thrown: unknown): string {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return message.split('\n')[0] ?? ''
}
