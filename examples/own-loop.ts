/**
 * Your own loop with the Anthropic SDK: Tidemark keeps the log, compacts and builds the request; you send it, and report
 * a request that fails. Here the second request is answered by an overloaded server.
 * Runs against the simulator, in this process: `npm run example examples/own-loop.ts`.
 */
import Anthropic from '@anthropic-ai/sdk'
import { createCoder, createSimulator, type Script, withSummaries } from '@tidemark/simulator'
import { anthropic, createTidemark, toolResult, user } from 'tidemark'

type Body = Anthropic.MessageCreateParamsNonStreaming

const coder = createCoder({ turns: 4, resultTokens: 500 })
const play = withSummaries(coder.script)
let calls = 0
const script: Script = (request, context) => {
  calls += 1
  const isOverloaded = calls === 2
  return isOverloaded ? { blocks: [], fault: { type: 'status', status: 529 } } : play(request, context)
}
const { fetch } = createSimulator({ script })
const client = new Anthropic({ apiKey: 'any', fetch, baseURL: 'http://simulator.test', maxRetries: 0 })
const tide = createTidemark({
  model: anthropic('claude-sonnet-5-5', { apiKey: 'any', fetch }),
  system: 'You are a coder.',
  memory: true,
})
const session = await tide.open('own-loop')

await session.append(user('The sum of an order is wrong by a cent. Fix it.'))
for (;;) {
  const request = await session.next<Body>({ tools: coder.tools })
  if (!request.ok) throw new Error(request.message)
  let response: Anthropic.Message
  try {
    response = await client.messages.create(request.body, { headers: request.headers })
  } catch (error) {
    // Too long, refused media or thinking: the context is changed. A fault that may pass: wait. Otherwise nothing helps.
    const refused = await session.refused(error)
    if (!refused.ok) throw error
    console.log(`${refused.failure.kind}: ${refused.act}`)
    if (refused.act === 'wait') await new Promise((resolve) => setTimeout(resolve, refused.delayMs))
    continue
  }
  await session.append(response)
  const { cache_read_input_tokens: read } = response.usage
  console.log(`${response.stop_reason}: ${read} tokens from the cache, ${request.forecast.read} expected`)
  const calls = response.content.filter((block) => block.type === 'tool_use')
  if (calls.length === 0) break
  const results = calls.map(({ id, name, input }) =>
    coder.toolResult({ type: 'tool_use', id, name, input: Object(input) }),
  )
  await session.append(
    ...results.map(({ tool_use_id: id, content }) => toolResult(String(id), String(content))),
  )
}

const { tokens, percentLeft, source } = session.contextRemaining()
console.log(`${tokens} tokens (${source}), ${percentLeft}% left, ${session.messages().length} messages`)
console.log(`spent: $${session.money().spent.total?.toFixed(4)}`)
await tide.close()
