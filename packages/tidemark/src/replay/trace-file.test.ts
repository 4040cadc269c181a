import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { logFolder } from '../../test/log-folder.ts'
import { countNewTokens, countSentTokens, decodeTrace, hasNoRewrites, readTrace } from './trace-file.ts'

const step = [
  12.5,
  [
    [0, 300, [1, 2], 'Read'],
    [1, 20, [], ''],
    [2, 5, [], ''],
  ],
  [80, [3]],
  [3],
  [],
  [4, 500, 60],
]
const written = { v: 1, id: 'one', model: 'claude-opus-4-5', base_tokens: 400, steps: [step], events: [] }

describe('decodeTrace', () => {
  it('reads added input, output and usage of each call', () => {
    expect(decodeTrace(written)).toEqual({
      id: 'one',
      model: 'claude-opus-4-5',
      baseTokens: 400,
      calls: [
        {
          at: 12_500,
          added: [
            { kind: 'result', tokens: 300 },
            { kind: 'prompt', tokens: 20 },
            { kind: 'host', tokens: 5 },
          ],
          outputTokens: 80,
          usage: { input: 4, read: 500, written: 60 },
        },
      ],
      events: [],
    })
  })

  it('reads events; isEventFree is true without any', () => {
    const trace = decodeTrace({ ...written, events: [{ t: 3.5, kind: 'compact', pre: 9 }] })
    expect(trace?.events).toEqual([{ at: 3_500, kind: 'compact' }])
    expect([trace, decodeTrace(written)].map((each) => each !== null && hasNoRewrites(each))).toEqual([
      false,
      true,
    ])
  })

  it.each([
    ['nothing', null],
    ['a list', []],
    ['another version', { ...written, v: 2 }],
    ['no steps', { ...written, steps: undefined }],
    ['no id', { ...written, id: 7 }],
    ['a step of another type', { ...written, steps: [step, 'x'] }],
    ['a step without usage', { ...written, steps: [step.slice(0, 5)] }],
  ])('refuses %s', (_, value) => {
    expect(decodeTrace(value)).toBeNull()
  })

  it('reads figures that are no counts as 0', () => {
    const odd = [null, [[9, -5], 'x'], [Number.NaN], [], [], ['many', 1e300, 7]]
    expect(decodeTrace({ ...written, steps: [odd] })?.calls).toEqual([
      {
        at: 0,
        added: [{ kind: 'host', tokens: 0 }],
        outputTokens: 0,
        usage: { input: 0, read: 0, written: 7 },
      },
    ])
  })
})

it('counts what a call sent, and what it sent for the first time', () => {
  const [call] = decodeTrace(written)?.calls ?? []
  expect(call === undefined ? null : [countSentTokens(call), countNewTokens(call)]).toEqual([564, 325])
})

const text = JSON.stringify({ v: 1, id: 'one', model: 'm', base_tokens: 1, steps: [], events: [] })
const trace = { id: 'one', model: 'm', baseTokens: 1, calls: [], events: [] }

describe('readTrace', () => {
  it.each([
    ['plain', text],
    ['gzipped', gzipSync(text)],
  ])('reads a %s file', async (_, content) => {
    const path = logFolder().file('a.json', content)
    expect(await readTrace(path)).toEqual({ ok: true, trace })
  })

  it.each([
    ['no JSON', '{', 'unknown-format'],
    ['other JSON', '{"v":1}', 'unknown-format'],
    ['damaged gzip data', gzipSync(text).subarray(0, 30), 'unreadable'],
  ])('refuses %s', async (_, content, reason) => {
    const path = logFolder().file('a.json', content)
    expect(await readTrace(path)).toEqual({ ok: false, path, reason, message: expect.stringContaining(path) })
  })

  it('refuses a missing file', async () => {
    const path = `${logFolder().path}/none.json`
    expect(await readTrace(path)).toMatchObject({ ok: false, reason: 'missing' })
  })
})
