/** Answers of a provider that real clients meet and that the simulator does not give by itself. */
import type { Fetch } from './client.ts'

/** A prompt that is too long is refused inside a stream that began with 200, as OpenAI does at times. */
export function failInsideStream(fetch: Fetch): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init)
    if (response.status !== 400) return response
    const body = await response.text()
    const { error } = JSON.parse(body)
    if (error?.code !== 'context_length_exceeded') return new Response(body, response)
    const failed = {
      type: 'response.failed',
      sequence_number: 1,
      response: {
        id: 'resp_failed',
        object: 'response',
        status: 'failed',
        error: { code: error.code, message: error.message },
        output: [],
      },
    }
    const text = `event: response.failed\ndata: ${JSON.stringify(failed)}\n\n`
    return new Response(text, { headers: { 'content-type': 'text/event-stream; charset=utf-8' } })
  }
}
