/** A client whose process is killed, and what its log is good for afterwards. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
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

/** A history of so many calls of a tool, which the log has not seen. */
function writeHistory(calls: number): string {
  const turns = Array.from({ length: calls }, (_, number) => [
    {
      role: 'assistant',
      content: [{ type: 'tool_use', id: `toolu_${number}`, name: 'Read', input: { path: `/${number}` } }],
    },
    {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: `toolu_${number}`, content: `${number}.` }],
    },
  ])
  const messages = [{ role: 'user', content: 'Read all files.' }, ...turns.flat()]
  const tools = [{ name: 'Read', input_schema: { type: 'object' } }]
  return JSON.stringify({ model: 'claude-sonnet-5-5', max_tokens: 100, tools, messages })
}

describe('a process that is killed while it records the long history of a client', () => {
  it.each([1, 3])(
    'has lost nothing after %i writes, and the next request brings the rest',
    async (writes) => {
      const home = mkdtempSync(join(tmpdir(), 'tidemark-drop-in-'))
      onTestFinished(() => rmSync(home, { recursive: true, force: true, maxRetries: 10 }))
      const body = writeHistory(500)
      const headers = { 'x-api-key': 'k', 'anthropic-version': '2023-06-01' }
      const child = startChild(
        new URL('./killed-import-process.ts', import.meta.url).href,
        home,
        body,
        `${writes}`,
      )
      expect(await child.ended).toBe('SIGKILL')
      const written = readRecords(home)
      expect(child.said.length).toBeGreaterThan(100)
      expect(child.said.length).toBeLessThan(1001)
      expect(written.slice(0, child.said.length).map(({ uuid }) => uuid)).toEqual(child.said)
      const world = createDropInWorld({ home })
      const fetch = world.tide.fetch({ session: 'talk', fetch: world.upstream })
      const response = await fetch('http://api/v1/messages', { method: 'POST', headers, body })
      await response.text()
      expect(response.status).toBe(200)
      expect([world.listMessages('host-history-changed'), world.listMessages('request-passed')]).toEqual([
        [],
        [],
      ])
      expect(JSON.parse(world.sent[0] ?? '').messages).toHaveLength(1001)
      const messages = readRecords(home).filter(({ type }) => type === 'user' || type === 'assistant')
      expect(messages.filter(({ message }) => JSON.stringify(message).includes('toolu_'))).toHaveLength(1000)
      await world.tide.close()
    },
  )
})

function readRecords(home: string): readonly Readonly<Record<string, unknown>>[] {
  const lines = readFileSync(join(home, 'sessions', 'talk.jsonl'), 'utf8')
    .trim()
    .split('\n')
  return lines
    .map((line): Record<string, unknown> => JSON.parse(line))
    .filter(({ uuid }) => uuid !== undefined)
}
