/**
 * The job without Tidemark: a loop as in most tutorials. It sends the whole conversation with every request, with a cache marker on the
 * last message, until the model calls no more tools or the provider refuses.
 */
import { createManualClock, createSimulator } from '@tidemark/simulator'
import type { Tool } from 'tidemark'
import { createSystemPrompt } from '../agent/system-prompt.ts'
import { createAgentTools } from '../tools/agent-tools.ts'
import { createSeenFiles } from '../tools/seen-files.ts'
import { createSessionShells } from '../tools/shell-process.ts'
import { createRunBill, type RunBill } from './tour-bill.ts'
import { createTourModel, TOUR_PROMPTS, TOUR_TOOL_NAMES, type TourJobSettings } from './tour-job.ts'
import type { TourProject } from './tour-project.ts'

/** How the job without Tidemark ended. */
export interface PlainRun {
  /** The provider's refusal that ended the run; null if the job was finished. */
  readonly refusal: string | null
  /** Tool calls that were run. */
  readonly toolCalls: number
  readonly bill: RunBill
}

type Block = { readonly type: string; readonly [field: string]: unknown }

interface Message {
  readonly role: 'user' | 'assistant'
  readonly content: readonly Block[]
}

/** Runs the job until it is finished or the provider refuses. Rejects if it is aborted. */
export async function runPlainLoop(project: TourProject, settings: TourJobSettings): Promise<PlainRun> {
  const clock = createManualClock(Date.now())
  const { script } = createTourModel({ refusal: null })
  const simulator = createSimulator({
    script,
    clock,
    window: settings.window,
    keepRequests: Number.POSITIVE_INFINITY,
  })
  const shells = createSessionShells()
  const tools = pickTools(
    createAgentTools({
      cwd: project.folder,
      spillFolder: project.home,
      env: project.env,
      now: Date.now,
      seenFiles: createSeenFiles(project.folder),
      shells,
    }),
  )
  const base = { system: await computeSystemPrompt(project, settings), tools: toToolDefinitions(tools) }
  let messages: readonly Message[] = []
  let toolCalls = 0
  try {
    for (const { text, minutesBefore } of TOUR_PROMPTS) {
      await clock.advance(minutesBefore * 60_000)
      messages = [...messages, { role: 'user', content: [{ type: 'text', text }] }]
      for (;;) {
        settings.signal?.throwIfAborted()
        const answer = await sendMessages(simulator.fetch, { ...base, messages }, settings)
        if ('refusal' in answer) return { ...answer, toolCalls, bill: createRunBill(simulator.requests) }
        messages = [...messages, { role: 'assistant', content: answer.content }]
        const calls = answer.content.filter(({ type }) => type === 'tool_use')
        if (calls.length === 0) break
        toolCalls += calls.length
        const content = await Promise.all(calls.map((call) => runToolCall(call, tools, settings.signal)))
        messages = [...messages, { role: 'user', content }]
      }
    }
    return { refusal: null, toolCalls, bill: createRunBill(simulator.requests) }
  } finally {
    await shells.close()
  }
}

/** Sends the conversation with one cache marker, on its last block. */
async function sendMessages(
  fetch: (url: string, init: RequestInit) => Promise<Response>,
  body: { readonly system: string; readonly tools: readonly object[]; readonly messages: readonly Message[] },
  { model, maxTokens }: TourJobSettings,
): Promise<{ readonly content: readonly Block[] } | { readonly refusal: string }> {
  const response = await fetch('http://localhost/v1/messages', {
    method: 'POST',
    headers: {
      'x-api-key': 'none-needed',
      'anthropic-version': '2023-06-01',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ model, max_tokens: maxTokens, ...body, messages: markLastBlock(body.messages) }),
  })
  const answer = (await response.json()) as {
    readonly content: readonly Block[]
    readonly error?: { readonly message: string }
  }
  return response.ok ? { content: answer.content } : { refusal: answer.error?.message ?? 'refused' }
}

function markLastBlock(messages: readonly Message[]): readonly Message[] {
  return messages.map((message, index) => {
    if (index < messages.length - 1) return message
    const content = message.content.map((block, at) =>
      at < message.content.length - 1 ? block : { ...block, cache_control: { type: 'ephemeral' } },
    )
    return { ...message, content }
  })
}

type PlainTools = Readonly<Record<string, Tool>>

async function runToolCall(call: Block, tools: PlainTools, signal?: AbortSignal): Promise<Block> {
  const { id, name, input } = call
  const context = { id: String(id), name: String(name), signal: signal ?? new AbortController().signal }
  const output = await tools[String(name)]?.run(input as never, { ...context, progress: () => {} })
  const { content, isError = false } =
    typeof output === 'object' && output !== null && 'content' in output
      ? (output as { readonly content: unknown; readonly isError?: boolean })
      : { content: output ?? '' }
  return { type: 'tool_result', tool_use_id: id, content, ...(isError ? { is_error: true } : {}) }
}

function pickTools(all: PlainTools): PlainTools {
  return Object.fromEntries(Object.entries(all).filter(([name]) => TOUR_TOOL_NAMES.includes(name)))
}

function toToolDefinitions(tools: PlainTools): readonly object[] {
  return Object.entries(tools).map(([name, { description, inputSchema }]) => ({
    name,
    description,
    input_schema: inputSchema,
  }))
}

/** Returns the system prompt of the agent with Tidemark, without the sentence about the history tool. */
async function computeSystemPrompt(
  { folder, home }: TourProject,
  { model, window }: TourJobSettings,
): Promise<string> {
  const { sections } = createSystemPrompt({
    folder,
    isTrusted: false,
    env: process.env,
    model,
    shell: '/bin/sh',
    scratchFolder: home,
    tools: TOUR_TOOL_NAMES,
    today: new Date().toISOString().slice(0, 10),
    isUnattended: true,
    historyTool: null,
    windowTokens: window,
    appended: null,
  })
  const texts = await Promise.all(sections.map((each) => (typeof each === 'string' ? null : each.compute())))
  return texts.filter((text) => text !== null && text !== '').join('\n\n')
}
