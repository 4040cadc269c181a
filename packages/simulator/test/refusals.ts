/** A table of requests, each with the text of its error. */
import type { SimulatorOptions } from '@tidemark/simulator'
import { expect, it } from 'vitest'
import { postMessage, type RequestSettings, simulate } from './ask.ts'

export interface RejectionRow {
  readonly name: string
  readonly body: object
  readonly asked?: RequestSettings
  readonly options?: SimulatorOptions
  /** The whole message, or its beginning; null if the request is accepted. */
  readonly says: string | null | RegExp
}

export function testRejections(rows: readonly RejectionRow[], base: object = {}): void {
  it.each(rows)('$name', async ({ body, asked, options, says }) => {
    const told = await postMessage(simulate(options), { ...base, ...body }, asked)
    expect(told.status).toBe(says === null ? 200 : 400)
    if (says === null) return
    expect(told.body).toEqual({
      type: 'error',
      error: { type: 'invalid_request_error', message: told.body.error.message },
      request_id: told.headers.get('request-id'),
    })
    if (says instanceof RegExp) expect(told.body.error.message).toMatch(says)
    else expect(told.body.error.message).toBe(says)
  })
}
