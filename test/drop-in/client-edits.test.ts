/** Whatever a client does to its own list between two requests, the model sees the list as it is now. */
import { createRandomNumbers, isFullRun } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import {
  ClientAgent,
  type ClientBlock,
  type ClientMessage,
  createDropInWorld,
  sumRequests,
} from './client-agent.ts'

function toBlocks({ content }: ClientMessage): readonly ClientBlock[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

/** What a list says, however it is cut into messages: consecutive user messages joined, results first and by their call. */
function toMeaning(messages: readonly ClientMessage[]): readonly unknown[] {
  const joined: { role: string; blocks: ClientBlock[] }[] = []
  for (const message of messages) {
    const last = joined.at(-1)
    if (last?.role === 'user' && message.role === 'user') last.blocks.push(...toBlocks(message))
    else joined.push({ role: message.role, blocks: [...toBlocks(message)] })
  }
  const isResult = ({ type }: ClientBlock): boolean => type === 'tool_result'
  return joined.map(({ role, blocks }) => ({
    role,
    blocks: [
      ...blocks
        .filter(isResult)
        .toSorted((one, other) => (String(one.tool_use_id) < String(other.tool_use_id) ? -1 : 1)),
      ...blocks.filter((block) => !isResult(block)),
    ].map(({ cache_control: _, ...block }) => block),
  }))
}

type Change = (messages: ClientMessage[], pick: (count: number) => number) => ClientMessage[]

/** Positions at which a list can be cut: before a prompt of the user. */
function listPrompts(messages: readonly ClientMessage[]): readonly number[] {
  return messages.flatMap(({ role, content }, index) =>
    role === 'user' && typeof content === 'string' ? [index] : [],
  )
}

function replaceAt(
  messages: readonly ClientMessage[],
  index: number,
  message: ClientMessage,
): ClientMessage[] {
  return messages.map((each, at) => (at === index ? message : each))
}

const CHANGES: Readonly<Record<string, Change>> = {
  nothing: (messages) => messages,
  'edit a prompt': (messages, pick) => {
    const prompts = listPrompts(messages)
    const index = prompts[pick(prompts.length)] ?? 0
    return replaceAt(messages, index, { role: 'user', content: `Task ${pick(1_000)}.` })
  },
  'edit a result': (messages, pick) => {
    const results = messages.flatMap((message, index) =>
      toBlocks(message).some(({ type }) => type === 'tool_result') ? [index] : [],
    )
    const index = results[pick(results.length)]
    if (index === undefined) return messages
    const content = toBlocks(messages[index] as ClientMessage).map((block, at) =>
      at === 0 ? { ...block, content: `Result ${pick(1_000)}.` } : block,
    )
    return replaceAt(messages, index, { role: 'user', content })
  },
  'edit an answer': (messages, pick) => {
    const answers = messages.flatMap(({ role }, index) => (role === 'assistant' ? [index] : []))
    const index = answers[pick(answers.length)]
    if (index === undefined) return messages
    const content = toBlocks(messages[index] as ClientMessage).map((block) =>
      block.type === 'text' ? { type: 'text', text: `Answer ${pick(1_000)}.` } : block,
    )
    return replaceAt(messages, index, { role: 'assistant', content })
  },
  'go back to a prompt': (messages, pick) => {
    const prompts = listPrompts(messages)
    return messages.slice(0, (prompts[pick(prompts.length)] ?? 0) + 1)
  },
  'drop the oldest turns': (messages, pick) => {
    const prompts = listPrompts(messages)
    return messages.slice(prompts[pick(prompts.length)] ?? 0)
  },
  'add a text after the results': (messages, pick) => {
    const last = messages.at(-1)
    if (last?.role !== 'user') return messages
    const content = [...toBlocks(last), { type: 'text', text: `By the way ${pick(1_000)}.` }]
    return replaceAt(messages, messages.length - 1, { role: 'user', content })
  },
  'turn the results around': (messages) =>
    messages.map((message) => {
      const blocks = toBlocks(message)
      return blocks.length > 1 && blocks.every(({ type }) => type === 'tool_result')
        ? { ...message, content: blocks.toReversed() }
        : message
    }),
  'split the results into messages': (messages) =>
    messages.flatMap((message, index) => {
      const blocks = toBlocks(message)
      const isSplit = index === messages.length - 1 && blocks.every(({ type }) => type === 'tool_result')
      return isSplit ? blocks.map((block): ClientMessage => ({ role: 'user', content: [block] })) : [message]
    }),
}

const SEEDS = Array.from({ length: 24 }, (_, index) => index + 1).filter(
  (seed) => isFullRun() || seed % 8 === 1,
)

describe('a client that changes its list at random', () => {
  it.each(SEEDS)('is always sent as it is: seed %i', async (seed) => {
    const random = createRandomNumbers(seed)
    const pick = (count: number): number => Math.floor(random() * Math.max(1, count))
    const world = createDropInWorld({ turns: 3 })
    const host = new ClientAgent(world.tide.fetch({ session: 'talk', fetch: world.upstream }), world.coder)
    const names = Object.keys(CHANGES)
    let isOver = true
    for (let step = 0; step < 30; step += 1) {
      if (isOver) host.messages.push({ role: 'user', content: `Task ${step}.` })
      const name = names[pick(names.length * 2)] ?? 'nothing'
      host.messages = (CHANGES[name] as Change)(host.messages, pick)
      const given = toMeaning(host.messages)
      isOver = !(await host.step())
      const sent = JSON.parse(world.sent.at(-1) ?? '') as { readonly messages: readonly ClientMessage[] }
      if (!world.events.some(({ type }) => type === 'compact' || type === 'microcompact'))
        expect(toMeaning(sent.messages), `${step}: ${name}`).toEqual(given)
    }
    expect(sumRequests(world).refused).toBe(0)
    expect(world.listMessages('request-passed')).toEqual([])
  })
})

it('a clearing stays in effect while the client has another reminder at the end of each request', async () => {
  const { tide, coder, events, upstream, simulator } = createDropInWorld({
    window: 30_000,
    turns: 40,
    resultTokens: 1_400,
    policy: { notes: { enabled: false } },
  })
  const prepare = (body: Record<string, unknown>, number: number): Record<string, unknown> => {
    const messages = body.messages as readonly ClientMessage[]
    const last = messages.length - 1
    const reminder = { type: 'text', text: `<reminder>step ${number}</reminder>` }
    const withReminder = (message: ClientMessage): ClientMessage => ({
      ...message,
      content: [...toBlocks(message), reminder],
    })
    return { ...body, messages: messages.map((each, at) => (at === last ? withReminder(each) : each)) }
  }
  const fetch = tide.fetch({ session: 'talk', fetch: upstream })
  await new ClientAgent(fetch, coder, { system: 'Be careful.', prepare }).ask('Fix the sums.')
  const count = (type: string): number => events.filter((event) => event.type === type).length
  expect([count('compact'), sumRequests({ simulator }).refused]).toEqual([0, 0])
  expect(count('microcompact')).toBeGreaterThan(0)
  expect(count('microcompact')).toBeLessThanOrEqual(3)
  await tide.close()
})
