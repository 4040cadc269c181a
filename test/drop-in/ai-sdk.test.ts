/** The AI SDK with the one line that the documentation shows: `createAnthropic({ fetch })`. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai'
import { describe, expect, it } from 'vitest'
import { createDropInWorld, type DropInWorld, type Fetch, sumRequests } from './client-agent.ts'

type How = 'generateText' | 'streamText'

async function work({ coder }: DropInWorld, fetch: Fetch, how: How): Promise<number> {
  const provider = createAnthropic({ apiKey: 'any', baseURL: 'http://simulator.test/v1', fetch })
  const tools = Object.fromEntries(
    coder.tools.map(({ name, description, input_schema }) => [
      String(name),
      tool({
        description: String(description),
        inputSchema: jsonSchema(input_schema as never),
        execute: (input: unknown, { toolCallId }) =>
          String(coder.toolResult({ id: toolCallId, name: String(name), input } as never).content),
      }),
    ]),
  )
  const options = {
    model: provider('claude-sonnet-5-5'),
    system: 'You are a careful coder. '.repeat(300),
    prompt: 'Mend the sums.',
    tools,
    stopWhen: stepCountIs(100),
    maxRetries: 0,
  }
  if (how === 'generateText') return (await generateText(options)).steps.length
  const result = streamText(options)
  await result.consumeStream()
  return (await result.steps).length
}

describe.each<How>(['generateText', 'streamText'])('%s of the AI SDK', (how) => {
  it('takes as many steps as without, for a fraction of the price', async () => {
    const options = { turns: 24, resultTokens: 900 }
    const [bare, world] = [createDropInWorld(options), createDropInWorld(options)]
    expect(await work(bare, bare.upstream, how)).toBe(25)
    const fetch = world.tide.fetch({ session: 'talk', fetch: world.upstream })
    expect(await work(world, fetch, how)).toBe(25)
    expect(sumRequests(world)).toMatchObject({ requests: 25, refused: 0 })
    expect(sumRequests(world).dollars).toBeLessThan(sumRequests(bare).dollars / 5)
    expect(world.listMessages('host-history-changed')).toEqual([])
    expect(world.listMessages('request-passed')).toEqual([])
  })

  it('goes on past the window', async () => {
    const world = createDropInWorld({ turns: 36, resultTokens: 1_500, window: 22_000 })
    const fetch = world.tide.fetch({ session: 'talk', fetch: world.upstream })
    expect(await work(world, fetch, how)).toBe(37)
    expect(world.events.some(({ type }) => type === 'compact')).toBe(true)
    expect(sumRequests(world).refused).toBe(0)
    expect(world.listMessages('host-history-changed')).toEqual([])
  })
})
