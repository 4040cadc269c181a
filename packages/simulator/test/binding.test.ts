/** Thinking is bound to the prefix before it: each kind of change between two requests, and its effect. */
import type { SimulatorOptions } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import {
  assistant,
  MARK,
  postMessage,
  type RequestSettings,
  result,
  simulate,
  type TestResponse,
  TOOL,
  text,
  user,
} from './ask.ts'
import { STRICT, REQUEST as SUMMARY_REQUEST, summaryScript } from './summaries.ts'
import {
  CONTROLS,
  type Conversation,
  conversation,
  REQUEST,
  readBlocks,
  replaceMessage,
  THINKING_SIMULATOR,
  withoutThinking,
} from './thinker.ts'

interface Row {
  readonly name: string
  readonly change: (talk: Conversation) => object
  /** Messages whose thinking is no longer valid. */
  readonly invalid: readonly number[]
}

const ROWS: readonly Row[] = [
  {
    name: 'append',
    change: ({ messages }) => ({ messages: [...messages, assistant('x'), user('y')] }),
    invalid: [],
  },
  {
    name: 'change effort, max_tokens, metadata, tool_choice',
    change: () => ({
      output_config: { effort: 'low' },
      max_tokens: 99,
      metadata: { user_id: 'u' },
      tool_choice: { type: 'none' },
    }),
    invalid: [],
  },
  {
    name: 'change what is shown of thinking',
    change: () => ({ thinking: { type: 'adaptive', display: 'summarized' } }),
    invalid: [],
  },
  {
    name: 'add a marker',
    change: ({ messages }) => ({
      system: [text('You help.', MARK)],
      messages: replaceMessage(messages, 4, user(text('good', MARK))),
    }),
    invalid: [],
  },
  {
    name: 'declare a deferred tool',
    change: () => ({ tools: [TOOL, { ...TOOL, name: 'later', defer_loading: true }] }),
    invalid: [],
  },
  {
    name: 'rotate a signed address',
    change: ({ messages }) => ({
      messages: replaceMessage(
        messages,
        0,
        user('look', { type: 'image', source: { type: 'url', url: 'https://x.test/a.png?sig=2' } }),
      ),
    }),
    invalid: [],
  },
  {
    name: 'write a string as a block',
    change: ({ messages }) => ({
      system: [text('You help.')],
      messages: replaceMessage(messages, 4, { role: 'user', content: 'good' }),
    }),
    invalid: [],
  },
  {
    name: 'remove the oldest thinking',
    change: ({ messages }) => ({ messages: withoutThinking(messages, [1]) }),
    invalid: [],
  },
  {
    name: 'remove the two oldest',
    change: ({ messages }) => ({ messages: withoutThinking(messages, [1, 3]) }),
    invalid: [],
  },
  {
    name: 'remove the newest thinking',
    change: ({ messages }) => ({ messages: withoutThinking(messages, [5]) }),
    invalid: [],
  },
  {
    name: 'remove all thinking',
    change: ({ messages }) => ({ messages: withoutThinking(messages, [1, 3, 5]) }),
    invalid: [],
  },
  {
    name: 'remove thinking from the middle',
    change: ({ messages }) => ({ messages: withoutThinking(messages, [3]) }),
    invalid: [5],
  },
  {
    name: 'edit the first message',
    change: ({ messages }) => ({ messages: replaceMessage(messages, 0, user('look again')) }),
    invalid: [1, 3, 5],
  },
  {
    name: 'add a text to an old turn',
    change: ({ messages }) => ({ messages: replaceMessage(messages, 4, user('good', 'very')) }),
    invalid: [5],
  },
  {
    name: 'shorten a result',
    change: ({ messages }) => ({ messages: replaceMessage(messages, 2, user(result('toolu_1', 'found'))) }),
    invalid: [3, 5],
  },
  {
    name: 'change the input of a call',
    change: ({ messages }) => ({
      messages: replaceMessage(messages, 1, {
        role: 'assistant',
        content: readBlocks(messages[1]).map((block) =>
          block.type === 'tool_use' ? { ...block, input: {} } : block,
        ),
      }),
    }),
    invalid: [3, 5],
  },
  {
    name: 'delete a turn',
    change: ({ messages }) => ({ messages: [...messages.slice(0, 3), ...messages.slice(5)] }),
    invalid: [3],
  },
  { name: 'change the system prompt', change: () => ({ system: 'You help a lot.' }), invalid: [1, 3, 5] },
  { name: 'drop the system prompt', change: () => ({ system: undefined }), invalid: [1, 3, 5] },
  {
    name: 'edit a tool',
    change: () => ({ tools: [{ ...TOOL, description: 'Looks well' }] }),
    invalid: [1, 3, 5],
  },
  { name: 'add a tool', change: () => ({ tools: [TOOL, { ...TOOL, name: 'more' }] }), invalid: [1, 3, 5] },
]

const paths = (messages: readonly number[]): readonly string[] =>
  messages.map((index) => `messages.${index}.content.0`)

describe.each(ROWS)('$name', ({ change, invalid }) => {
  async function again(
    options: SimulatorOptions,
    body: object,
    asked?: RequestSettings,
  ): Promise<TestResponse> {
    const talk = await conversation({ ...THINKING_SIMULATOR, ...options })
    return postMessage(
      talk.simulator,
      { ...talk.base, messages: talk.messages, ...change(talk), ...body },
      asked,
    )
  }
  const setting = (behaviour: string): object => ({
    thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: behaviour } },
  })

  it(`is an error on a newer account: ${invalid.length > 0}`, async () => {
    const told = await again({}, {})
    expect(told.status).toBe(invalid.length === 0 ? 200 : 400)
    if (invalid.length > 0)
      expect(told.body.error.message).toMatch(
        new RegExp(
          `^messages\\.${invalid[0]}\\.content\\.0: Invalid \`signature\` in \`thinking\` block\\. The block is bound to a different conversation\\. Remove the block, or set \`thinking\\.block_binding\\.prefix_mismatch_behavior\` to "drop_block"\\. That setting requires the \`${CONTROLS}\` value in the \`anthropic-beta\` header\\. `,
        ),
      )
  })

  it('drops invalid thinking if the request asks for it, and reports it', async () => {
    const told = await again({ binding: { enforced: false } }, setting('drop_block'), { betas: [CONTROLS] })
    expect(told.status).toBe(200)
    expect(told.body.input_transformations).toEqual(
      paths(invalid).map((path) => ({ type: 'thinking_dropped', path, reason: 'prefix_binding_mismatch' })),
    )
  })

  it('lets it pass on an older account, and reports it', async () => {
    const told = await again({ binding: { enforced: false } }, {}, { betas: [CONTROLS] })
    expect(told.status).toBe(200)
    expect(told.body.input_transformations).toEqual(
      paths(invalid).map((path) => ({
        type: 'thinking_mismatch_allowed',
        path,
        reason: 'prefix_binding_mismatch',
      })),
    )
  })

  it('is an error on an older account if the request asks for it', async () => {
    const told = await again({ binding: { enforced: false } }, setting('error'), { betas: [CONTROLS] })
    expect(told.status).toBe(invalid.length === 0 ? 200 : 400)
  })

  it('is not checked by a model without binding', async () => {
    const model = 'claude-fable-5'
    const talk = await conversation(THINKING_SIMULATOR, { ...REQUEST, model })
    const told = await postMessage(talk.simulator, { ...talk.base, messages: talk.messages, ...change(talk) })
    expect(told.status).toBe(200)
  })
})

describe('the sentence that describes the change', () => {
  it.each([
    {
      change: { system: 'other' },
      sentence: 'The `system` prompt differs from when this block was created.',
    },
    {
      change: { tools: [{ ...TOOL, description: 'other' }] },
      sentence: 'The `tools` list differs from when this block was created.',
    },
  ])('$sentence', async ({ change, sentence }) => {
    const talk = await conversation()
    const told = await postMessage(talk.simulator, { ...talk.base, messages: talk.messages, ...change })
    expect(told.body.error.message).toContain(sentence)
  })

  it('names the first block that differs', async () => {
    const talk = await conversation()
    const messages = replaceMessage(talk.messages, 2, user(result('toolu_1', 'found')))
    const told = await postMessage(talk.simulator, { ...talk.base, messages })
    expect(told.body.error.message).toContain(
      'Content before this block differs from when it was created, first at `messages.2.content.0`.',
    )
  })

  it('names the first block that differs, after a compaction block that replaced what came before', async () => {
    const simulator = simulate({ script: summaryScript })
    const asked = { betas: ['compact-2026-01-12', CONTROLS] }
    const block = { type: 'compaction', content: 'It was about looking.', encrypted_content: null }
    const send = (goal: string, ...later: readonly object[]) =>
      postMessage(
        simulator,
        {
          ...SUMMARY_REQUEST,
          ...STRICT,
          context_management: { edits: [{ type: 'compact_20260112' }] },
          messages: [user('look'), assistant(block), user(goal), ...later],
        },
        asked,
      )
    const { content } = (await send('go on')).body
    const { body } = await send('stop', { role: 'assistant', content }, user('more'))
    expect(body.error.message).toContain('first at `messages.2.content.0`.')
  })

  it('names thinking that is missing', async () => {
    const talk = await conversation()
    const told = await postMessage(talk.simulator, {
      ...talk.base,
      messages: withoutThinking(talk.messages, [3]),
    })
    expect(told.body.error.message).toContain('An earlier thinking block is missing or out of order.')
  })
})

describe('thinking that was removed', () => {
  it('cannot be put back', async () => {
    const { simulator, messages, base } = await conversation()
    const without = withoutThinking(messages, [1, 3, 5])
    const { body } = await postMessage(simulator, { ...base, messages: without })
    const next = [{ role: 'assistant', content: body.content }, user('go')]
    expect((await postMessage(simulator, { ...base, messages: [...without, ...next] })).status).toBe(200)
    const told = await postMessage(simulator, { ...base, messages: [...messages, ...next] })
    expect(told.body.error.message).toMatch(/^messages\.7\.content\.0: Invalid/)
  })

  it('is not billed', async () => {
    const { simulator, messages, base } = await conversation()
    const path = '/v1/messages/count_tokens'
    const { max_tokens: _, ...counted } = base as { max_tokens: number }
    const kept = await postMessage(simulator, { ...counted, messages }, { path })
    const dropped = await postMessage(
      simulator,
      {
        ...counted,
        messages,
        system: 'Yes, help.',
        thinking: { type: 'adaptive', block_binding: { prefix_mismatch_behavior: 'drop_block' } },
      },
      { path, betas: [CONTROLS] },
    )
    // Three thinking blocks of three tokens.
    expect(kept.body.input_tokens - dropped.body.input_tokens).toBe(9)
  })
})

describe('thinking of another model', () => {
  it.each([
    { from: 'claude-fable-5-1', to: 'claude-opus-5-5', reads: false },
    { from: 'claude-opus-5-5', to: 'claude-fable-5-1', reads: true },
    { from: 'claude-opus-5', to: 'claude-opus-5-5', reads: true },
    { from: 'claude-opus-5-5', to: 'claude-sonnet-5', reads: false },
    { from: 'claude-fable-5', to: 'claude-opus-5-5', reads: false },
  ])('$to reads $from: $reads', async ({ from, to, reads }) => {
    const { simulator, messages, base } = await conversation(THINKING_SIMULATOR, { ...REQUEST, model: from })
    const told = await postMessage(simulator, { ...base, model: to, messages }, { betas: [CONTROLS] })
    expect(told.status).toBe(200)
    expect(told.body.input_transformations).toEqual(
      reads
        ? []
        : paths([1, 3, 5]).map((path) => ({
            type: 'thinking_dropped',
            path,
            reason: 'model_binding_mismatch',
          })),
    )
  })

  it('is valid again for its own model', async () => {
    const { simulator, messages, base } = await conversation()
    const away = await postMessage(simulator, { ...base, model: 'claude-opus-5-5', messages })
    const next = [...messages, { role: 'assistant', content: away.body.content }, user('back')]
    const told = await postMessage(simulator, { ...base, messages: next }, { betas: [CONTROLS] })
    expect(told.body.input_transformations).toEqual([])
  })

  it('is dropped if it belongs to another organization', async () => {
    const accounts = {
      one: { organization: 'org_1', workspace: 'w' },
      two: { organization: 'org_2', workspace: 'w' },
    }
    const simulator = simulate({ ...THINKING_SIMULATOR, accounts })
    const body = { ...REQUEST, model: 'claude-haiku-5-5', messages: [user('hi')] }
    const first = await postMessage(simulator, body, { headers: { 'x-api-key': 'one' } })
    const messages = [user('hi'), { role: 'assistant', content: first.body.content }, user('go')]
    const told = await postMessage(
      simulator,
      { ...body, messages },
      { headers: { 'x-api-key': 'two' }, betas: [CONTROLS] },
    )
    expect(told.body.input_transformations).toEqual([
      { type: 'thinking_dropped', path: 'messages.1.content.0', reason: 'organization_binding_mismatch' },
    ])
  })
})
