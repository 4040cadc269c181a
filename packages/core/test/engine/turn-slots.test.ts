import { createTestCompaction } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { openSession } from '../../src/engine/session-state.ts'
import { createScriptedHost, logLines, playTurn, reply, text, toolCall } from './test-session.ts'

describe('what the host attaches before a request', () => {
  it('is appended before each request, and the model sees it', async () => {
    const waiting = ['Rules of src.', 'Rules of test.']
    const { host, asked } = createScriptedHost([reply(toolCall('a')), reply(text('Done.'))], {
      compaction: createTestCompaction(),
      attachBeforeRequest: async () => [{ type: 'nested_memory', content: waiting.shift() ?? '' }],
    })
    const { outcome } = await playTurn(await openSession(host.journal, 's'), { prompt: 'Go.' }, host)
    expect(outcome.ok).toBe(true)
    const sent = asked.map(({ payload }) => JSON.stringify(payload.messages))
    expect(sent[0]).toContain('Rules of src.')
    expect(sent[0]).not.toContain('Rules of test.')
    expect(sent[1]).toContain('Rules of test.')
  })

  it('that cannot be had is told, and the turn goes on without it', async () => {
    const { host } = createScriptedHost([reply(text('Done.'))], {
      compaction: createTestCompaction(),
      attachBeforeRequest: async () => {
        throw new Error('The folder cannot be read.')
      },
    })
    const { outcome, events } = await playTurn(await openSession(host.journal, 's'), { prompt: 'Go.' }, host)
    expect(outcome.ok).toBe(true)
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'hook-failed', message: 'The folder cannot be read.' }),
    )
    expect(logLines(outcome.state).filter((line) => line.startsWith('attachment'))).toEqual([])
  })
})

describe('work in the background', () => {
  it('is offered after every response and after the answer that ends the turn, which a failed turn has not', async () => {
    const started: string[] = []
    const startBackgroundWork = (_: unknown, moment: string): void => {
      started.push(moment)
    }
    const { host } = createScriptedHost([reply(toolCall('a')), reply(text('Done.'))], { startBackgroundWork })
    await playTurn(await openSession(host.journal, 's'), { prompt: 'Go.' }, host)
    expect(started.splice(0)).toEqual(['response', 'response', 'turn-end'])
    const stopped = createScriptedHost([reply(toolCall('a'))], { startBackgroundWork, maxCalls: 1 })
    await playTurn(await openSession(stopped.host.journal, 's'), { prompt: 'Go.' }, stopped.host)
    expect(started).toEqual(['response'])
  })
})
