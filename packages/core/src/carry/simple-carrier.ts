/** A carrier whose state is a list that its host knows. */
import type { Carrier, CarryContext, Offer } from './carrier.ts'

/** What a host gives: at once, or after asking. */
export type Given<T> = T | Promise<T>

export interface SimpleCarrier extends Pick<Carrier, 'name' | 'kind'> {
  readonly tellsChanges?: boolean
  readonly isWhole?: boolean
  readonly limit?: Carrier['limit']
  readonly read: (context: CarryContext) => Given<readonly Offer[]>
}

export function simpleCarrier(given: SimpleCarrier): Carrier {
  const { name, kind, tellsChanges = true, isWhole = true, limit = () => null, read } = given
  async function* render(context: CarryContext): AsyncGenerator<Offer> {
    yield* await read(context)
  }
  return { name, kind, tellsChanges, isWhole, limit, render }
}
