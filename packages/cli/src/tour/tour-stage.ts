/**
 * Where the tour is played: the sample session in a folder of its own, a simulated model with a small window, and
 * time that passes as it is told to. No key, no server, no network.
 */
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createCoder, createSimulator, manualClock, withSummaries } from '@tidemark/simulator'
import {
  anthropic,
  createDeadlines,
  createTidemark,
  sessionPaths,
  type Tidemark,
  type ToolContext,
  type Tools,
} from 'tidemark'
import { SAMPLE_PATH } from '../sample.ts'

export const WINDOW = 40_000
export const SESSION = 'login-bug'

export interface Stage {
  readonly tools: Tools
  readonly tide: Tidemark
  /** Time goes by. */
  pass(ms: number): Promise<void>
  clear(): Promise<void>
}

export async function setStage(): Promise<Stage> {
  const home = await mkdtemp(join(tmpdir(), 'tidemark-tour-'))
  const { log } = sessionPaths(home, SESSION)
  await mkdir(dirname(log), { recursive: true })
  await copyFile(SAMPLE_PATH, log)
  const clock = manualClock(Date.now())
  const coder = createCoder({ turns: 30, resultTokens: 1_200, thinkingTokens: 0 })
  const { fetch } = createSimulator({ script: withSummaries(coder.script), clock, window: WINDOW })
  const model = anthropic('claude-sonnet-4-5', { apiKey: 'none-needed', fetch, window: WINDOW })
  return {
    tools: toolsOf(coder),
    tide: createTidemark({
      model,
      home,
      env: {},
      clock,
      deadlines: createDeadlines(clock),
      system: 'You are a careful engineer. You look before you change anything.',
      history: true,
    }),
    pass: (ms) => clock.advance(ms),
    clear: () => rm(home, { recursive: true, force: true }),
  }
}

function toolsOf(coder: ReturnType<typeof createCoder>): Tools {
  return Object.fromEntries(
    coder.tools.map(({ name, description, input_schema }) => [
      String(name),
      {
        description: String(description),
        inputSchema: Object(input_schema),
        run: (input: never, { id, name: tool }: ToolContext) =>
          String(coder.toolResult({ type: 'tool_use', id, name: tool, input }).content),
      },
    ]),
  )
}
