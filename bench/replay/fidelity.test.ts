import type { Block } from '@tidemark/core/log/block'
import type { RecordedSession } from 'tidemark/internal'
import { expect, it } from 'vitest'
import { createFidelityTotals, FidelityMeter } from './fidelity.ts'

const PROMPT = 'Please look at computeTotal in src/cart.ts, since its sums are wrong.'

const SESSION = createSession([
  ['prompt', text(PROMPT)],
  ['response', text('It rounds before it adds, and so the cents get lost.'), call('c1', 'Read', {})],
  ['input', { type: 'tool_result', tool_use_id: 'c1', content: '     1→return roundDown(sumOfAll)' }],
  ['response', call('c2', 'Bash', { command: 'npm test' })],
  ['input', { type: 'tool_result', tool_use_id: 'c2', content: '1 failed' }],
  [
    'response',
    call('c3', 'Edit', { old_string: 'return roundDown(sumOfAll)', new_string: 'return newTotal' }),
    call('c4', 'Bash', { command: 'npm test' }),
  ],
])

function text(words: string): Block {
  return { type: 'text', text: words }
}

function call(id: string, name: string, input: object): Block {
  return { type: 'tool_use', id, name, input: { file_path: '/shop/src/cart.ts', ...input } }
}

function createSession(
  steps: readonly (readonly ['prompt' | 'input' | 'response', ...Block[]])[],
): RecordedSession {
  return {
    steps: steps.map(([kind, ...blocks], index) => ({
      kind: kind === 'response' ? kind : 'input',
      at: index,
      blocks,
      isPrompt: kind === 'prompt',
      userInputs: [],
      response: null,
    })),
    ...{ prefixTokens: 1_000, earlierTokens: 0, toolNames: [], scale: 1 },
  }
}

/** The measures of the last response, the tenth request, if a compaction before it left these blocks. */
function measure(blocks: readonly Block[]) {
  const totals = createFidelityTotals()
  const meter = new FidelityMeter(SESSION, totals)
  for (let request = 1; request < 10; request += 1) meter.measure({ messages: [] }, 0, [])
  const compaction = { kind: 'compaction', filesKept: 0, filesShed: 0 } as const
  meter.measure({ messages: [{ role: 'user', content: [...blocks] }] }, 5, [compaction])
  return Object.fromEntries(
    Object.entries(totals).map(([name, { found, wanted }]) => [name, `${found} of ${wanted}`]),
  )
}

it('what the next calls need counts if the conversation had it before, and is found where the request shows it', () => {
  expect(measure(SESSION.steps.slice(0, 5).flatMap(({ blocks }) => blocks))).toEqual({
    ...{ paths: '1 of 1', identifiers: '2 of 2', needCommands: '1 of 1', linesToEdit: '1 of 1' },
    ...{ words: '1 of 1', commands: '1 of 1', reasons: '1 of 1', prompts: '1 of 1' },
  })
})

it('a summary that has only the user’s words keeps these, and none of the commands, lines and reasons', () => {
  expect(measure([text(`The user said:\n> ${PROMPT}`)])).toEqual({
    ...{ paths: '1 of 1', identifiers: '0 of 2', needCommands: '0 of 1', linesToEdit: '0 of 1' },
    ...{ words: '1 of 1', commands: '0 of 1', reasons: '0 of 1', prompts: '1 of 1' },
  })
})
