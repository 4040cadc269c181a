/**
 * A client that caches by itself and runs past its context window, in four ways: as it is, with `tide.fetch`, with the
 * provider's compaction at a threshold, and with a summary that the client asks for itself. Beside the bill it is counted
 * what the last request still has of what was said, decided, changed and found in the first half of the run.
 */
import {
  type Coder,
  createCoder,
  createSimulator,
  type RequestRecord,
  withSummaries,
} from '@tidemark/simulator'
import { anthropic, createTidemark, type PolicyOverrides, type SessionEvent } from 'tidemark'
import { ClientAgent, type ClientMessage, type Fetch, withMarkers } from './client-agent.ts'

export const LONG_WAYS = ['direct', 'compaction beta', 'homemade summary', 'Tidemark'] as const
export type LongWay = (typeof LONG_WAYS)[number]

export const LONG_WORKS = ['queries', 'rereads', 'edits'] as const
export type LongWork = (typeof LONG_WORKS)[number]

export interface LongRunSettings {
  readonly way: LongWay
  readonly window: number
  readonly steps: number
  /**
   * `queries`: one query after the other, with results of one size. `rereads`: edits and tests files, and reads them anew
   * for each change. `edits`: the same, but reads only files whose lines to edit are not in view.
   */
  readonly work: LongWork
  /** Tokens of a tool result; with files, of one that has a file or a test run. */
  readonly resultTokens: number
  /** Number of source files, each with a test. Default: 6. */
  readonly files?: number
  readonly seed?: string
  /** Tokens of the system prompt. */
  readonly systemTokens: number
  readonly policy?: PolicyOverrides
}

/** The client of the bench: about 1,200 tokens a step. */
export const LONG_RUN = {
  work: 'queries',
  window: 200_000,
  resultTokens: 1_250,
  systemTokens: 30_000,
} as const

/** Number of things of one kind in the first half of the run, and of those that the last request still has. */
export interface KeptCount {
  readonly kept: number
  readonly all: number
}

export interface LongRun {
  readonly way: LongWay
  readonly steps: number
  readonly dollars: number
  /** The bill after each answered request of the client. */
  readonly bills: readonly number[]
  readonly refused: number
  /** Compactions, clearings, and summaries in the place of the conversation. */
  readonly rewrites: number
  /** Steps before the first of them; null if there was none. */
  readonly firstRewrite: number | null
  readonly error: string | null
  /** The user's prompts, what the model said that it does, the files that it changed, and lines in results of tools. */
  readonly words: KeptCount
  readonly reasons: KeptCount
  readonly files: KeptCount
  readonly findings: KeptCount
}

/** Share of the window at which the provider compacts (150,000 of 200,000), and at which the client itself does. */
const [BETA_SHARE, HOMEMADE_SHARE] = [0.75, 0.8]

const STEPS_PER_PROMPT = 25
const MODEL = 'claude-sonnet-5-5'

export async function runLongClient(settings: LongRunSettings): Promise<LongRun> {
  const { way, window, steps } = settings
  const turns = Math.min(STEPS_PER_PROMPT, steps)
  const coder = createWork(settings, turns)
  const provider = openProvider(coder, window)
  const tide = way === 'Tidemark' ? openTidemark(settings, provider.fetch) : null
  const log = createWorkLog()
  const planting: Work = { ...coder, toolResult: (call) => log.plant(call, coder.toolResult(call)) }
  const host = new ClientAgent(tide?.fetch ?? provider.fetch, planting, createClientSettings(settings))
  const bills: number[] = []
  let [summaries, firstRewrite] = [0, null as number | null]
  const countRewrites = () => summaries + (tide?.countRewrites() ?? 0)
  const takeStep = async (): Promise<boolean> => {
    if (way === 'homemade summary' && countPrompt(provider.records.at(-1)) > HOMEMADE_SHARE * window) {
      await summarize(host)
      summaries += 1
    }
    const isWorking = await host.step()
    log.readResponse(host.messages)
    bills.push(sumCosts(provider.records))
    if (way === 'compaction beta' && dropCompacted(host)) summaries += 1
    if (countRewrites() > 0) firstRewrite ??= log.countSteps()
    return isWorking
  }
  let error: string | null = null
  try {
    for (let part = 0; part < steps / turns; part += 1) {
      host.messages.push({ role: 'user', content: log.addPrompt(part) })
      while (await takeStep());
    }
  } catch (thrown) {
    error = thrown instanceof Error ? thrown.message : String(thrown)
  }
  await tide?.close()
  return {
    way,
    steps: log.countSteps(),
    dollars: sumCosts(provider.records),
    bills,
    refused: provider.records.filter(({ status }) => status >= 400).length,
    rewrites: countRewrites(),
    firstRewrite,
    error,
    ...log.countKept(provider.readLastBody()),
  }
}

type Work = Pick<Coder, 'script' | 'tools' | 'toolResult'>

function createWork({ work, resultTokens, files = 6, seed = 'coder' }: LongRunSettings, turns: number): Work {
  if (work === 'queries') return createQueries({ turns, resultTokens })
  return createCoder({ turns, resultTokens, files, seed, reads: work === 'edits' ? 'unseen' : 'each-job' })
}

/** Plays a model that makes one query a step, and says why. */
function createQueries({
  turns,
  resultTokens,
}: {
  readonly turns: number
  readonly resultTokens: number
}): Work {
  const properties = { service: { type: 'string' }, order: { type: 'string' } }
  const input_schema = { type: 'object', properties, required: ['service', 'order'] }
  let made = 0
  return {
    tools: [
      { name: 'query_logs', description: 'Returns the log lines of a service about an order.', input_schema },
    ],
    script() {
      made += 1
      const order = createCode('order', made)
      if (made % (turns + 1) === 0)
        return { blocks: [{ type: 'text', text: `Done: the last was ${order}.` }] }
      const text = `Next: ${order} was billed twice.`
      const input = { service: `shop-${made % 40}`, order }
      return {
        blocks: [
          { type: 'text', text },
          { type: 'tool_use', id: `toolu_query_${made}`, name: 'query_logs', input },
        ],
      }
    },
    toolResult({ id }) {
      const lines = Array.from(
        { length: Math.ceil((resultTokens * 4) / 60) },
        (_, line) =>
          `12:${String(line % 60).padStart(2, '0')}:07 shop ${createCode('event', Number(String(id).slice(12)) * 1_000 + line)} took the payment, waits`,
      )
      return { type: 'tool_result', tool_use_id: String(id), content: lines.join('\n') }
    },
  }
}

function openProvider({ script }: Work, window: number) {
  const records: RequestRecord[] = []
  const simulator = createSimulator({
    script: withSummaries(script),
    window,
    seed: 'long',
    keepRequests: 1,
    onRequest: (record) => void records.push(record),
  })
  let body = ''
  const fetch: Fetch = (input, init) => {
    body = String(init?.body)
    return simulator.fetch(input, init)
  }
  return { fetch, records, readLastBody: () => body }
}

function sumCosts(records: readonly RequestRecord[]): number {
  return records.reduce((sum, { cost }) => sum + (cost?.total ?? 0), 0)
}

function createClientSettings({ way, window, systemTokens }: LongRunSettings) {
  const system = 'You are a careful coder. You read before you write. '.repeat(Math.round(systemTokens / 12))
  if (way !== 'compaction beta') return { system, model: MODEL, prepare: withMarkers }
  const trigger = { type: 'input_tokens', value: Math.round(BETA_SHARE * window) }
  const context_management = { edits: [{ type: 'compact_20260112', trigger }] }
  const headers = { 'anthropic-beta': 'compact-2026-01-12' }
  return { system, model: MODEL, prepare: withMarkers, headers, fields: { context_management } }
}

function openTidemark({ window, policy = {} }: LongRunSettings, upstream: Fetch) {
  const events: SessionEvent[] = []
  const tide = createTidemark({
    model: anthropic(MODEL, { apiKey: 'any', fetch: upstream, window }),
    memory: true,
    env: {},
    policy,
    onEvent: (event) => {
      if (event.type === 'rewritten') events.push(event)
    },
  })
  return {
    fetch: tide.fetch({ session: 'long', fetch: upstream }),
    countRewrites: () => events.length,
    close: () => tide.close(),
  }
}

function countPrompt(record: RequestRecord | undefined): number {
  const usage = record?.usage
  if (usage === null || usage === undefined) return 0
  return usage.input + usage.cacheRead + usage.write5m + usage.write1h
}

/** Asks for a summary of the conversation with what is cached of it, and goes on from the summary alone. */
async function summarize(host: ClientAgent): Promise<void> {
  const last = host.messages.pop()
  const question = 'Summarize this conversation inside <summary></summary> tags, so that the work can go on.'
  const content = typeof last?.content === 'string' ? [{ type: 'text', text: last.content }] : last?.content
  host.messages.push({ role: 'user', content: [...(content ?? []), { type: 'text', text: question }] })
  const response = await host.send()
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  const blocks: readonly { readonly text?: string }[] = JSON.parse(text).content
  const summary = blocks.map((block) => block.text ?? '').join('')
  host.messages = [
    { role: 'user', content: `The conversation was summarized. Continue the session.\n${summary}` },
  ]
}

/** Drops the messages before the newest compaction block, which the provider ignores. Returns true if there is a new one. */
function dropCompacted(host: ClientAgent): boolean {
  const at = host.messages.findLastIndex(
    ({ content }) => typeof content !== 'string' && content.some(({ type }) => type === 'compaction'),
  )
  if (at <= 0) return false
  host.messages = host.messages.slice(at)
  return true
}

/** Records what the run had, to be looked for in its last request. */
function createWorkLog() {
  const [prompts, reasons, files, findings] = [[], [], [], []] as [string[], string[], string[], string[]]
  const steps = new Set<string>()
  const count = (things: readonly string[], body: string, isSaidOnce = false): KeptCount => {
    const half = Math.ceil(things.length / 2)
    const later = new Set(things.slice(half))
    const early = [...new Set(things.slice(0, half))].filter((text) => !isSaidOnce || !later.has(text))
    return { kept: early.filter((text) => body.includes(text)).length, all: early.length }
  }
  return {
    addPrompt(part: number): string {
      const text = `Part ${part + 1}: raise the limits, and write ${createCode('rule', part)} into the changelog of this part.`
      prompts.push(text)
      return text
    },
    /** Adds a line to the result of one call in five. */
    plant({ id: callId }: Parameters<Work['toolResult']>[0], result: ReturnType<Work['toolResult']>) {
      const id = String(callId)
      const step = /^toolu_[a-z]+_([0-9a-z]+)/.exec(id)?.[1] ?? id
      if (steps.has(step) || steps.add(step).size % 5 !== 0) return result
      const line = `note: the limit was set by ticket ${createCode('ticket', steps.size)}`
      findings.push(line)
      return { ...result, content: `${String(result.content)}\n${line}` }
    },
    readResponse(messages: readonly ClientMessage[]): void {
      const newest = messages.findLast(({ role }) => role === 'assistant')
      const blocks = typeof newest?.content === 'string' ? [] : (newest?.content ?? [])
      for (const { type, text, name, input } of blocks) {
        if (type === 'text') reasons.push(/: (.*?)\./.exec(String(text))?.[1] ?? String(text))
        if (type === 'tool_use' && name === 'Edit') files.push(String(Object(input).file_path))
      }
    },
    countSteps: () => steps.size,
    countKept: (body: string) => ({
      words: count(prompts, body),
      reasons: count(reasons, body, true),
      files: count(files, body),
      findings: count(findings, body),
    }),
  }
}

/** A word that occurs nowhere else: with as many characters as any other, it is not the beginning of one either. */
function createCode(kind: string, number: number): string {
  return `${kind}-${(0x9e3779b1 * (number + 7)).toString(36).padStart(8, '0').slice(-8)}`
}
