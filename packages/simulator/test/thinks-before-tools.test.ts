import { describe, expect, it } from 'vitest'
import { createCoder } from '../src/scripts/coder.ts'
import { createSimulator } from '../src/server/simulator.ts'

describe('thinking with a budget', () => {
  it('comes before a tool call even if the script has none, so that the reply can be sent back', async () => {
    const coder = createCoder({ turns: 5 })
    const { fetch } = createSimulator({ script: coder.script })
    const tools = ['Read', 'Edit', 'Bash', 'Grep'].map((name) => ({ name, input_schema: { type: 'object' } }))
    const messages: { role: string; content: unknown }[] = [{ role: 'user', content: 'Fix the login.' }]
    for (let turn = 0; turn < 5; turn += 1) {
      const response = await fetch('http://simulator/v1/messages', {
        method: 'POST',
        headers: { 'x-api-key': 'any', 'anthropic-version': '2023-06-01' },
        body: JSON.stringify({
          model: 'claude-haiku-4-5',
          max_tokens: 4000,
          thinking: { type: 'enabled', budget_tokens: 1024 },
          tools,
          messages,
        }),
      })
      const answer = (await response.json()) as { readonly content: readonly { readonly type: string }[] }
      expect([response.status, answer.content[0]?.type]).toEqual([200, 'thinking'])
      const calls = answer.content.filter((block) => block.type === 'tool_use')
      messages.push({ role: 'assistant', content: answer.content })
      messages.push({ role: 'user', content: calls.map((call) => coder.toolResult(call)) })
    }
  })
})
