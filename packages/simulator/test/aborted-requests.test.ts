/** Aborted requests and broken connections: what the caller sees. */
import { createSimulator, serve } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { MODEL, user } from './ask.ts'

function streamed(fault: string, signal?: AbortSignal): RequestInit {
  return {
    method: 'POST',
    headers: { 'x-api-key': 'k', 'anthropic-version': '2026-10-21', 'x-simulator-fault': fault },
    body: JSON.stringify({ model: MODEL, max_tokens: 99, stream: true, messages: [user('x')] }),
    ...(signal === undefined ? {} : { signal }),
  }
}

const MESSAGES = 'http://simulator/v1/messages'

describe('aborting', () => {
  it('rejects before the head arrives, with the reason of the abort', async () => {
    const stop = new AbortController()
    const waiting = createSimulator().fetch(MESSAGES, streamed('hang', stop.signal))
    stop.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
  })

  it.each([
    { name: 'its signal beside the address', asRequest: false },
    { name: 'the signal of a Request', asRequest: true },
  ])('rejects after the head arrived, in $name', async ({ asRequest }) => {
    const stop = new AbortController()
    const init = streamed('hang-after=2', stop.signal)
    const { fetch } = createSimulator()
    const response = await (asRequest ? fetch(new Request(MESSAGES, init)) : fetch(MESSAGES, init))
    const reader = response.body?.getReader()
    const first = await reader?.read()
    expect(new TextDecoder().decode(first?.value).match(/^event: /gm)).toHaveLength(2)
    const more = reader?.read()
    stop.abort(new Error('enough'))
    await expect(more).rejects.toThrow('enough')
  })

  it('rejects at once if the signal is already aborted', async () => {
    const signal = AbortSignal.abort(new Error('never'))
    const simulator = createSimulator()
    await expect(simulator.fetch(MESSAGES, streamed('hang', signal))).rejects.toThrow('never')
    expect(simulator.requests).toEqual([])
  })
})

describe('a connection that is reset', () => {
  it.each([
    { fault: 'reset-after=3', seen: /^(event: \w+\ndata: .*\n\n){3}$/ },
    { fault: 'reset-after=120b', seen: /^[\s\S]{120}$/ },
  ])('$fault: the client has received what came before', async ({ fault, seen }) => {
    const served = await serve()
    try {
      const response = await fetch(`${served.url}/v1/messages`, streamed(fault))
      let got = ''
      const all = (async () => {
        for await (const chunk of response.body ?? []) got += new TextDecoder().decode(chunk)
      })()
      await expect(all).rejects.toThrow()
      expect([response.status, got]).toEqual([200, expect.stringMatching(seen)])
    } finally {
      await served.close()
    }
  })
})
