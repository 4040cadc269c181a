import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { logFolder } from '../../test/log-folder.ts'
import { readTrace } from './read-trace.ts'

const text = JSON.stringify({ v: 1, id: 'one', model: 'm', base_tokens: 1, steps: [], events: [] })
const trace = { id: 'one', model: 'm', baseTokens: 1, calls: [], events: [] }

describe('readTrace', () => {
  it.each([
    ['plain', text],
    ['packed', gzipSync(text)],
  ])('reads a %s file', async (_, content) => {
    const path = logFolder().file('a.json', content)
    expect(await readTrace(path)).toEqual({ ok: true, trace })
  })

  it.each([
    ['no JSON', '{', 'unknown-format'],
    ['other JSON', '{"v":1}', 'unknown-format'],
    ['broken packing', gzipSync(text).subarray(0, 30), 'unreadable'],
  ])('refuses %s', async (_, content, reason) => {
    const path = logFolder().file('a.json', content)
    expect(await readTrace(path)).toEqual({ ok: false, path, reason, message: expect.stringContaining(path) })
  })

  it('refuses a file that is not there', async () => {
    const path = `${logFolder().path}/none.json`
    expect(await readTrace(path)).toMatchObject({ ok: false, reason: 'missing' })
  })
})
