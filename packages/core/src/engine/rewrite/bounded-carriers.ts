/** Carriers that cannot hang a session: one that takes too long has failed, and the others come all the same. */
import type { Carrier, Offer } from '../../carry/carrier.ts'
import type { Signal } from '../ports.ts'
import type { Room } from './room.ts'

/** Seconds that one thing of a carrier may take: a file on a disk that does not answer. */
const LONGEST_SECONDS = 20

export function boundedCarriers(
  { carriers = [], deadlines }: Room,
  signal: Signal | undefined,
): readonly Carrier[] {
  return carriers.map((carrier) => ({
    name: carrier.name,
    kind: carrier.kind,
    tellsChanges: carrier.tellsChanges,
    isWhole: carrier.isWhole,
    limit: (context) => carrier.limit(context),
    render: async function* (context): AsyncGenerator<Offer, void> {
      const offers = carrier.render(context)[Symbol.asyncIterator]()
      try {
        for (;;) {
          const next = await deadlines.within(LONGEST_SECONDS * 1000, () => offers.next(), signal)
          if (!next.ok) throw new Error(next.why === 'timeout' ? TOO_LONG : 'was called off')
          if (next.value.done === true) return
          yield next.value.value
        }
      } finally {
        // Not waited for: one that hangs would hang here again.
        offers.return?.().then(undefined, () => {})
      }
    },
  }))
}

const TOO_LONG = `took longer than ${LONGEST_SECONDS} seconds`
