/**
 * The built-in loop: tools, events, a pinned message, a compaction in three steps, and its undo.
 * Runs against the simulator, in this process: `npm run example examples/run-loop.ts`.
 */
import { createCoder, createSimulator, withSummaries } from '@tidemark/simulator'
import { anthropic, createTidemark, type ToolContext, type Tools, user } from 'tidemark'

const coder = createCoder({ turns: 4, resultTokens: 500 })
const { fetch } = createSimulator({ script: withSummaries(coder.script) })
const tide = createTidemark({
  model: anthropic('claude-sonnet-5-5', { apiKey: 'any', fetch }),
  system: 'You are a coder.',
  history: true,
  memory: true,
})

const tools: Tools = Object.fromEntries(
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

const session = await tide.open('run-loop', { tools })
session.on('priced', ({ call }) => console.log(`  call: $${call.money.total?.toFixed(4)}`))

const [rule] = await session.append(user('A rule for all of this: amounts are in cents.'))
if (rule !== undefined) await session.pin(rule)

const run = session.run('The sum of an order is wrong by a cent. Fix it.')
for await (const event of run) if (event.type === 'tool-ended') console.log(`${event.call.name}`)
const outcome = await run.outcome
console.log(outcome.ok ? outcome.text.slice(0, 40) : outcome.message)

const before = session.messages()
const plan = await session.planCompaction({ instructions: 'Keep the names of all files.' })
if (!plan.ok) throw new Error(plan.message)
console.log(`would summarize ${plan.span.summarised.length} records of ${plan.before.expected} tokens`)
const draft = await session.prepare(plan)
if (!draft.ok) throw new Error(draft.message)
await session.append(user('And please be quick.')) // appended meanwhile: it follows the summary
const committed = await session.commit(draft)
if (!committed.ok) throw new Error(committed.message)
const { tokensBefore, tokensAfter, id } = committed.compaction
console.log(`compacted: ${tokensBefore} -> ${tokensAfter} tokens`)

const undone = await session.undo(id)
const isBack =
  JSON.stringify(session.messages().slice(0, before.length - 1)) === JSON.stringify(before.slice(0, -1))
console.log(undone.ok && isBack ? 'undone: all that was there is there again' : 'not undone')
await tide.close()
