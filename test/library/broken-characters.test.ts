/** Half characters (lone surrogates), which a provider refuses for good: none of them reaches a request. */
import type { Script } from '@tidemark/simulator'
import { assistant, attachment, hostSource, section, toolResult, user } from 'tidemark'
import { createMemoryJournal, type MemoryStore } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { createTestTidemark } from '../support/test-tidemark.ts'

const HALF = '😀'.slice(0, 1)
const OTHER_HALF = '😀'.slice(1)
const BROKEN = `one ${HALF} two ${OTHER_HALF} three`

const obedient: Script = ({ messages, kind }) => {
  if (kind === 'compaction') return { blocks: [{ type: 'text', text: 'All is well.' }] }
  const isAnswered = JSON.stringify(messages.at(-1)?.content).includes('tool_result')
  return {
    blocks: [isAnswered ? { type: 'text', text: 'Done.' } : { type: 'tool_use', name: 'Read', input: {} }],
  }
}

describe('half characters', () => {
  it('are refused by the provider, and so by the simulator', async () => {
    const { simulator } = createTestTidemark()
    const ask = async (text: string): Promise<unknown> => {
      const body = { model: 'claude-sonnet-5-5', max_tokens: 9, messages: [{ role: 'user', content: text }] }
      const headers = {
        'x-api-key': 'any',
        'anthropic-version': '2023-06-01',
        'content-type': 'application/json',
      }
      const response = await simulator.fetch('http://simulator.test/v1/messages', {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
      return [response.status, JSON.parse(await response.text()).error?.message]
    }
    const place = 'line 1 column 83 (char 82)'
    const message = 'The request body is not valid JSON: '
    expect(await ask(HALF)).toEqual([400, `${message}no low surrogate in string: ${place}`])
    expect(await ask(OTHER_HALF)).toEqual([400, `${message}invalid high surrogate in string: ${place}`])
    expect(await ask('😀 \\ud83d "\\" é')).toEqual([200, undefined])
  })

  it('of users, tools, system prompts, sources and instructions do not end the session', async () => {
    const world = createTestTidemark({
      script: obedient,
      system: { sections: [section('rules', () => BROKEN)] },
      carriers: [hostSource({ name: 'board', read: () => [{ id: 'one', text: BROKEN }] })],
    })
    const session = await world.tide.open('talk')
    const tools = { Read: { description: BROKEN, run: () => BROKEN.repeat(300) } }
    await session.append(attachment('selection', BROKEN))
    for (const prompt of [BROKEN, [{ type: 'text', text: BROKEN }], 'Go on.', 'And on.'])
      expect(await session.run(prompt, { tools }).outcome).toMatchObject({ ok: true, text: 'Done.' })
    await session.compact({ instructions: BROKEN, summarizer: 'local' })
    expect(await session.run('Go on.', { tools }).outcome).toMatchObject({ ok: true })
    await session.compact({ instructions: BROKEN })
    expect(world.simulator.requests.map(({ status }) => status)).not.toContain(400)
    expect(world.bodies.filter((body) => !JSON.stringify(JSON.parse(body)).isWellFormed())).toEqual([])
    expect(world.bodies.filter((body) => /\\ud[89a-f]/i.test(body))).toEqual([])
  })

  it('in an own loop are repaired on the way in', async () => {
    const world = createTestTidemark({ script: obedient })
    const session = await world.tide.open('talk')
    const call = { type: 'tool_use', id: 'toolu_1', name: 'Read', input: { [HALF]: BROKEN } }
    await session.append(
      user(BROKEN),
      assistant({ id: 'msg_1', content: [{ type: 'text', text: BROKEN }, call] }),
    )
    await session.append(toolResult('toolu_1', [{ type: 'text', text: BROKEN }]))
    const request = await session.next({ tools: [{ name: 'Read', input_schema: { type: 'object' } }] })
    expect(request.ok && request.text).toContain('one \ufffd two \ufffd three')
    expect(request.ok && /\\ud[89a-f]/i.test(request.text)).toBe(false)
  })

  it('in a log that is there already are repaired where the request is built', async () => {
    const store: MemoryStore = new Map()
    const first = createTestTidemark({ journal: createMemoryJournal(store), blobs: null })
    const session = await first.tide.open('talk')
    await session.append(user('one X two Y three'))
    await session.close()
    for (const [id, log] of store) store.set(id, breakRecords(log))
    const again = createTestTidemark({ journal: createMemoryJournal(store), blobs: null })
    const request = await (await again.tide.open('talk')).next()
    expect(request.ok && request.text).toContain('one \ufffd two \ufffd three')
  })
})

function breakRecords<T>(log: T): T {
  const text = JSON.stringify(log)
    .replace('one X two', 'one \\ud83d two')
    .replace('two Y three', 'two \\ude00 three')
  return JSON.parse(text) as T
}
