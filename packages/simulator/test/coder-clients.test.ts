/** The coder behind the server, as a client with its own tools and files meets it. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sampleCases } from '@tidemark/core/testing'
import { type CoderOptions, createCoder, serve, withSummaries } from '@tidemark/simulator'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Block, type MessageParam, toBlocks } from '../src/protocol/messages-request.ts'
import { CLIENT_STYLES, type ClientStyle, type ClientTools, createClientTools } from './client-tools.ts'

let directory = ''

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'coder-client-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

interface WorkOptions extends CoderOptions {
  /** Runs before each request, with the messages so far; returns those to send. */
  readonly before?: (messages: MessageParam[], client: ClientTools, request: number) => MessageParam[]
  /** Returns what arrives of a response. */
  readonly arrived?: (content: readonly Block[], request: number) => readonly Block[]
}

interface Worked {
  readonly statuses: ReadonlySet<number>
  readonly requests: number
  readonly lastText: string
  readonly errors: readonly string[]
  readonly wrongFiles: readonly string[]
}

async function post(url: string, body: object): Promise<{ status: number; content: readonly Block[] }> {
  const response = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': 'any', 'anthropic-version': '2023-06-01', 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'claude-opus-5', max_tokens: 8_000, ...body }),
  })
  const { content = [] } = (await response.json()) as { readonly content?: readonly Block[] }
  return { status: response.status, content }
}

/** Lets the coder work over HTTP until its final text, and compares the files with those that it should have written. */
async function work(
  style: ClientStyle,
  { before = (messages) => messages, arrived = (content) => content, ...options }: WorkOptions,
): Promise<Worked> {
  const coder = createCoder({ files: 3, resultTokens: 100, ...options })
  const served = await serve({ script: withSummaries(coder.script) })
  const client = createClientTools(style, directory)
  const statuses = new Set<number>()
  let messages: MessageParam[] = [{ role: 'user', content: 'Raise the limits.' }]
  let requests = 0
  try {
    for (;;) {
      messages = before(messages, client, requests)
      requests += 1
      const request = { system: style.system(directory), tools: style.tools, messages }
      const { status, content: whole } = await post(served.url, request)
      statuses.add(status)
      const content = arrived(whole, requests)
      const calls = content.filter(({ type }) => type === 'tool_use')
      if (calls.length === 0 && content.length < whole.length) {
        messages = [...messages, { role: 'assistant', content }, { role: 'user', content: 'Continue.' }]
        continue
      }
      if (calls.length === 0) {
        const files = coder.clientFiles(options.turns ?? 24)
        const wrongFiles = [...files].filter(([path, text]) => readFile(path) !== text).map(([path]) => path)
        return { statuses, requests, lastText: String(content[0]?.text), errors: client.errors, wrongFiles }
      }
      messages = [...messages, { role: 'assistant', content }, client.run(calls)]
    }
  } finally {
    await served.close()
  }
}

function readFile(path: string): string | null {
  try {
    return readFileSync(join(directory, 'tidemark-coder', path), 'utf8')
  } catch {
    return null
  }
}

const isTestFailure = (error: string): boolean => /^FAIL \w+$/m.test(error)

describe.skipIf(process.platform === 'win32')('the coder with the tools of a client', () => {
  it.each(sampleCases(Object.entries(CLIENT_STYLES), 3))(
    '%s: works 50 steps on files that it writes',
    async (_, style) => {
      const worked = await work(style, { turns: 50 })
      expect(worked).toMatchObject({ statuses: new Set([200]), requests: 51, wrongFiles: [] })
      expect(worked.lastText).toMatch(/^Task 1 done after 50 steps/)
      expect(worked.errors.filter((error) => !isTestFailure(error))).toEqual([])
    },
  )

  it.each(sampleCases(Object.entries(CLIENT_STYLES), 2))('%s: one call at a time', async (_, style) => {
    const worked = await work(style, { turns: 20, files: 1, parallel: 1 })
    expect(worked).toMatchObject({ statuses: new Set([200]), requests: 21, wrongFiles: [] })
  })

  it('runs tests that fail and tests that pass', async () => {
    const { errors } = await work(CLIENT_STYLES.CLAUDE_CODE, { turns: 50 })
    expect(errors.filter(isTestFailure).length).toBe(6)
  })

  it('reads a file that must be read first, and then edits it', async () => {
    const worked = await work(CLIENT_STYLES.PI, {
      turns: 40,
      before: (messages, client, request) => {
        if (request % 5 === 0) client.forgetReads()
        return messages
      },
    })
    expect(worked.errors.filter((error) => error.includes('Read it first')).length).toBeGreaterThan(2)
    expect(worked).toMatchObject({ statuses: new Set([200]), wrongFiles: [] })
    expect(worked.requests).toBeGreaterThan(41)
  })

  it('writes a file again that was deleted', async () => {
    const worked = await work(CLIENT_STYLES.OPENCODE, {
      turns: 40,
      before: (messages, _client, request) => {
        if (request === 12) rmSync(join(directory, 'tidemark-coder'), { recursive: true })
        return messages
      },
    })
    expect(worked.statuses).toEqual(new Set([200]))
    // The coder notices a missing file only when it works on it.
    expect(worked.wrongFiles.filter((path) => !path.startsWith('reports/'))).toEqual([])
  })

  it('starts anew where an earlier run has left its files', async () => {
    await work(CLIENT_STYLES.CLAUDE_CODE, { turns: 20, seed: 'earlier' })
    const worked = await work(CLIENT_STYLES.CLAUDE_CODE, { turns: 20 })
    expect(worked).toMatchObject({ statuses: new Set([200]), wrongFiles: [] })
  })

  const SUMMARY = 'This session continues an earlier conversation. Summary: limits.'

  it('goes on after compactions that leave only a summary', async () => {
    const worked = await work(CLIENT_STYLES.CLAUDE_CODE, {
      turns: 60,
      before: (messages, client) => {
        if (messages.length < 20) return messages
        client.forgetReads()
        return [{ role: 'user', content: SUMMARY }]
      },
    })
    expect(worked).toMatchObject({ statuses: new Set([200]), wrongFiles: [] })
    expect(worked.lastText).toMatch(/^Task 1 done after 60 steps/)
  })

  it('repairs a change that failed just before a compaction', async () => {
    let compactions = 0
    const worked = await work(CLIENT_STYLES.CLAUDE_CODE, {
      turns: 40,
      before: (messages, client, request) => {
        if (request % 4 === 0) client.forgetReads()
        if (!JSON.stringify(messages.at(-1)).includes('Read it first')) return messages
        compactions += 1
        return [{ role: 'user', content: SUMMARY }]
      },
    })
    expect(compactions).toBeGreaterThan(2)
    expect(worked).toMatchObject({ statuses: new Set([200]), wrongFiles: [] })
  })

  it('makes the calls that are missing where a response broke off, and looks at what an interrupted one did', async () => {
    const worked = await work(CLIENT_STYLES.CLAUDE_CODE, {
      turns: 40,
      arrived: (content, request) => (request % 3 === 2 ? content.slice(0, 1 + (request % 2)) : content),
      before: (messages, client, request) => {
        if (request % 4 !== 3) return messages
        client.forgetReads()
        const results = toBlocks(messages.at(-1)?.content ?? '').map((result) => ({
          ...result,
          content: 'The call was interrupted.',
          is_error: true,
        }))
        return [...messages.slice(0, -1), { role: 'user', content: results }]
      },
    })
    expect(worked).toMatchObject({ statuses: new Set([200]), wrongFiles: [] })
    expect(worked.lastText).toMatch(/^Task 1 done after 40 steps/)
  })

  it('goes on if every call fails', async () => {
    const denied: ClientStyle = { ...CLIENT_STYLES.CLAUDE_CODE, actions: {} }
    const worked = await work(denied, { turns: 12 })
    expect(worked.statuses).toEqual(new Set([200]))
    expect(worked.lastText).toMatch(/^Task 1 done after 12 steps/)
  })
})

describe('requests of a client beside its conversation', () => {
  async function ask(body: object): Promise<readonly Block[]> {
    const served = await serve({ script: createCoder().script })
    try {
      const { status, content } = await post(served.url, body)
      expect(status).toBe(200)
      return content
    } finally {
      await served.close()
    }
  }

  it('without tools get a short text', async () => {
    const messages = [{ role: 'user', content: 'Generate a title for this conversation.' }]
    expect(await ask({ messages })).toEqual([
      { type: 'text', text: 'Generate a title for this conversation.' },
    ])
  })

  it('with tools that the coder has no use for get a short text', async () => {
    const tools = [
      { name: 'weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } },
    ]
    expect(await ask({ tools, messages: [{ role: 'user', content: 'Rain?' }] })).toEqual([
      { type: 'text', text: 'Rain?' },
    ])
  })

  it('with a schema get JSON that fits it', async () => {
    const schema = {
      type: 'object',
      properties: { title: { type: 'string' }, isNew: { type: 'boolean' } },
      required: ['title', 'isNew'],
      additionalProperties: false,
    }
    const [block] = await ask({
      output_config: { format: { type: 'json_schema', schema } },
      messages: [{ role: 'user', content: 'Title?' }],
    })
    expect(JSON.parse(String(block?.text))).toEqual({ title: 'none', isNew: false })
  })

  it.skipIf(process.platform === 'win32')('do not change where the coder stands', async () => {
    const coder = createCoder({ turns: 20 })
    const served = await serve({ script: coder.script })
    const style = CLIENT_STYLES.PI
    const client = createClientTools(style, directory)
    const system = style.system(directory)
    let messages: MessageParam[] = [{ role: 'user', content: 'Raise the limits.' }]
    try {
      for (let request = 0; request < 6; request += 1) {
        const { content } = await post(served.url, { system, tools: style.tools, messages })
        messages = [
          ...messages,
          { role: 'assistant', content },
          client.run(content.filter((block) => block.type === 'tool_use')),
        ]
        await post(served.url, { messages: [{ role: 'user', content: 'A title, please.' }] })
      }
      const summary = { role: 'user', content: 'This session continues a conversation. Summary: limits.' }
      const { content } = await post(served.url, { system, tools: style.tools, messages: [summary] })
      expect(String(content[0]?.text)).toMatch(/^Step 7 of 20: /)
    } finally {
      await served.close()
    }
  })
})
