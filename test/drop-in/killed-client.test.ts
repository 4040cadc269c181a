/** A client whose process is killed, and what its log is good for afterwards. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startChild } from '../../packages/tidemark/test/child-process.ts'
import { ClientAgent, type ClientResponse, createDropInWorld } from './client-agent.ts'

describe('a process that is killed between a request and its response', () => {
  it('leaves a log with which the client goes on as if nothing had been', async () => {
    const home = mkdtempSync(join(tmpdir(), 'tidemark-drop-in-'))
    onTestFinished(() => rmSync(home, { recursive: true, force: true, maxRetries: 10 }))
    const file = new URL('./killed-client-process.ts', import.meta.url).href
    const child = startChild(file, home)
    expect(await child.ended).toBe('SIGKILL')
    const world = createDropInWorld({ home })
    const session = await world.tide.open('talk')
    const host = new ClientAgent(world.tide.fetch({ session, fetch: world.upstream }), world.coder)
    host.messages = JSON.parse(child.said[0] ?? '')
    const response = (await (await host.send()).json()) as ClientResponse
    expect(response.stop_reason).toBe('tool_use')
    expect([
      session.damage,
      world.listMessages('host-history-changed'),
      world.listMessages('request-passed'),
    ]).toEqual([[], [], []])
    expect(JSON.parse(world.sent[0] ?? '').messages).toHaveLength(host.messages.length)
    await world.tide.close()
  })
})
