/** Conversations of large rounds, opened with room around them. */
import { SessionBuilder } from '@tidemark/core/testing'
import { messagesOf, type TurnEvent } from '../../src/index.ts'
import { largeRound, type Roomy, type RoomyOptions, roomy, SESSION } from './roomy.ts'

/** A conversation of so many rounds of so many tokens. */
export function told(rounds = 3, tokens = 2_000, thinks = false): SessionBuilder {
  const builder = new SessionBuilder(SESSION)
  builder.user('look at the login')
  for (let round = 0; round < rounds; round += 1) largeRound(builder, tokens, thinks)
  return builder
}

export const open = (options: RoomyOptions = {}, builder = told()): Promise<Roomy> =>
  roomy(builder.records, options)
/** All that would be sent. */
export const shown = ({ run }: Roomy): string => JSON.stringify(messagesOf(run.state.flat))
export const ofType = <T extends TurnEvent['type']>(
  { events }: Roomy,
  type: T,
): readonly Extract<TurnEvent, { type: T }>[] =>
  events.filter((event): event is Extract<TurnEvent, { type: T }> => event.type === type)
