import { describe, expect, it } from 'vitest'
import type { Carrier, Offer } from '../../carry/carrier.ts'
import type { Deadlines } from '../deadlines.ts'
import { boundedCarriers } from './bounded-carriers.ts'
import type { Room } from './room.ts'

/** Time is up for whatever has nothing at once. */
const deadlines: Deadlines = {
  within: async (_, work, signal) => {
    if (signal?.aborted === true) return { ok: false, why: 'aborted' }
    const late = new Promise<null>((resolve) => setImmediate(() => resolve(null)))
    const end = await Promise.race([work({ aborted: false }).then((value) => ({ value })), late])
    return end === null ? { ok: false, why: 'timeout' } : { ok: true, value: end.value }
  },
}

const offer: Offer = { id: 'a', attachment: { type: 'todo', content: 'x' }, source: 'memory' }

function carrier(render: Carrier['render']): Carrier {
  return { name: 'todos', kind: 'host', tellsChanges: false, isWhole: true, limit: () => null, render }
}

function offered(render: Carrier['render'], signal?: { aborted: boolean }): AsyncIterator<Offer> {
  const [bounded] = boundedCarriers({ deadlines, carriers: [carrier(render)] } as unknown as Room, signal)
  if (bounded === undefined) throw new Error('there is one')
  return bounded.render({} as never)[Symbol.asyncIterator]()
}

describe('a carrier', () => {
  it('is handed on as it is', async () => {
    const offers = offered(async function* () {
      yield offer
    })
    expect([await offers.next(), await offers.next()]).toEqual([
      { done: false, value: offer },
      { done: true, value: undefined },
    ])
  })

  it('has failed where it hangs', async () => {
    const offers = offered(async function* () {
      yield offer
      await new Promise(() => {})
    })
    await offers.next()
    await expect(offers.next()).rejects.toThrow('took longer than 20 seconds')
  })

  it('is not asked once the person has called it off', async () => {
    const offers = offered(
      async function* () {
        yield offer
      },
      { aborted: true },
    )
    await expect(offers.next()).rejects.toThrow('was called off')
  })

  it('hears that nobody wants more', async () => {
    const closed: string[] = []
    const offers = offered(async function* () {
      try {
        yield offer
        yield offer
      } finally {
        closed.push('closed')
      }
    })
    await offers.next()
    await offers.return?.()
    await Promise.resolve()
    expect(closed).toEqual(['closed'])
  })
})
