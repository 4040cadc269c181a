/**
 * Works and compacts again and again in one session, then prints as JSON by how many bytes the heap grew, and how many
 * bytes entered the context meanwhile. The summaries are written from the log, so that no model is needed.
 */
import { anthropic, assistant, createTidemark, toolResult, user } from 'tidemark'
import { createHeapWatch } from './heap-growth.ts'

const MODEL_ID = 'claude-sonnet-5-5'
const STEPS_PER_ROUND = 12
const [FIRST_ROUND, LAST_ROUND] = [4, 12]

const [home = ''] = process.argv.slice(2)
const tidemark = createTidemark({
  model: anthropic(MODEL_ID, { apiKey: 'any', window: 200_000 }),
  system: 'You help with code.',
  env: {},
  home,
  policy: { compact: { chain: { local: 'only' } } },
})
const session = await tidemark.open('compacting')
const watch = createHeapWatch()
session.on('appended', watch.add)
for (let round = 1; round <= LAST_ROUND; round += 1) {
  await session.append(...createRound(round))
  const end = await session.compact()
  if (!end.ok) throw new Error(end.message)
  if (round === FIRST_ROUND || round === LAST_ROUND) watch.measure()
}
await session.close()
console.log(JSON.stringify(watch.growth()))

function createRound(round: number): readonly object[] {
  const steps = Array.from({ length: STEPS_PER_ROUND }, (_, step) => createStep(round, step))
  const end = { id: `msg_${round}`, role: 'assistant', model: MODEL_ID, stop_reason: 'end_turn' }
  const content = [{ type: 'text', text: `Step ${round} is done.` }]
  return [
    user(`Now do step ${round}.`),
    ...steps.flat(),
    assistant({ ...end, content, usage: createUsage(STEPS_PER_ROUND) }),
  ]
}

function createStep(round: number, step: number): readonly object[] {
  const id = `${round}_${step}`
  const input = { command: `cat src/module-${round}/part-${step}.ts` }
  const response = assistant({
    id: `msg_${id}`,
    role: 'assistant',
    model: MODEL_ID,
    stop_reason: 'tool_use',
    content: [{ type: 'tool_use', id: `toolu_${id}`, name: 'Bash', input }],
    usage: createUsage(step),
  })
  return [response, toolResult(`toolu_${id}`, createFile(round, step))]
}

/** Usage of a response after so many steps of the round. A file has about 4,000 tokens. */
function createUsage(steps: number): object {
  return { input_tokens: 5, output_tokens: 20, cache_read_input_tokens: 1_000 + 4_000 * steps }
}

/** A file of code. Lines that speak of tokens are checked for credentials, so that the names come from a copy of the text. */
function createFile(round: number, step: number): string {
  const lines = Array.from({ length: 150 }, (_, line) => {
    if (line % 10 === 0) return `const limitOfPart${line} = readLimit(options.tokenLimit) // ${round}`
    return `  if (rows.length > ${line * step}) throw new Error('more than ${line} rows in part ${step} of it')`
  })
  return lines.join('\n')
}
