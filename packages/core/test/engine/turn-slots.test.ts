import { describe, expect, it } from 'vitest'
import { readSessionState } from '../../src/engine/session-state.ts'
import { createScriptedHost, playTurn, reply, text, toolCall } from './test-session.ts'

describe('work in the background', () => {
  it('is offered after every response and after the answer that ends the turn, which a failed turn has not', async () => {
    const started: string[] = []
    const startBackgroundWork = (_: unknown, moment: string): void => {
      started.push(moment)
    }
    const { host } = createScriptedHost([reply(toolCall('a')), reply(text('Done.'))], { startBackgroundWork })
    await playTurn(await readSessionState(host.journal, 's'), { prompt: 'Go.' }, host)
    expect(started.splice(0)).toEqual(['response', 'response', 'turn-end'])
    const stopped = createScriptedHost([reply(toolCall('a'))], { startBackgroundWork, maxCalls: 1 })
    await playTurn(await readSessionState(stopped.host.journal, 's'), { prompt: 'Go.' }, stopped.host)
    expect(started).toEqual(['response'])
  })
})
