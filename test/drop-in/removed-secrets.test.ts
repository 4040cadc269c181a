/** What a host removes from a message that a compaction has already replaced is in no later request. */
import { createCoder, createSummarizer, type Script, withSummaries } from '@tidemark/simulator'
import { expect, it } from 'vitest'
import { dropIn, type HostBlock, type HostMessage } from './host-agent.ts'

const SECRET = 'tok-7Hq2-8831-zz9'
const CODER = { turns: 90, resultTokens: 1_500, thinkingTokens: 0 }

/** A request that reached the model. `after`: number of the client's requests that had been sent by then. */
interface SeenBody {
  readonly text: string
  readonly after: number
}

/** Writes summaries that quote the secret, whole and in part, whenever the model is shown it. */
function createQuotingScript(bodies: SeenBody[], countSent: () => number): Script {
  const quoting = createSummarizer({
    plant: { 1: `- The key is ${SECRET}.`, 3: '- src/key.ts has 7Hq2 in it', 8: `- with "${SECRET}"` },
  })
  const plain = createSummarizer()
  const script = withSummaries(createCoder(CODER).script, (request, context) =>
    (JSON.stringify(request).includes(SECRET) ? quoting : plain)(request, context),
  )
  return (request, context) => {
    bodies.push({ text: JSON.stringify(request), after: countSent() })
    return script(request, context)
  }
}

type Place = 'prompt' | 'input' | 'result' | 'text'

/** Puts a text into the prompt, or into the first block of the kind. */
function writeInto(messages: readonly HostMessage[], place: Place, text: string): HostMessage[] {
  let isDone = false
  const once = (block: HostBlock, changed: object): HostBlock => {
    if (isDone) return block
    isDone = true
    return { ...block, ...changed }
  }
  return messages.map(({ role, content }, index) => {
    if (place === 'prompt')
      return index === 0 ? { role, content: `Fix the sums. ${text}` } : { role, content }
    if (typeof content === 'string') return { role, content }
    return {
      role,
      content: content.map((block) => {
        if (place === 'input' && block.type === 'tool_use')
          return once(block, { input: { ...Object(block.input), command: `deploy --key=${text}` } })
        if (place === 'result' && block.type === 'tool_result')
          return once(block, { content: `export const key = '${text}'` })
        if (place === 'text' && role === 'assistant' && block.type === 'text') return once(block, { text })
        return block
      }),
    }
  })
}

const PLACES: readonly Place[] = ['prompt', 'input', 'result', 'text']
const WAYS = {
  'a summary by the model': { policy: { notes: { enabled: false } } },
  'notes from the log': {},
  'notes by the model': { notes: { model: true } },
}

it.each(PLACES.flatMap((place) => Object.entries(WAYS).map(([way, options]) => ({ place, way, options }))))(
  'a secret that the client removes after a compaction is in no later request: $place, $way',
  async ({ place, options }) => {
    const bodies: SeenBody[] = []
    let countSent = (): number => 0
    const script = createQuotingScript(bodies, () => countSent())
    const { host, tide, ...world } = dropIn(
      { system: 'You are a careful coder.' },
      { window: 20_000, ...CODER, ...options, simulator: { script } },
    )
    countSent = () => world.sent.length
    const session = await tide.open('talk')
    const count = (): number => world.events.filter(({ type }) => type === 'compact').length
    const goOn = async (): Promise<void> => {
      const before = count()
      while (count() === before) await host.step()
    }
    host.messages.push({ role: 'user', content: 'Fix the sums.' })
    await host.step()
    if (place === 'text')
      host.messages = host.messages.map((message) =>
        message.role === 'assistant' && typeof message.content !== 'string'
          ? { ...message, content: [{ type: 'text', text: 'I read.' }, ...message.content] }
          : message,
      )
    const original = host.messages
    host.messages = writeInto(host.messages, place, `The key is ${SECRET}.`)
    expect(host.messages).not.toEqual(original)
    await goOn()
    await host.step()
    expect(JSON.stringify(bodies)).toContain(SECRET)
    host.messages = writeInto(host.messages, place, 'The key is gone.')
    const [sent, compactions] = [countSent(), count()]
    await host.step()
    await host.step()
    // A client that removes something does not make its conversation be compacted anew.
    expect(count()).toBe(compactions)
    await goOn()
    await host.step()
    // An update of the notes that was under way when the client's request came has sent its request already.
    const later = bodies.filter(({ after }) => after > sent)
    expect(later.length).toBeGreaterThan(0)
    expect(later.filter(({ text }) => /7Hq2|8831/.test(text)).length).toBe(0)
    expect(await session.export({ as: 'messages' })).not.toContain(SECRET)
    expect((await session.notes())?.text ?? '').not.toContain(SECRET)
    expect(world.sent.slice(-4).join()).not.toContain('7Hq2')
    await tide.close()
  },
  60_000,
)
