/** A request spelled from the one before, joining included, against one spelled anew: what a long turn is spared. */
import { type AssembledRequest, listRawTexts, toPayload } from '@tidemark/core'
import {
  encodeRequest,
  extendRequest,
  type IncrementalRequest,
  joinEncodedRequest,
  joinIncrementalRequest,
} from '@tidemark/wire'
import type { BenchCase } from '../harness/bench-case.ts'
import { requestsBehind } from '../harness/tool-loop.ts'

const ROUNDS = 15

/** The body of one more request; each call has one of its own, with the request before it as it was sent. */
function lastBody(encode: (last: AssembledRequest, before: IncrementalRequest) => string): () => string {
  const next = requestsBehind(10_000, 1)
  const pairs = Array.from({ length: ROUNDS }, () => {
    const [first, last] = next()
    if (first === undefined || last === undefined) throw new Error('no requests')
    const before = extendRequest(first)
    if (joinIncrementalRequest(before) !== plain(first)) throw new Error('not the same bytes')
    return { before, last }
  })
  return () => {
    const pair = pairs.pop()
    if (pair === undefined) throw new Error('a round more than was prepared')
    return encode(pair.last, pair.before)
  }
}

function grown(last: AssembledRequest, previous: IncrementalRequest): string {
  return joinIncrementalRequest(extendRequest(last, { previous }))
}

function plain(last: AssembledRequest): string {
  return joinEncodedRequest(encodeRequest(toPayload(last), { raw: { messages: listRawTexts(last) } }))
}

export const benchCase: BenchCase = {
  name: 'encode-beats-plain',
  compares: 'body of a request at 10,000 messages, grown from the one before, with the same spelled anew',
  bound: { atMost: 0.6 },
  rounds: ROUNDS,
  prepare: () => ({
    subject: lastBody(grown),
    baseline: lastBody(plain),
    calls: { subject: 1, baseline: 1 },
  }),
}
