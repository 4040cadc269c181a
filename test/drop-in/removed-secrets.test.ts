/** What a client removes from a message that a compaction has already replaced is in no later request. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sampleCases } from '@tidemark/core/testing'
import { createCoder, createSummarizer, type Script, withSummaries } from '@tidemark/simulator'
import { expect, it, onTestFinished } from 'vitest'
import {
  ClientAgent,
  type ClientBlock,
  type ClientMessage,
  createDropInWorld,
  dropIn,
} from './client-agent.ts'

const SECRET = 'tok-7Hq2-8831-zz9'
/** Large results: few requests lead to a compaction, and an update of the notes is often under way when one comes. */
const CODER = { turns: 300, resultTokens: 3_000, thinkingTokens: 0 }

/** A request that reached the model. `after`: number of the client's requests that had been sent by then. */
interface SeenBody {
  readonly text: string
  readonly after: number
}

/** Writes summaries that quote the secret, whole and in part, if the request has the text `cue`. */
function createQuotingScript(bodies: SeenBody[], countSent: () => number, cue: string): Script {
  const quoting = createSummarizer({
    plant: { 1: `- The key is ${SECRET}.`, 3: '- src/key.ts has 7Hq2 in it', 8: `- with "${SECRET}"` },
  })
  const plain = createSummarizer()
  const script = withSummaries(createCoder(CODER).script, (request, context) =>
    (JSON.stringify(request).includes(cue) ? quoting : plain)(request, context),
  )
  return (request, context) => {
    bodies.push({ text: JSON.stringify(request), after: countSent() })
    return script(request, context)
  }
}

type Place = 'prompt' | 'input' | 'result' | 'text'

/** Puts a text into the prompt, or into the first block of the kind. */
function writeInto(messages: readonly ClientMessage[], place: Place, text: string): ClientMessage[] {
  let isDone = false
  const once = (block: ClientBlock, changed: object): ClientBlock => {
    if (isDone) return block
    isDone = true
    return { ...block, ...changed }
  }
  return messages.map(({ role, content }, index) => {
    if (place === 'prompt')
      return index === 0 ? { role, content: `Fix the sums. ${text}`.trim() } : { role, content }
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

/** A client on a small window, with a model that quotes the secret, and what reached the model. */
async function startClient(options: object = {}, cue = SECRET) {
  const bodies: SeenBody[] = []
  let countSent = (): number => 0
  const script = createQuotingScript(bodies, () => countSent(), cue)
  const { host, ...world } = dropIn(
    { system: 'You are a careful coder.' },
    { window: 20_000, ...CODER, ...options, simulator: { script } },
  )
  countSent = () => world.sent.length
  const session = await world.tide.open('talk')
  const count = (): number => world.events.filter(({ type }) => type === 'compact').length
  /** Takes requests until the conversation was compacted again, and one more. */
  const goOn = async (): Promise<void> => {
    const before = count()
    while (count() === before) await host.step()
    await host.step()
  }
  /** Runs the steps that follow a removal. Returns the requests that have a part of the secret all the same. */
  const findLeaks = async (parts: RegExp, run: () => Promise<void>): Promise<readonly string[]> => {
    const sent = countSent()
    await run()
    // An update of the notes that was under way when the client's request came has sent its request already.
    const later = bodies.filter(({ after }) => after > sent)
    expect(later.length).toBeGreaterThan(0)
    return later.flatMap(({ text }) => text.match(parts)?.[0] ?? [])
  }
  host.messages.push({ role: 'user', content: 'Fix the sums.' })
  await host.step()
  return { ...world, host, session, bodies, count, goOn, findLeaks }
}

const CASES = PLACES.flatMap((place) =>
  Object.entries(WAYS).map(([way, options]) => ({ place, way, options })),
)

// Five of them have every place and every way.
it.each(sampleCases(CASES, 5))(
  'a secret that the client removes after a compaction is in no later request: $place, $way',
  async ({ place, options }) => {
    const { host, tide, session, bodies, count, goOn, findLeaks, sent } = await startClient(options)
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
    expect(JSON.stringify(bodies)).toContain(SECRET)
    host.messages = writeInto(host.messages, place, 'The key is gone.')
    const compactions = count()
    const leaks = await findLeaks(/7Hq2|8831/, async () => {
      await host.step()
      await host.step()
      // A client that removes something does not make its conversation be compacted anew.
      expect(count()).toBe(compactions)
      await goOn()
    })
    expect(leaks).toEqual([])
    expect(await session.export({ as: 'messages' })).not.toContain(SECRET)
    expect((await session.notes())?.text ?? '').not.toContain(SECRET)
    expect(sent.slice(-4).join()).not.toContain('7Hq2')
    await tide.close()
  },
)

const SUMMARIES = WAYS['a summary by the model']

it('a secret that is removed after two compactions is in no later request', async () => {
  const { host, tide, bodies, goOn, findLeaks } = await startClient(SUMMARIES)
  host.messages = writeInto(host.messages, 'prompt', `The key is ${SECRET}.`)
  await goOn()
  await goOn()
  expect(bodies.at(-1)?.text).toContain(SECRET)
  host.messages = writeInto(host.messages, 'prompt', '')
  expect(await findLeaks(/7Hq2|8831/, goOn)).toEqual([])
  await tide.close()
})

it('a second secret that is removed later goes as the first did', async () => {
  const { host, tide, goOn, findLeaks } = await startClient(SUMMARIES)
  host.messages = writeInto(host.messages, 'prompt', `Keys: ${SECRET} and correct-horse-battery.`)
  await goOn()
  host.messages = writeInto(host.messages, 'prompt', 'Keys: *** and correct-horse-battery.')
  expect(await findLeaks(/7Hq2|8831/, async () => void (await host.step()))).toEqual([])
  host.messages = writeInto(host.messages, 'prompt', 'Keys: *** and ***.')
  expect(await findLeaks(/7Hq2|8831|horse|battery/, goOn)).toEqual([])
  await tide.close()
})

it('so does a secret of plain words, if the client deletes the short message that has it', async () => {
  const { host, tide, bodies, goOn, findLeaks } = await startClient(SUMMARIES)
  host.messages.push(
    { role: 'assistant', content: 'Which password?' },
    { role: 'user', content: 'It is correct-horse-battery.' },
  )
  await goOn()
  expect(bodies.at(-1)?.text).toContain('horse-battery')
  host.messages = host.messages.filter(
    ({ content }) => !['Which password?', 'It is correct-horse-battery.'].includes(String(content)),
  )
  expect(await findLeaks(/horse|battery/, goOn)).toEqual([])
  await tide.close()
})

it('so does a secret that the client removes from a message which the compaction has kept', async () => {
  const { host, tide, bodies, count, findLeaks } = await startClient(SUMMARIES)
  while (count() === 0) {
    const last = host.messages.at(-1)
    host.messages = [
      ...host.messages.slice(0, -1).map((message) => withoutNote(message)),
      { role: 'user', content: [...((last?.content ?? []) as ClientBlock[]), { type: 'text', text: NOTE }] },
    ]
    await host.step()
  }
  expect(bodies.at(-1)?.text).toContain(SECRET)
  host.messages = host.messages.map(withoutNote)
  const leaks = await findLeaks(/7Hq2|8831/, async () => {
    await host.step()
    await host.step()
  })
  expect([leaks, count()]).toEqual([[], 1])
  await tide.close()
})

const NOTE = `For now the key is ${SECRET}.`

function withoutNote({ role, content }: ClientMessage): ClientMessage {
  if (typeof content === 'string') return { role, content }
  return {
    role,
    content: content.map((block) => (block.text === NOTE ? { ...block, text: 'Go on.' } : block)),
  }
}

it('so does a secret that the client removes while it drops its oldest messages', async () => {
  const { host, tide, bodies, goOn, findLeaks } = await startClient(SUMMARIES)
  host.messages.push({
    role: 'user',
    content: [{ type: 'text', text: `Note: the key is ${SECRET}, for now.` }],
  })
  await goOn()
  expect(bodies.at(-1)?.text).toContain(SECRET)
  host.messages = host.messages.slice(3)
  host.messages[0] = { role: 'user', content: 'Note: the key is [gone], for now.' }
  expect(await findLeaks(/7Hq2|8831/, goOn)).toEqual([])
  await tide.close()
})

it('so does a secret that the client removes from a prompt which the compaction has kept', async () => {
  // The model has the secret from elsewhere too, as from thinking that the client leaves out.
  const { host, tide, bodies, count, findLeaks } = await startClient(SUMMARIES, '')
  const prompt: ClientMessage = { role: 'user', content: NOTE }
  while (count() === 0) {
    host.messages = [...host.messages.filter(({ content }) => content !== NOTE), prompt]
    await host.step()
  }
  expect(bodies.at(-1)?.text).toContain(SECRET)
  host.messages = host.messages.map((message) =>
    message.content === NOTE ? { role: 'user', content: 'Go on.' } : message,
  )
  const leaks = await findLeaks(/7Hq2|8831/, async () => {
    await host.step()
    await host.step()
  })
  expect([leaks, count()]).toEqual([[], 1])
  await tide.close()
})

it('so does a secret that the client removes after a restart', async () => {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-removed-'))
  onTestFinished(() => rmSync(home, { recursive: true, force: true, maxRetries: 10 }))
  const before = await startClient({ ...SUMMARIES, home })
  before.host.messages = writeInto(before.host.messages, 'prompt', `The key is ${SECRET}.`)
  await before.goOn()
  await before.tide.close()
  const { tide, upstream, sent, coder } = createDropInWorld({ ...SUMMARIES, ...CODER, window: 20_000, home })
  const settings = { system: 'You are a careful coder.' }
  const host = new ClientAgent(tide.fetch({ session: 'talk', fetch: upstream }), coder, settings)
  host.messages = writeInto(before.host.messages, 'prompt', 'The key is gone.')
  await host.step()
  await host.step()
  expect(sent.join()).toContain('The key is gone.')
  expect(sent.join()).not.toMatch(/7Hq2|8831/)
  await tide.close()
})

const FACTS = ['- parseHeader reads the version', '- the cookie jar is shared by all requests']
const LISTING = `export function parseHeader reads the version\nthe cookie jar is shared by all requests\n${'and so on, for many lines, one after the other\n'.repeat(10)}${Array.from({ length: 40 }, (_, line) => `line${String.fromCharCode(97 + (line % 26))}${line}`).join(' ')}`
const TRIMMED = {
  'clears old results': (text: string) => (text === '' ? '' : '[cleared]'),
  'keeps the beginning of old results': (text: string) => `${text.slice(0, 20)} [truncated]`,
  'keeps the beginning, and cuts within a word': (text: string) => text.slice(0, 20),
  'keeps the beginning and the end': (text: string) => `${text.slice(0, 20)}\n...\n${text.slice(-20)}`,
}

it.each(Object.entries(TRIMMED))('a client that %s loses no fact of the summary', async (_, shorten) => {
  const summarizer = createSummarizer({ plant: { 1: FACTS.join('\n') } })
  const script = withSummaries(createCoder(CODER).script, summarizer)
  const { host, tide, events, sent } = dropIn(
    { system: 'You are a careful coder.' },
    // A conversation that fills the window would not fit that of the summarizer.
    {
      window: 20_000,
      ...CODER,
      policy: { ...SUMMARIES.policy, dropIn: { rewrite: 'early' } },
      simulator: { script },
    },
  )
  const count = (): number => events.filter(({ type }) => type === 'compact').length
  host.messages.push({ role: 'user', content: 'Fix the sums.' })
  await host.step()
  host.messages = writeInto(host.messages, 'result', LISTING)
  while (count() === 0) await host.step()
  await host.step()
  const own = sent.at(-1) ?? ''
  host.messages = host.messages.map(({ role, content }) => ({
    role,
    content:
      typeof content === 'string'
        ? content
        : content.map((block) =>
            block.type === 'tool_result' && String(block.content).includes('cookie jar')
              ? { ...block, content: shorten(String(block.content)) }
              : block,
          ),
  }))
  await host.step()
  const [before, after] = [own, sent.at(-1) ?? ''].map((text) => FACTS.filter((fact) => text.includes(fact)))
  expect([before, after, count()]).toEqual([FACTS, FACTS, 1])
  expect(sent.at(-1)).not.toContain('[removed]')
  await tide.close()
})

it('a client that drops its oldest messages loses no fact of the summary', async () => {
  const { host, tide, sent, goOn, count } = await startClient(SUMMARIES)
  host.messages[0] = { role: 'user', content: `Fix the sums. The key is ${SECRET}.` }
  await goOn()
  host.messages = host.messages.slice(2)
  host.messages.unshift({ role: 'user', content: 'Earlier messages were left out.' })
  await host.step()
  expect(sent.at(-1)).toContain('Fix the sums.')
  expect([count(), sent.at(-1)?.includes('[removed]')]).toEqual([1, false])
  await tide.close()
})
