/**
 * Follows the five journeys of ARCHITECTURE.md through the sources and prints how many files each enters, as JSON.
 * Run by `npm run journeys`; the figures are held by test/journeys.test.ts.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { createCoder, createSimulator, type Script, serve, withSummaries } from '@tidemark/simulator'
import { anthropic, createTidemark } from 'tidemark'
import { type JourneyFigures, startTrace, stopTrace } from './trace.ts'

const MODEL = 'claude-sonnet-5-5'
const SAMPLE = join(import.meta.dirname, '../../packages/cli/sample/login-bug.jsonl')

/** From a prompt until the bytes of its first request reach `fetch`. */
async function tracePrompt(): Promise<JourneyFigures | null> {
  const coder = createCoder({ turns: 4, resultTokens: 500 })
  const simulator = createSimulator({ script: withSummaries(coder.script) })
  let figures: JourneyFigures | null = null
  const fetch: typeof globalThis.fetch = (url, init) => {
    figures ??= stopTrace()
    return simulator.fetch(url, init)
  }
  const model = anthropic(MODEL, { apiKey: 'any', fetch })
  const tide = createTidemark({ model, system: 'You are a coder.', memory: true, env: {} })
  const session = await tide.open('journey')
  startTrace()
  await session.run('Fix it.', { tools: coder.tools, runTool: (call) => readResult(coder, call) }).outcome
  await tide.close()
  return figures
}

/** From the last response before an automatic compaction until its records are in the log. */
async function traceCompaction(): Promise<JourneyFigures | null> {
  const coder = createCoder({ turns: 60, resultTokens: 2_500 })
  const { fetch } = createSimulator({ script: withSummaries(coder.script) })
  const model = anthropic(MODEL, { apiKey: 'any', fetch, window: 60_000, maxOutput: 4_000 })
  const tide = createTidemark({ model, system: 'You are a coder.', memory: true, env: {} })
  const session = await tide.open('journey')
  let figures: JourneyFigures | null = null
  session.on('*', ({ type }) => {
    if (figures === null && type === 'answered') startTrace()
    if (type === 'compact') figures ??= stopTrace()
  })
  const options = {
    tools: coder.tools,
    runTool: (call: Parameters<typeof readResult>[1]) => readResult(coder, call),
  }
  for (let turn = 0; turn < 14 && figures === null; turn += 1) {
    await session.run('Continue with the next function.', options).outcome
  }
  await tide.close()
  return figures
}

function readResult(
  coder: ReturnType<typeof createCoder>,
  call: Parameters<typeof coder.toolResult>[0],
): string {
  return String(coder.toolResult(call).content)
}

/** From a log of the sample session until its page is written. */
async function traceInspect(): Promise<JourneyFigures> {
  const { main } = await import('@tidemark/cli')
  startTrace()
  await main(['inspect', SAMPLE], quietTerminal({}))
  return stopTrace()
}

/** From a client's third request, with two answered ones before it, until its bytes go out through `tide.fetch`. */
async function traceClient(): Promise<JourneyFigures | null> {
  const { fetch: send } = createSimulator({ script: () => ({ blocks: [{ type: 'text', text: 'Done.' }] }) })
  let figures: JourneyFigures | null = null
  let requests = 0
  const upstream: typeof globalThis.fetch = (url, init) => {
    requests += 1
    if (requests === 3) figures = stopTrace()
    return send(url, init)
  }
  const tide = createTidemark({ model: anthropic(MODEL, { apiKey: 'any' }), memory: true, env: {} })
  const fetch = tide.fetch({ session: 'journey', fetch: upstream })
  const messages: { role: string; content: string }[] = []
  for (const content of ['Hello.', 'Read the file.', 'Fix it.']) {
    messages.push({ role: 'user', content })
    if (messages.length === 5) startTrace()
    const response = await fetch('https://api.anthropic.com/v1/messages', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': 'any', 'anthropic-version': '2023-06-01' },
      body: JSON.stringify({ model: MODEL, max_tokens: 1_000, messages }),
    })
    await response.text()
    messages.push({ role: 'assistant', content: 'Done.' })
  }
  await tide.close()
  return figures
}

/** One turn of `tidemark chat -p` with a permission question, files of the CLI only. */
async function traceChat(): Promise<JourneyFigures> {
  const { runChatCommand } = await import('../../packages/agent/src/commands/chat.ts')
  const script: Script = (_, { turn }) =>
    turn === 0
      ? { blocks: [{ type: 'tool_use', name: 'Write', input: { file_path: 'new.txt', content: 'new\n' } }] }
      : { blocks: [{ type: 'text', text: 'Done.' }] }
  const home = mkdtempSync(join(tmpdir(), 'tidemark-journey-'))
  writeFileSync(join(home, 'README.md'), '# Project\n')
  const server = await serve({ script })
  const env = { HOME: home, TIDEMARK_HOME: join(home, 'data'), ANTHROPIC_BASE_URL: server.url }
  const choices = { outputFormat: 'text', inputFormat: 'text', cwd: home, prompt: 'Write it.' } as const
  startTrace()
  await runChatCommand(choices, { ...quietTerminal(env), ask: async () => 'y' }, Readable.from([]))
  const figures = stopTrace((file) => /^(agent|terminal)\//.test(file))
  await server.close()
  rmSync(home, { recursive: true, force: true, maxRetries: 10 })
  return figures
}

function quietTerminal(env: Readonly<Record<string, string>>) {
  const isTty = env.HOME !== undefined
  return {
    write: () => {},
    warn: () => {},
    env,
    columns: 100,
    isTty,
    isInputTty: isTty,
    isErrorTty: isTty,
  }
}

const figures = {
  'prompt to bytes': await tracePrompt(),
  'automatic compaction': await traceCompaction(),
  inspect: await traceInspect(),
  "client's request to bytes": await traceClient(),
  'chat turn with a question, CLI part': await traceChat(),
}
console.log(JSON.stringify(figures, null, 2))
