/**
 * What spelling a request costs must not grow with the conversation. Joining the texts is left out: every byte
 * has to be sent, so that joining grows with them; the case `encode-beats-plain` has it in.
 */
import { extendRequest, type IncrementalRequest } from '@tidemark/wire'
import type { BenchCase } from '../harness/bench-case.ts'
import { requestsBehind } from '../harness/tool-loop.ts'

const ROUNDS = 15
const CALLS = 50

/** The first request of a session is spelled whole, beforehand; each round has new messages behind it. */
function callsFrom(length: number): () => IncrementalRequest {
  const next = requestsBehind(length, CALLS)
  const rounds = Array.from({ length: ROUNDS }, () => {
    const [first, ...rest] = next()
    if (first === undefined) throw new Error('no requests')
    return { first: extendRequest(first), rest }
  })
  return () => {
    const round = rounds.pop()
    if (round === undefined) throw new Error('a round more than was prepared')
    return round.rest.reduce((previous, request) => extendRequest(request, { previous }), round.first)
  }
}

export const benchCase: BenchCase = {
  name: 'encode-request-is-flat',
  compares: 'spelling of a request at 10,000 messages with the same at 100, joining aside',
  bound: { atMost: 1.5 },
  rounds: ROUNDS,
  prepare: () => ({
    subject: callsFrom(10_000),
    baseline: callsFrom(100),
    calls: { subject: 1, baseline: 1 },
  }),
}
