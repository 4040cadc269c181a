/** Context sources and sections of the system prompt that never answer hold up neither a run nor a compaction. */
import { type ContextSource, section, user } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { createTestTidemark } from '../support/test-tidemark.ts'

const never = (): Promise<never> => new Promise(() => {})
const policy = { rehydrate: { timeoutSeconds: 1 } }

function createSource(name: string, render: ContextSource['render'], tellsChanges = false): ContextSource {
  return { name, kind: 'host', tellsChanges, isWhole: true, limit: () => null, render }
}

const item = { id: 'a', attachment: { type: 'note', content: 'Keep it.' }, source: 'host' }

const hanging = createSource('hanging', async function* () {
  yield item
  await never()
})
/** Gives one item after the other, none of which takes long. */
const endless = createSource('endless', async function* () {
  for (let index = 0; ; index += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    yield { id: String(index), why: 'is not wanted' }
  }
})

describe('a context source without an end', () => {
  it('is left out of a compaction after its time, and the receipt tells why', async () => {
    const world = createTestTidemark({ carriers: [hanging, endless], policy, resultTokens: 2_000 })
    const session = await world.tide.open('a')
    await session.run('Mend the sums.', world.tools).outcome
    const failed: string[] = []
    session.on('restore-failed', ({ carrier }) => failed.push(carrier))
    const end = await session.compact()
    const why = 'took longer than 1 seconds'
    expect(end).toMatchObject({
      ok: true,
      compaction: {
        receipt: {
          leftOut: [
            { source: 'hanging', why },
            { source: 'endless', why },
          ],
        },
      },
    })
    expect(failed).toEqual(['hanging', 'endless'])
    expect(JSON.stringify(session.messages())).toContain('Keep it.')
  })

  it('does not hold up a run, and an abort ends the wait at once', async () => {
    const slow = createSource('slow', () => ({ [Symbol.asyncIterator]: () => ({ next: never }) }), true)
    const world = createTestTidemark({ carriers: [slow], policy: { rehydrate: { timeoutSeconds: 600 } } })
    const session = await world.tide.open('a')
    const stop = new AbortController()
    const run = session.run('Mend the sums.', { ...world.tools, signal: stop.signal })
    setTimeout(() => stop.abort(), 20)
    expect(await run.outcome).toMatchObject({ ok: false, reason: 'aborted' })
    const quick = createTestTidemark({ carriers: [slow], policy, turns: 1 })
    const other = await quick.tide.open('a')
    expect(await other.run('Mend the sums.', quick.tools).outcome).toMatchObject({ ok: true })
  })
})

describe('a section of the system prompt that is never computed', () => {
  const system = { sections: [section('git', never)] }

  it('ends the run after the time of a hook, with a line that names it', async () => {
    const world = createTestTidemark({ system, policy: { turn: { hooks: { timeoutSeconds: 1 } } } })
    const session = await world.tide.open('a')
    expect(await session.run('Mend the sums.').outcome).toMatchObject({
      ok: false,
      reason: 'prefix',
      message: 'Section "git" could not be computed: it took longer than 1 seconds.',
    })
  })

  it('does not hold up an abort or close', async () => {
    const world = createTestTidemark({ system })
    const session = await world.tide.open('a')
    await session.append(user('Mend the sums.'))
    const next = session.next()
    await session.close()
    expect(await next).toMatchObject({ ok: false, reason: 'aborted' })
  })
})
