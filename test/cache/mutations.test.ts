/** Each way to lose a cache, on the simulator: the reason, the tokens that were billed again, their price, the words. */
import { formatCount } from '@tidemark/core/cost/prices'
import { listBilledModelRuns, type TokensByPriceClass } from '@tidemark/core/tokens/usage'
import { describe, expect, it } from 'vitest'
import { CacheTalk, type CacheTalkOptions, type Change, ratesOf, type Seen } from './cache-talk.ts'
import { MUTATIONS, type Mutation } from './mutations.ts'

/** The call that was tampered with, and the same call of a conversation that was left alone. */
interface Pair {
  readonly hit: Seen
  readonly twin: Seen
}

async function lead(options: CacheTalkOptions, does: Mutation['befall'], change?: Change): Promise<Seen> {
  const talk = new CacheTalk(options)
  await talk.goOn(12)
  talk.answerCalls()
  await does?.(talk)
  await talk.clock.advance(10_000)
  return talk.ask(change)
}

/** Conversations left alone are the same for most. */
const twins = new Map<string, Promise<Seen>>()

function twinOf({ name, otherwise }: Mutation, options: CacheTalkOptions): Promise<Seen> {
  const key = JSON.stringify([options, otherwise === undefined ? '' : name])
  const twin = twins.get(key) ?? lead(options, otherwise)
  twins.set(key, twin)
  return twin
}

async function mutated(mutation: Mutation, asksProvider: boolean): Promise<Pair> {
  const options = { ...mutation.options, asksProvider }
  return {
    hit: await lead(options, mutation.befall, mutation.change),
    twin: await twinOf(mutation, options),
  }
}

function tokensOf({ usage }: Seen): TokensByPriceClass {
  const [part] = listBilledModelRuns(usage)
  if (part === undefined) throw new Error('a call has usage')
  return part.tokens
}

const anewIn = ({ input, writeShort, writeLong }: TokensByPriceClass): number =>
  input + writeShort + writeLong

/** Dollars of a prompt by the rates of the model that was asked. */
function billOf({ input, cacheRead, writeShort, writeLong }: TokensByPriceClass, seen: Seen): number {
  const rates = ratesOf(seen)
  return (
    (input * rates.input +
      cacheRead * rates.cacheRead +
      writeShort * rates.writeShort +
      writeLong * rates.writeLong) /
    1e6
  )
}

function dollarsText(dollars: number): string {
  return `$${dollars.toFixed(dollars < 0.1 ? 4 : 2)}`
}

describe.each([true, false])('with the word of the provider: %s', (asksProvider) => {
  it.each(MUTATIONS)('$name', async (mutation) => {
    const { hit, twin } = await mutated(mutation, asksProvider)
    if (hit.outcome.kind !== 'broke') throw new Error(`expected a break: ${JSON.stringify(hit.outcome)}`)
    const { event } = hit.outcome
    const [paid, due] = [tokensOf(hit), tokensOf(twin)]

    // What the simulator says of its own cache, and what the bill of the conversation left alone says.
    const lost = hit.record.cache?.miss?.tokens ?? 0
    expect(due.cacheRead - paid.cacheRead).toBe(lost)
    expect(twin.outcome.kind).toBe('read')

    const write = mutation.change?.ttl === '1h' || mutation.options?.ttl === '1h' ? 'writeLong' : 'writeShort'
    const rates = ratesOf(hit)
    const price = (lost * (rates[write] - rates.cacheRead)) / 1e6
    const { reason, also, tokensLost, sentence, provider, ours } = event
    const cost = `${formatCount(lost)} tokens processed again (${dollarsText(price)})`
    expect({ reason, also, tokensLost, sentence, word: provider?.said ?? null, ours }).toEqual({
      reason: mutation.reason,
      also: mutation.also ?? [],
      tokensLost: lost,
      sentence: `Cache broke: ${mutation.fact}; ${cost}. ${mutation.advice}`,
      word: asksProvider ? mutation.word : null,
      ours: null,
    })
    expect(event.moneyLost).toBeCloseTo(price, 12)

    // What can be seen beforehand was foreseen.
    const isSudden = reason.kind === 'evicted' || mutation.options?.simulator !== undefined
    const foreseen = hit.forecast.isCertain ? hit.forecast.read : Math.sign(hit.forecast.read)
    const read = hit.forecast.isCertain ? paid.cacheRead : Math.sign(paid.cacheRead)
    if (!isSudden) expect(foreseen).toBe(read)

    // The same price, off the two bills: what is new would have been written anyway.
    const added = anewIn(paid) + paid.cacheRead - due.cacheRead
    const unbroken = { ...paid, writeShort: 0, writeLong: 0, [write]: added, cacheRead: due.cacheRead }
    expect(billOf(paid, hit) - billOf(unbroken, hit)).toBeCloseTo(price, 12)
    expect(hit.record.cost?.total).toBeCloseTo(billOf(paid, hit) + (paid.output * rates.output) / 1e6, 12)
  })
})
