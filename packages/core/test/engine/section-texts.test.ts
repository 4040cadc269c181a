import { describe, expect, it } from 'vitest'
import { toApiMessages } from '../../src/context/flatten-context.ts'
import { readSessionState, refreshSessionState } from '../../src/engine/session-state.ts'
import {
  orderPromptSections,
  SYSTEM_PROMPT_DYNAMIC_BOUNDARY,
  section,
  volatileSection,
} from '../../src/request/system-prompt.ts'
import { createScriptedHost, playTurn } from './test-session.ts'

describe('the texts of sections', () => {
  const counting = () => {
    let count = 0
    const sections = orderPromptSections({
      sections: [section('rules', () => `rules, told ${++count} times`), SYSTEM_PROMPT_DYNAMIC_BOUNDARY],
    })
    return { sections, computed: () => count }
  }

  it('are kept until a compaction, and computed anew behind it', async () => {
    const { sections, computed } = counting()
    const { host } = createScriptedHost([], { sections })
    const first = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'One.' }, host)
    const second = await playTurn(first.outcome.state, { prompt: 'Two.' }, host)
    const { position } = second.outcome.state
    const base = { timestamp: '2026-01-01T00:00:00Z', sessionId: 's', parentUuid: null }
    const compactMetadata = { trigger: 'manual' as const, preTokens: 1 }
    const before = computed()
    await host.journal.append('s', position, [
      { ...base, uuid: 'b', type: 'system', subtype: 'compact_boundary', compactMetadata },
      {
        ...base,
        uuid: 'c',
        parentUuid: 'b',
        type: 'user',
        isCompactSummary: true,
        message: { role: 'user', content: 'All was done.' },
      },
    ])
    await playTurn(await refreshSessionState(host.journal, second.outcome.state), { prompt: 'Three.' }, host)
    expect([before, computed()]).toEqual([1, 2])
  })

  it('that are volatile are computed for each request, the others once', async () => {
    const computed = { rules: 0, git: 0 }
    const sections = orderPromptSections({
      sections: [
        section('rules', () => `rules ${++computed.rules}`),
        SYSTEM_PROMPT_DYNAMIC_BOUNDARY,
        volatileSection('git', () => `commit ${++computed.git}`, 'the work tree changes'),
      ],
    })
    const { host } = createScriptedHost([], { sections })
    const first = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'One.' }, host)
    await playTurn(first.outcome.state, { prompt: 'Two.' }, host)
    expect(computed).toEqual({ rules: 1, git: 2 })
  })

  it('are computed anew for another model', async () => {
    const { sections, computed } = counting()
    let model = 'model-a'
    const offered = () => ({ tools: [], model, parameters: { max_tokens: 100 } })
    const { host } = createScriptedHost([], { sections, readOfferedPrefix: offered })
    const first = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'One.' }, host)
    model = 'model-b'
    const { outcome } = await playTurn(first.outcome.state, { prompt: 'Two.' }, host)
    expect([outcome.ok, computed()]).toEqual([true, 2])
    expect(outcome.state.prefix.current?.epoch.sections.map(({ text: said }) => said)).toEqual([
      'rules, told 2 times',
    ])
  })

  it('that changed again as an epoch began are in it, and what was announced before is gone', async () => {
    let [model, now] = ['model-a', 'one']
    const { host } = createScriptedHost([], {
      readOfferedPrefix: () => ({ tools: [], model, parameters: { max_tokens: 100 } }),
      sections: [{ name: 'git', part: 'volatile', compute: () => now, volatileBecause: 'it moves' }],
    })
    const first = await playTurn(await readSessionState(host.journal, 's'), { prompt: 'One.' }, host)
    now = 'two'
    const second = await playTurn(first.outcome.state, { prompt: 'Two.' }, host)
    ;[model, now] = ['model-b', 'three']
    const { events, outcome } = await playTurn(second.outcome.state, { prompt: 'Three.' }, host)
    const changes = events.flatMap((event) => (event.type === 'prefix-changed' ? [event.change.kind] : []))
    expect([outcome.ok, changes]).toEqual([true, ['epoch']])
    expect(JSON.stringify(toApiMessages(outcome.state.flat))).not.toContain('two')
  })
})
