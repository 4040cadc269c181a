/** A session that changes its provider between two prompts and in the middle of its tools, both ways. */
import { createCoder, createSimulator, withSummaries } from '@tidemark/simulator'
import { anthropic, createTidemark, openai } from 'tidemark'
import { describe, expect, it } from 'vitest'

describe('a switch between providers', () => {
  it.each([
    ['Claude to GPT and back', ['claude-sonnet-5-5', 'gpt-6-sol', 'claude-sonnet-5-5']],
    ['GPT to Claude and back', ['gpt-5.4', 'claude-opus-5', 'gpt-5.4']],
  ])('is never refused: %s', async (_, models) => {
    const coder = createCoder({ turns: 6 })
    const simulator = createSimulator({ script: withSummaries(coder.script) })
    const create = (id: string) => {
      const options = { apiKey: 'any', fetch: simulator.fetch }
      return id.startsWith('gpt') ? openai(id, options) : anthropic(id, options)
    }
    const session = await createTidemark({ model: create(models[0] ?? ''), memory: true }).open('switching')
    for (const [index, id] of models.entries()) {
      if (index > 0) expect(await session.switchModel(create(id))).toMatchObject({ ok: true })
      // The run stops after a few tools, so that the next model takes up a turn in the middle.
      const stop = new AbortController()
      let tools = 0
      const run = session.run(index === 0 ? 'Fix the login page.' : null, {
        tools: coder.tools,
        signal: stop.signal,
        runTool: (call) => {
          tools += 1
          if (tools === 3 && index < models.length - 1) stop.abort()
          return String(coder.toolResult(call).content)
        },
      })
      for await (const __ of run);
      await run.outcome
    }
    const refused = simulator.requests.filter(({ status }) => status >= 400)
    expect(refused).toEqual([])
  })
})
