import { describe, expect, it } from 'vitest'
import { assistant, context, request, user } from '../../test/script-request.ts'
import type { Block, MessageParam } from '../protocol/messages-request.ts'
import { countTextTokens } from '../protocol/tokenizer.ts'
import { type Coder, type CoderOptions, createCoder } from './coder.ts'
import { listToolCalls, listToolResults, type Reply, type ScriptRequest } from './script.ts'

const PROMPT = user('Raise the limits, please.')

interface Played {
  readonly messages: readonly MessageParam[]
  readonly coder: Coder
}

/** A host that lets the coder answer every call, until a response has no calls or the limit is reached. */
async function play(
  options: CoderOptions,
  {
    from = [PROMPT],
    responses = 1_000,
    index = 0,
    ...given
  }: Partial<ScriptRequest> & {
    readonly from?: readonly MessageParam[]
    readonly responses?: number
    readonly index?: number
  } = {},
  coder: Coder = createCoder(options),
): Promise<Played> {
  let messages = from
  for (let number = 0; number < responses; number += 1) {
    const asked = request({ tools: coder.tools, ...given, messages })
    const response = responseOf(await coder.script(asked, context({ index: index + number })))
    const calls = listToolCalls(response)
    messages = [...messages, response]
    if (calls.length === 0) break
    messages = [...messages, user(...calls.map((call) => coder.toolResult(call)))]
  }
  return { messages, coder }
}

function responseOf({ blocks }: Reply): MessageParam {
  return assistant(...blocks.map((block) => ({ ...block }) as Block))
}

function responsesIn(messages: readonly MessageParam[]): readonly MessageParam[] {
  return messages.filter(({ role }) => role === 'assistant')
}

function resultsIn(messages: readonly MessageParam[]) {
  const names = new Map(messages.flatMap(listToolCalls).map((call) => [call.id, call.name]))
  return messages.flatMap((message) => listToolResults(message, names))
}

function textsIn(messages: readonly MessageParam[]): readonly string[] {
  return responsesIn(messages).flatMap(({ content }) =>
    typeof content === 'string'
      ? [content]
      : content.flatMap((block) => (block.type === 'text' ? [String(block.text)] : [])),
  )
}

/** The conversation after a compaction: only a summary. */
function summary(text: string): MessageParam {
  return user(`This session continues an earlier conversation that ran out of room.\n\nSummary:\n${text}`)
}

describe('the coder at work', () => {
  it.each([1, 7, 8, 9, 40])('makes calls for exactly %i turns and then has the last word', async (turns) => {
    const { messages } = await play({ turns })
    const counts = responsesIn(messages).map((response) => listToolCalls(response).length)
    expect(counts.map((count) => count > 0)).toEqual([...Array(turns).fill(true), false])
    expect(textsIn(messages).at(-1)).toMatch(
      new RegExp(`^Task 1 done after ${turns} steps. “Raise the limits, please.” is done. `),
    )
  })

  it('reads a file only if the request does not show the lines to edit, if it is told so', async () => {
    const options = { turns: 60, reads: 'unseen', files: 2 } as const
    const { messages, coder } = await play(options)
    const reads = messages.flatMap(listToolCalls).filter(({ name }) => name === 'Read')
    expect(reads.map(({ input }) => input.file_path).toSorted()).toEqual(
      ['orders', 'invoices'].flatMap((name) => [`src/${name}.test.ts`, `src/${name}.ts`]).toSorted(),
    )
    expect(textsIn(messages).at(-1)).toMatch(/^Task 1 done after 60 steps/)
    const after = await play(options, { from: [summary('Step 20 of 60'), PROMPT] }, coder)
    const calls = after.messages.flatMap(listToolCalls)
    expect(calls.filter(({ name }) => name === 'Read')).toHaveLength(4)
    expect(resultsIn(after.messages).filter(({ name, isError }) => name === 'Edit' && isError)).toEqual([])
  })

  it('goes through the phases of real work', async () => {
    const { messages } = await play({ turns: 8, parallel: 4 })
    expect(
      responsesIn(messages).map((response) =>
        listToolCalls(response)
          .map(({ name }) => name)
          .join(' '),
      ),
    ).toEqual([
      'TodoWrite Grep',
      'Read Read Read Read',
      'Edit Edit',
      'Bash',
      'Grep',
      'Edit',
      'Bash',
      'TodoWrite',
      '',
    ])
  })

  it('breaks the tests and repairs them: an undefined name, then a wrong value', async () => {
    const { messages } = await play({ turns: 16 })
    const runs = resultsIn(messages).filter(({ name }) => name === 'Bash')
    expect(
      runs.map(({ isError, text }) => [isError, /\w+Error: .*/.exec(text)?.[0].replaceAll(/\d+/g, 'n')]),
    ).toEqual([
      [true, 'ReferenceError: raise is not defined'],
      [false, undefined],
      [true, 'AssertionError: expected n to be n'],
      [false, undefined],
    ])
  })

  it('keeps its repository in order over hundreds of edits', async () => {
    const { messages, coder } = await play({ turns: 800, files: 3, resultTokens: 200, textTokens: 0 })
    const failed = resultsIn(messages).filter(({ isError, name }) => isError && name !== 'Bash')
    expect(failed).toEqual([])
    const tests = coder.toolResult({ id: 'other', name: 'Bash', input: { command: 'npm test' } })
    expect(String(tests.content).split('\n').at(-1)).toMatch(/^ Tests {2}\d+ passed \(\d+\)$/)
  })

  it('rebuilds its repository for any earlier step', () => {
    const coder = createCoder({ files: 2, resultTokens: 60 })
    const early = coder.repository(10)
    coder.repository(2_000)
    expect(coder.repository(10)).toEqual(early)
    expect(coder.repository(10)).not.toEqual(coder.repository(0))
  })

  it('reads its own edits', async () => {
    const { messages } = await play({ turns: 40, files: 1, resultTokens: 60 })
    const calls = messages.flatMap(listToolCalls)
    const edits = calls.filter(({ name, input }) => name === 'Edit' && input.file_path === 'src/orders.ts')
    const reads = calls.filter(({ name, input }) => name === 'Read' && input.file_path === 'src/orders.ts')
    const results = new Map(resultsIn(messages).map(({ id, text }) => [id, text]))
    const before = reads.map(({ id }) => /const limit1 = \d+/.exec(results.get(id) ?? '')?.[0])
    const after = edits
      .map(({ input }) => String(input.new_string).trim())
      .filter((text) => /= \d+$/.test(text))
    expect(before.slice(1)).toEqual(mended(after).slice(0, before.length - 1))
  })

  it('never uses a call id twice, nor one that a provider would reject', async () => {
    const { messages } = await play({ turns: 200, textTokens: 0, resultTokens: 40 })
    const ids = messages.flatMap(listToolCalls).map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.filter((id) => !/^[a-zA-Z0-9_-]{1,64}$/.test(id))).toEqual([])
  })

  it('depends only on the seed', async () => {
    const one = await play({ turns: 10, seed: 'a' })
    expect((await play({ turns: 10, seed: 'a' })).messages).toEqual(one.messages)
    expect((await play({ turns: 10, seed: 'b' })).messages).not.toEqual(one.messages)
  })
})

/** Every second job first uses a value that is off by one; only the second value stays. */
function mended(values: readonly string[]): readonly string[] {
  const kept: string[] = []
  for (let at = 0; at < values.length; at += 1) {
    if (kept.length % 2 === 1) at += 1
    kept.push(values[at] ?? '')
  }
  return kept
}

describe('the size of the work', () => {
  it.each([200, 1_000, 5_000])(
    'a file read, or a run of tests, comes to about %i tokens',
    async (resultTokens) => {
      const { messages } = await play({ turns: 16, resultTokens })
      const sizes = resultsIn(messages)
        .filter(({ name }) => name === 'Read' || name === 'Bash')
        .map(({ text }) => countTextTokens(text) / resultTokens)
      expect(sizes.filter((size) => size < 0.75 || size > 1.35)).toEqual([])
    },
  )

  it('texts and thinking have the requested size', async () => {
    const { messages } = await play({ turns: 8, textTokens: 120, thinkingTokens: 300 })
    const sizes = responsesIn(messages)
      .slice(0, -1)
      .map(({ content }) => (content as readonly Block[]).slice(0, 2))
      .map(([thinking, text]) => [
        countTextTokens(String(thinking?.thinking)),
        countTextTokens(String(text?.text)),
      ])
    for (const [thinking = 0, text = 0] of sizes) {
      expect(thinking).toBeGreaterThanOrEqual(300)
      expect(thinking).toBeLessThan(330)
      expect(text).toBeGreaterThanOrEqual(119)
      expect(text).toBeLessThan(145)
    }
  })

  it('no text if none is requested', async () => {
    const { messages } = await play({ turns: 5, textTokens: 0 })
    expect(textsIn(messages).length).toBe(1)
  })

  it.each([1, 2, 5])('at most %i calls in one response', async (parallel) => {
    const { messages } = await play({ turns: 30, parallel })
    expect(Math.max(...responsesIn(messages).map((response) => listToolCalls(response).length))).toBe(
      parallel,
    )
  })

  it.each([
    [{ turns: 0 }, "The coder's turns must be a whole number of at least 1, not 0."],
    [{ parallel: 1.5 }, "The coder's parallel must be a whole number of at least 1, not 1.5."],
    [{ files: Number.NaN }, "The coder's files must be a whole number of at least 1, not NaN."],
    [{ textTokens: -1 }, "The coder's textTokens must be a whole number of at least 0, not -1."],
  ])('%j is refused', (options, message) => {
    expect(() => createCoder(options)).toThrow(message)
  })
})

describe('what a request allows', () => {
  it('limits the coder: it calls no tool that is not declared', async () => {
    const coder = createCoder({ turns: 4 })
    const tools = coder.tools.filter(({ name }) => name === 'Grep')
    const reply = await coder.script(request({ tools }), context())
    expect(listToolCalls(responseOf(reply)).map(({ name }) => name)).toEqual(['Grep'])
    const bare = await coder.script(request(), context())
    expect(bare.blocks.map(({ type }) => type)).toEqual(['text'])
  })
})

describe('where the coder continues', () => {
  const options = { turns: 20, resultTokens: 60 }

  /** The number of the next step. */
  async function stepAfter(
    coder: Coder,
    messages: readonly MessageParam[],
    given: Partial<ScriptRequest> = {},
  ) {
    const asked = request({ tools: coder.tools, ...given, messages })
    const reply = await coder.script(asked, context({ index: 500 }))
    return textsIn([responseOf(reply)])[0]?.split(/[:.]/)[0]
  }

  it('is read from the conversation, even one that it never saw', async () => {
    const { messages } = await play(options, { responses: 6 })
    expect(await stepAfter(createCoder(options), messages)).toBe('Step 7 of 20')
  })

  it('is further back after a rewind, with other ids for the same step', async () => {
    const { messages, coder } = await play(options, { responses: 6 })
    const rewound = messages.slice(0, 1 + 2 * 3)
    expect(await stepAfter(coder, rewound)).toBe('Step 4 of 20')
    const again = await play(options, { from: rewound, responses: 1, index: 50 }, coder)
    const ids = (all: readonly MessageParam[]) =>
      responsesIn(all)
        .slice(3, 4)
        .flatMap(listToolCalls)
        .map(({ id }) => id)
    expect(ids(again.messages).some((id) => ids(messages).includes(id))).toBe(false)
  })

  it('is the next task after a new user prompt', async () => {
    const first = await play({ ...options, turns: 3 })
    const second = await play(
      { ...options, turns: 3 },
      { from: [...first.messages, user('And now the rest.')] },
      first.coder,
    )
    expect(textsIn(second.messages).map((text) => text.split(/[:.]/)[0])).toEqual([
      'Step 1 of 3',
      'Step 2 of 3',
      'Step 3 of 3',
      'Task 1 done after 3 steps',
      'Task 2, step 1 of 3',
      'Task 2, step 2 of 3',
      'Task 2, step 3 of 3',
      'Task 2 done after 3 steps',
    ])
    expect(resultsIn(second.messages).filter(({ isError, name }) => isError && name !== 'Bash')).toEqual([])
  })

  it('after a summary that quotes nothing comes from its memory of the session', async () => {
    const { coder } = await play(options, { responses: 6 })
    expect(await stepAfter(coder, [summary('We changed some limits.')])).toBe('Step 7 of 20')
  })

  it('after a summary comes from the quoted text, without memory', async () => {
    const text = 'Current work: Step 12 of 20: I run the tests. Before that, Step 9 of 20.'
    expect(await stepAfter(createCoder(options), [summary(text)])).toBe('Step 13 of 20')
  })

  it('after a summary that quotes an old step comes from its memory', async () => {
    const { coder } = await play(options, { responses: 6 })
    expect(await stepAfter(coder, [summary('It began with Step 2 of 20.')])).toBe('Step 7 of 20')
  })

  it('after a summary followed by kept messages comes from those', async () => {
    const { messages, coder } = await play(options, { responses: 6 })
    expect(await stepAfter(coder, [summary('The start.'), ...messages.slice(-4)])).toBe('Step 7 of 20')
    expect(await stepAfter(createCoder(options), [summary('The start.'), ...messages.slice(-4)])).toBe(
      'Step 7 of 20',
    )
  })

  it('after a rewind to after a summary comes from the messages after it', async () => {
    const { messages, coder } = await play(options, { responses: 12 })
    const rewound = [summary('It began with Step 5 of 20.'), ...messages.slice(1 + 2 * 5, 1 + 2 * 8)]
    expect(await stepAfter(coder, rewound)).toBe('Step 9 of 20')
  })

  it('after a rewind in a session named by a header comes from its messages', async () => {
    const headers = { 'x-simulator-session': 'one' }
    const { messages, coder } = await play(options, { responses: 6, headers })
    expect(await stepAfter(coder, messages.slice(0, 1 + 2 * 3), { headers })).toBe('Step 4 of 20')
  })

  it('after a summary that follows kept messages comes from its memory', async () => {
    const { messages, coder } = await play(options, { responses: 6 })
    expect(await stepAfter(coder, [...messages.slice(0, 3), summary('The rest.')])).toBe('Step 7 of 20')
  })

  it("after a provider's own block is where its memory says", async () => {
    const { coder } = await play(options, { responses: 6 })
    const block = { type: 'compaction', content: 'We changed some limits.', signature: 's' }
    expect(await stepAfter(coder, [assistant(block), user('Go on.')])).toBe('Step 7 of 20')
  })

  it('in a new conversation is the start, unless a header names the session', async () => {
    const headers = { 'x-simulator-session': 'one' }
    const coder = createCoder(options)
    await play(options, { responses: 6, headers }, coder)
    expect(await stepAfter(coder, [PROMPT])).toBe('Step 1 of 20')
    expect(await stepAfter(coder, [PROMPT], { headers })).toBe('Step 7 of 20')
  })

  it('is separate for each user id of the metadata', async () => {
    const of = (user_id: string) => ({ body: { model: 'm', messages: [], metadata: { user_id } } })
    const coder = createCoder(options)
    await play(options, { responses: 6, ...of('a') }, coder)
    await play(options, { responses: 2, index: 100, ...of('b') }, coder)
    expect(await stepAfter(coder, [summary('Nothing.')], of('a'))).toBe('Step 7 of 20')
    expect(await stepAfter(coder, [summary('Nothing.')], of('b'))).toBe('Step 3 of 20')
  })

  it('has no end with turns: Infinity', async () => {
    const { messages } = await play({ ...options, turns: Number.POSITIVE_INFINITY }, { responses: 50 })
    expect(textsIn(messages).at(-1)).toMatch(/^Step 50: /)
  })
})

describe('the tools of the simulated repository', () => {
  const coder = createCoder({ files: 2, resultTokens: 60 })
  const run = (name: string, input: Record<string, string | number>) => {
    const { content, is_error } = coder.toolResult({ id: 'x', name, input })
    return [content, is_error ?? false]
  }

  it.each([
    ['Read', { file_path: 'src/none.ts' }, 'File does not exist: src/none.ts'],
    [
      'Edit',
      { file_path: 'src/none.ts', old_string: 'a', new_string: 'b' },
      'File does not exist: src/none.ts',
    ],
    ['Grep', { pattern: '(' }, 'Not a regular expression: ('],
    ['Bash', { command: 'rm -rf .' }, 'bash: rm: command not found'],
    ['Fly', {}, 'There is no tool Fly here.'],
  ])('%s %j fails', (name, input, text) => {
    expect(run(name, input)).toEqual([text, true])
  })

  it.each([
    ['limit1', /^Found 2 matches/],
    ['', /^String to replace not found/],
    ['no such text', /^String to replace not found/],
  ])('an edit of %j fails', (old_string, text) => {
    const [content, failed] = run('Edit', { file_path: 'src/orders.ts', old_string, new_string: '' })
    expect([String(content), failed]).toEqual([expect.stringMatching(text), true])
  })

  it('searches, lists and reads a part', () => {
    expect(run('Grep', { pattern: 'no such text' })).toEqual(['No matches found', false])
    expect(run('Bash', { command: 'ls' })).toEqual([
      'src/orders.ts\nsrc/orders.test.ts\nsrc/invoices.ts\nsrc/invoices.test.ts',
      false,
    ])
    expect(run('Read', { file_path: 'src/orders.ts', offset: 1, limit: 1 })).toEqual([
      '     1\t/** What is known of orders. */',
      false,
    ])
  })
})
