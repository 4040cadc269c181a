/**
 * Context sources and hooks: state is read again from its source after a compaction, and hooks run before and after.
 * Runs against the simulator, in this process: `npm run example examples/hooks-and-carriers.ts`.
 */
import { createCoder, createSimulator, withSummaries } from '@tidemark/simulator'
import { anthropic, createTidemark, hostSource } from 'tidemark'

const coder = createCoder({ turns: 3, resultTokens: 400 })
const { fetch } = createSimulator({ script: withSummaries(coder.script) })
const board = ['ticket 7: sums are wrong', 'ticket 9: slow search']
const readFiles = new Set(['src/orders.ts'])

const tide = createTidemark({
  model: anthropic('claude-sonnet-5-5', { apiKey: 'any', fetch }),
  memory: true,
  carriers: [hostSource({ name: 'board', read: () => [{ text: board.join('\n') }] })],
  hooks: {
    preCompact: [{ name: 'names', run: () => ({ newCustomInstructions: 'Keep all ticket numbers.' }) }],
    postCompact: [
      {
        name: 'receipt',
        run: ({ receipt }) => ({ userDisplayMessage: `${receipt.summarised.length} records summarised` }),
      },
    ],
  },
  cleanups: [{ name: 'read files', scope: 'main', forget: () => readFiles.clear() }],
})
const session = await tide.open('hooks')
session.on('hook-said', ({ hook, message }) => console.log(`${hook}: ${message}`))

await session.run('Fix ticket 7.', {
  tools: coder.tools,
  runTool: (call) => String(coder.toolResult(call).content),
}).outcome
board.shift()
const end = await session.compact()
if (!end.ok) throw new Error(end.message)

const seen = JSON.stringify(session.messages())
console.log(seen.includes('ticket 9: slow search') ? 'the board is as it is now' : 'no board')
console.log(readFiles.size === 0 ? 'what was read counts as unread' : 'still read')
await tide.close()
