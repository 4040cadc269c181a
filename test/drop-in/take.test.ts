/** `session.take`: a whole request in, the request to send out. */
import { describe, expect, it } from 'vitest'
import { createDropInWorld } from './client-agent.ts'

const TOOLS = [{ name: 'Read', description: 'Reads.', input_schema: { type: 'object' } }]

function createBody(messages: readonly object[], more: object = {}): object {
  return { model: 'claude-sonnet-5-5', max_tokens: 500, system: 'Be exact.', tools: TOOLS, messages, ...more }
}

async function openTalk() {
  const world = createDropInWorld()
  return { ...world, session: await world.tide.open('talk') }
}

describe('take', () => {
  it('returns the request to send, with the fields of the client, and appends only what is new', async () => {
    const { session } = await openTalk()
    const first = { role: 'user', content: [{ type: 'text', text: 'Hello.' }] }
    const taken = await session.take(createBody([first], { stream: true, stop_sequences: ['END'] }), {
      betas: 'a, b',
    })
    if (!taken.ok) throw new Error(taken.message)
    expect(taken.body).toMatchObject({ stream: true, stop_sequences: ['END'], max_tokens: 500, tools: TOOLS })
    expect(JSON.parse(taken.text)).toEqual(taken.body)
    expect(taken.betas).toEqual(expect.arrayContaining(['a', 'b']))
    await session.append({ id: 'msg_1', role: 'assistant', content: 'Hi.' })
    const again = await session.take(
      createBody([first, { role: 'assistant', content: 'Hi.' }, { role: 'user', content: 'Go on.' }]),
    )
    expect(again.ok && again.body.messages).toHaveLength(3)
    expect(again.ok && again.body).not.toHaveProperty('stop_sequences')
    expect(session.messages()).toHaveLength(3)
  })

  it('notices that the client has changed a message of its list in place', async () => {
    const { session, listMessages } = await openTalk()
    const text = { type: 'text', text: 'Hello.' }
    const messages: object[] = [{ role: 'user', content: [text] }]
    for (const answer of ['One.', 'Two.']) {
      expect((await session.take(createBody(messages))).ok).toBe(true)
      await session.append({ id: `msg_${answer}`, role: 'assistant', content: answer })
      messages.push({ role: 'assistant', content: answer }, { role: 'user', content: 'Go on.' })
    }
    text.text = 'Good day.'
    const taken = await session.take(createBody(messages))
    expect(taken.ok && JSON.stringify(taken.body.messages)).toContain('Good day.')
    expect(taken.ok && JSON.stringify(taken.body.messages)).not.toContain('Hello.')
    expect(listMessages('host-history-changed')).toHaveLength(1)
  })

  it('goes on from what it has recorded after a rewind, an edit and a way back', async () => {
    const { session } = await openTalk()
    const user = (content: string) => ({ role: 'user', content })
    const assistant = (content: string) => ({ role: 'assistant', content })
    const [first, answer] = [user('Hello.'), assistant('Hi.')]
    const lists = [
      [first],
      [first, answer, user('One.')],
      [first, answer, user('One.'), assistant('1'), user('Two.')],
      [first, answer, user('Another.')],
      [first, answer, user('Another.'), assistant('x'), user('Three.')],
      [first, answer, user('One.'), assistant('1'), user('Two.')],
    ]
    for (const list of lists) {
      const taken = await session.take(createBody(list))
      const sent = taken.ok ? (taken.body.messages as readonly { content: unknown }[]) : []
      expect(
        sent.map(({ content }) =>
          JSON.stringify(content).replaceAll(/[^\w.]|type|text|cache_control|ephemeral/g, ''),
        ),
      ).toEqual(list.map(({ content }) => content))
    }
  })

  it.each([
    'mid-conversation-output-config-2026-07-01',
    'per-turn-control-2026-07-01',
    'a-beta-of-next-year',
  ])('takes a system message that sets the effort, under the beta %s', async (betas) => {
    const { session } = await openTalk()
    const effort = { role: 'system', content: 'Think less.', output_config: { effort: 'low' } }
    const taken = await session.take(createBody([{ role: 'user', content: 'Hello.' }, effort]), { betas })
    expect(taken.ok && (taken.body.messages as object[]).at(-1)).toMatchObject({
      role: 'system',
      output_config: { effort: 'low' },
    })
  })

  it('works without the responses being appended: they come with the next request', async () => {
    const { session } = await openTalk()
    const list: object[] = []
    for (const prompt of ['One.', 'Two.', 'Three.']) {
      list.push({ role: 'user', content: prompt })
      const taken = await session.take(createBody(list))
      expect(taken.ok && taken.body.messages).toHaveLength(list.length)
      list.push({ role: 'assistant', content: `${prompt} Done.` })
    }
  })

  it.each<[string, object, string]>([
    ['no messages', createBody([]), 'unreadable'],
    [
      'a system prompt that is no text',
      createBody([{ role: 'user', content: 'x' }], { system: [{ type: 'image' }] }),
      'unreadable',
    ],
    [
      'a first request that may be the only one',
      createBody([{ role: 'user', content: 'x' }], { tools: [] }),
      'not-yet',
    ],
    [
      'an assistant message at the end',
      createBody([
        { role: 'user', content: 'x' },
        { role: 'assistant', content: '{' },
      ]),
      'prefill',
    ],
    [
      'a model that nobody knows',
      createBody([{ role: 'user', content: 'x' }], { model: 'nobody-1' }),
      'failed',
    ],
    [
      'a call without its result',
      createBody([
        { role: 'user', content: 'x' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'Read', input: {} }] },
        { role: 'user', content: 'and?' },
      ]),
      'failed',
    ],
  ])('says that %s is to be sent as it is', async (_, body, reason) => {
    const { session, events } = await openTalk()
    const taken = await session.take(body)
    expect(taken).toMatchObject({ ok: false, reason })
    expect(taken.ok || taken.message).toContain('The request is to be sent as it is. ')
    expect(events.filter(({ type }) => type === 'request-passed')).toHaveLength(1)
  })

  it('tells a side call from a new conversation in the same session', async () => {
    const { session, listMessages } = await openTalk()
    await session.take(createBody([{ role: 'user', content: 'Hello.' }]))
    const title = { model: 'claude-haiku-4-5', tools: [], system: 'Write a title.' }
    expect(await session.take(createBody([{ role: 'user', content: 'Hello there.' }], title))).toMatchObject({
      reason: 'side-call',
    })
    const summary = [{ role: 'user', content: 'This is what happened so far.' }]
    const taken = await session.take(createBody(summary))
    expect(taken.ok && taken.body.messages).toHaveLength(1)
    expect(listMessages('host-history-changed')).toEqual([
      'The client began another conversation; the log keeps the old branch.',
    ])
  })

  it('follows the client to another model', async () => {
    const { session } = await openTalk()
    await session.take(createBody([{ role: 'user', content: 'Hello.' }]))
    const taken = await session.take(
      createBody([{ role: 'user', content: 'Hello.' }], { model: 'claude-opus-5-5' }),
    )
    expect(taken.ok && taken.body.model).toBe('claude-opus-5-5')
    expect(session.model).toBe('claude-opus-5-5')
  })

  it('never keeps the cache markers of the client, and never sends more than four', async () => {
    const { session } = await openTalk()
    const cache_control = { type: 'ephemeral' }
    const list: object[] = []
    for (let turn = 0; turn < 8; turn += 1) {
      list.push({ role: 'user', content: [{ type: 'text', text: `Go on ${turn}.`, cache_control }] })
      const taken = await session.take(createBody(list))
      if (!taken.ok) throw new Error(taken.message)
      expect(taken.text.match(/cache_control/g)?.length).toBeLessThanOrEqual(4)
      list.push({ role: 'assistant', content: [{ type: 'text', text: `Yes ${turn}.`, cache_control }] })
    }
  })
})
