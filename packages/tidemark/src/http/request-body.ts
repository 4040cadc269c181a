/**
 * The body of each call as one string: `fetch` then knows its length, and a retry sends the very same bytes.
 * Only the joining grows with the conversation: every message is spelled once and remembered.
 */
import type { ModelCall } from '@tidemark/core'
import { bodyText, encodeRequest, type GrowingRequest, growingText, growRequest } from '@tidemark/wire'

export interface RequestBody {
  readonly text: string
  readonly betas: readonly string[]
}

const FIELDS = { stream: true }

/** Goes on from the request before. Sessions that take turns cost a look at each message, no spelling. */
export function createBodyWriter(): (call: ModelCall) => RequestBody {
  let previous: GrowingRequest | undefined
  return (call) => {
    if (call.request === undefined) return plainBody(call)
    previous = growRequest(call.request, { fields: FIELDS, previous })
    return { text: growingText(previous), betas: previous.betas }
  }
}

/** A payload that was made by hand. */
function plainBody({ payload, raw }: ModelCall): RequestBody {
  const options = raw === undefined ? {} : { raw: { messages: raw } }
  const encoded = encodeRequest({ ...payload, ...FIELDS }, options)
  return { text: bodyText(encoded), betas: encoded.betas }
}
