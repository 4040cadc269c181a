/**
 * How long a large body keeps other requests waiting: the longest hold of the event loop while it is handled, beside
 * JSON.parse of the same body.
 */
import { serve } from '@tidemark/simulator'
import { serveLoopbackProxy } from 'tidemark/internal'
import type { BenchCase } from '../harness/bench-case.ts'
import { measureEventLoopHold } from '../harness/event-loop-hold.ts'
import { startPostingThread } from '../harness/post-from-thread.ts'

const BYTES = 14_000_000
const MODEL = 'claude-opus-5'
const LINE = 'const total = rows.reduce((sum, row) => sum + row.price, 0) // "sum" of all rows\n'

/** A conversation of an agent that reads files; by default with results of 40,000 characters. */
function buildMessages(lines = 500): readonly object[] {
  const messages: object[] = [{ role: 'user', content: 'Read all files.' }]
  const text = LINE.repeat(lines)
  for (let number = 0; number * text.length < BYTES; number += 1) {
    const id = `toolu_${number}`
    messages.push(
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id, name: 'Read', input: { file_path: `/src/${number}.ts` } }],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: id, content: `// File ${number}\n${text}` }],
      },
    )
  }
  return messages
}

const TOOLS = [{ name: 'Read', input_schema: { type: 'object' } }]

function writeBody(messages: readonly object[]): string {
  return JSON.stringify({ model: MODEL, max_tokens: 100, tools: TOOLS, messages })
}

/** Runs of one sample. The least of their longest holds counts: a collection of garbage lengthens one by chance. */
const RUNS = 3

async function measureLeastHold(
  work: () => Promise<unknown>,
  before: () => Promise<unknown> = async () => null,
): Promise<number> {
  const holds: number[] = []
  for (let run = 0; run < RUNS; run += 1) {
    await before()
    globalThis.gc?.()
    holds.push((await measureEventLoopHold(work)).longestMs)
  }
  return Math.min(...holds)
}

function createParseSide(text: string): () => Promise<number> {
  return () => measureLeastHold(async () => JSON.parse(text))
}

/** A client joins with its whole history: nothing of it is in the log. With `isAgain`, it then sends the same once more. */
function createJoinCase(name: string, lines: number, atMost: number, isAgain = false): BenchCase {
  const what = isAgain ? 'sent again after a compaction' : 'that nobody has seen'
  return {
    name,
    compares: `the longest hold of the event loop by a client's list of ${BYTES / 1e6} MB in results of ${lines} lines ${what} with JSON.parse of it`,
    bound: { atMost },
    async prepare() {
      const text = writeBody(buildMessages(lines))
      const thread = await startPostingThread()
      await thread.load(text)
      const start = () => serveLoopbackProxy({ upstream: thread.api, token: 'bench', memory: true, env: {} })
      let proxy = await start()
      const post = () => thread.post(`${proxy.url}/v1/messages`)
      const beginAgain = async (): Promise<void> => {
        await proxy.close()
        proxy = await start()
        if (isAgain) await post()
      }
      await post()
      return {
        isSelfTimed: true,
        subject: () => measureLeastHold(post, beginAgain),
        baseline: createParseSide(text),
        async close() {
          await thread.close()
          await proxy.close()
        },
      }
    },
  }
}

export const benchCases: readonly BenchCase[] = [
  createJoinCase('large-body-join', 500, 2),
  // The goal is 2 for these, too.
  createJoinCase('many-messages-join', 50, 4),
  createJoinCase('many-messages-again', 50, 6, true),
  {
    name: 'large-body-simulate',
    compares: `the longest hold of the event loop by a body of ${BYTES / 1e6} MB to the simulator with JSON.parse of it`,
    bound: { atMost: 2 },
    async prepare() {
      const text = writeBody(buildMessages())
      const server = await serve()
      const thread = await startPostingThread()
      const post = () => thread.post(`${server.url}/v1/messages`)
      await thread.load(text)
      await post()
      return {
        isSelfTimed: true,
        subject: () => measureLeastHold(post),
        baseline: createParseSide(text),
        async close() {
          await thread.close()
          await server.close()
        },
      }
    },
  },
  {
    name: 'large-body-watch',
    compares: `the longest hold of the event loop by a client's list of ${BYTES / 1e6} MB that goes on with JSON.parse of it`,
    bound: { atMost: 2 },
    async prepare() {
      const messages = [...buildMessages()]
      const thread = await startPostingThread()
      const options = { upstream: thread.api, token: 'bench', memory: true, env: {} }
      const proxy = await serveLoopbackProxy(options)
      const post = () => thread.post(`${proxy.url}/v1/messages`)
      await thread.load(writeBody(messages))
      await post()
      const goOn = (): Promise<unknown> => {
        messages.push({ role: 'assistant', content: 'Done.' }, { role: 'user', content: 'Go on.' })
        return thread.load(writeBody(messages))
      }
      return {
        isSelfTimed: true,
        subject: () => measureLeastHold(post, goOn),
        baseline: createParseSide(writeBody(messages)),
        async close() {
          await thread.close()
          await proxy.close()
        },
      }
    },
  },
]
