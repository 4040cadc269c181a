import { SessionBuilder } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import type { KnownRecord, PrefixSnapshot } from '../../src/log/record.ts'
import type { ProviderProfile } from '../../src/policy/provider-profile.ts'
import { toPayload } from '../../src/request/build-request.ts'
import {
  createPrefixSnapshot,
  createSnapshotForCompaction,
  emptyKnownPrefix,
  hasBoundThinking,
  updateKnownPrefix,
} from '../../src/request/prefix-snapshot.ts'
import { createSnapshotRecord } from '../../src/request/prefix-updates.ts'
import { Conversation, PRESENT, PROFILE, tool } from './conversation.ts'

const INLINE = defineMessagesProfile({
  roles: { consecutive: 'merged', system: 'placed' },
  thinking: { binding: 'prefix', closing: 'not-at-end', firstInModes: [] },
  capabilities: { toolChanges: true },
  betas: [
    { where: 'block', name: 'tool_addition', betas: ['changes', 'inline'] },
    { where: 'block', name: 'tool_removal', betas: ['changes', 'inline'] },
  ],
})

const withGit = (text: string | null) => ({
  ...PRESENT,
  sections: PRESENT.sections.flatMap((each) => {
    if (each.name !== 'git') return [each]
    return text === null ? [] : [{ ...each, text }]
  }),
})

/** A conversation that has been answered once. */
function begun(profile: ProviderProfile = PROFILE): Conversation {
  const conversation = new Conversation(profile)
  conversation.builder.user('begin')
  conversation.ask()
  conversation.answer([{ type: 'text', text: 'yes' }])
  conversation.builder.user('go on')
  return conversation
}

const lastText = (conversation: Conversation): unknown => {
  const content = conversation.ask().payload.messages.at(-1)?.content
  return typeof content === 'string' ? content : content?.at(-1)?.text
}

describe('a section that changes within an epoch', () => {
  it('is told at the end and leaves the front alone', () => {
    const conversation = begun()
    const before = conversation.ask()
    conversation.present = withGit('2 files changed')
    const after = conversation.ask()
    expect(after.changes).toMatchObject([{ kind: 'delta', delta: { sections: { git: '2 files changed' } } }])
    expect(after.payload.system).toEqual(before.payload.system)
    expect(after.payload.messages.at(-1)?.content).toEqual([
      { type: 'text', text: 'go on' },
      {
        type: 'text',
        text: '<system-reminder>\nThe system prompt has changed.\nIts section "git" now reads:\n2 files changed\n</system-reminder>',
        cache_control: { type: 'ephemeral' },
      },
    ])
    expect(after.usage.read).toBe(after.forecast.read)
    expect(after.forecast.why).toBe('warm')
    expect(conversation.ask().changes).toEqual([])
  })

  it('that is gone, and one that is new', () => {
    const conversation = begun()
    conversation.present = withGit(null)
    expect(lastText(conversation)).toContain('Its section "git" no longer applies.')
    conversation.present = withGit('clean')
    expect(lastText(conversation)).toContain('Its section "git" now reads:\nclean')
  })

  it('moves into the front with the next epoch, and out of it when that is undone', () => {
    const conversation = begun()
    const first = JSON.stringify(conversation.ask().payload.system)
    conversation.present = withGit('dirty')
    conversation.ask()
    expect(conversation.compact().isReplaced).toBe(true)
    const second = JSON.stringify(conversation.ask().payload.system)
    expect([first.includes('clean'), second.includes('dirty')]).toEqual([true, true])
    conversation.builder.notice('compact_undone', { of: conversation.builder.view.rewrites[0]?.uuid ?? '' })
    const undone = conversation.ask()
    expect(JSON.stringify(undone.payload.system)).toBe(first)
    expect(undone.changes).toEqual([])
  })

  it('is told again when a compaction that leaves the epoch standing has taken the words away', () => {
    const conversation = begun()
    conversation.present = withGit('dirty')
    conversation.ask()
    const { builder } = conversation
    builder.notice('compact_boundary', {
      uuid: 'b',
      parentUuid: null,
      compactMetadata: { trigger: 'auto', preTokens: 1 },
    })
    builder.user('Summary', { parentUuid: 'b', isCompactSummary: true })
    expect(conversation.ask().changes).toMatchObject([
      { kind: 'delta', delta: { sections: { git: 'dirty' } } },
    ])
  })

  it('is no news where its words are kept', () => {
    const conversation = begun()
    conversation.present = withGit('dirty')
    conversation.ask()
    const { builder } = conversation
    const kept = builder.records
      .filter(({ type }) => type !== 'system')
      .slice(2)
      .map(({ uuid }) => uuid ?? '')
    builder.notice('compact_boundary', {
      uuid: 'b',
      parentUuid: null,
      compactMetadata: { trigger: 'auto', preTokens: 1, preservedMessages: { anchorUuid: 's', uuids: kept } },
    })
    builder.user('Summary', { uuid: 's', parentUuid: 'b', isCompactSummary: true })
    expect(conversation.ask().changes).toEqual([])
  })

  it('is rewritten at once where the policy says so, and the break is ours', () => {
    const conversation = begun()
    conversation.rules = { volatile: 'inline' }
    conversation.present = withGit('dirty')
    const { changes, payload, forecast, usage } = conversation.ask()
    expect(changes).toMatchObject([
      { kind: 'epoch', causes: [{ kind: 'sections', names: ['git'] }], breaksCache: true },
    ])
    expect(JSON.stringify(payload.system)).toContain('dirty')
    // The static part in front of the change is still there, though nobody has told yet how large it is.
    expect([forecast.why, forecast.isCertain]).toEqual(['rewritten', false])
    expect(usage.read).toBeGreaterThan(0)
  })

  it('waits all the same where thinking is bound to the prefix', () => {
    const conversation = begun()
    conversation.rules = { volatile: 'inline', isBound: true }
    conversation.present = withGit('dirty')
    expect(conversation.ask().changes.map(({ kind }) => kind)).toEqual(['delta'])
  })

  it('costs nothing while nothing has been answered yet', () => {
    const conversation = new Conversation()
    conversation.builder.user('begin')
    conversation.ask()
    conversation.present = withGit('dirty')
    expect(conversation.ask().changes).toMatchObject([{ kind: 'epoch', breaksCache: false }])
  })

  it('of attribution or identity is none: they are constant for the session', () => {
    const conversation = begun()
    const sections = PRESENT.sections.map((each) =>
      each.name === '@attribution' ? { ...each, text: 'bill: you' } : each,
    )
    conversation.present = { ...PRESENT, sections, model: 'model-b' }
    const { changes, payload } = conversation.ask()
    expect(changes).toMatchObject([{ causes: [{ kind: 'model', from: 'model-a', to: 'model-b' }] }])
    expect(payload.system?.[0]).toEqual({ type: 'text', text: 'bill: me' })
  })

  it('waits for the prompt where words would finish a turn that has thought', () => {
    const conversation = begun(
      defineMessagesProfile({
        ...PROFILE,
        thinking: { ...PROFILE.thinking, stripsFinishedTurns: true },
      }),
    )
    conversation.ask()
    const thinking = { type: 'thinking', thinking: 'hm', signature: 's' }
    conversation.answer([thinking, { type: 'tool_use', id: 't', name: 'Read', input: {} }])
    conversation.builder.result('t', 'text')
    conversation.present = withGit('dirty')
    expect(conversation.ask().changes).toEqual([])
    conversation.answer([{ type: 'text', text: 'done' }])
    conversation.builder.user('next')
    expect(conversation.ask().changes.map(({ kind }) => kind)).toEqual(['delta'])
  })
})

describe('tools that come late', () => {
  const late = tool('mcp__late', 'Fetches.')

  it('are announced, and defined with the next epoch', () => {
    const conversation = begun()
    const { payload: before } = conversation.ask()
    conversation.present = { ...PRESENT, tools: [...PRESENT.tools, late] }
    const { payload, forecast } = conversation.ask()
    expect([payload.tools, forecast.why]).toEqual([before.tools, 'warm'])
    expect(payload.messages.at(-1)?.content).toMatchObject([
      { text: 'go on' },
      {
        text: '<system-reminder>\nThe tools that can be called have changed.\nmcp__late: will be there to call after the next compaction. Fetches.\n</system-reminder>',
      },
    ])
    conversation.compact()
    expect(conversation.ask().payload.tools?.map(({ name }) => name)).toEqual([
      'Bash',
      'Edit',
      'Read',
      'mcp__late',
    ])
  })

  it('are defined at once at the price of a break that is told', () => {
    const conversation = begun()
    conversation.rules = { lateTools: 'define' }
    conversation.present = { ...PRESENT, tools: [...PRESENT.tools, late] }
    const { changes, payload } = conversation.ask()
    expect(changes).toMatchObject([
      { kind: 'epoch', causes: [{ kind: 'tools', names: ['mcp__late'] }], breaksCache: true },
    ])
    expect(payload.tools).toHaveLength(4)
  })

  it('come by the provider where it can add them, and leave and return the same way', () => {
    const conversation = begun(INLINE)
    conversation.present = { ...PRESENT, tools: [...PRESENT.tools.slice(1), late] }
    const asked = conversation.ask()
    expect(asked.payload.betas).toEqual(['changes', 'inline'])
    expect(asked.payload.tools?.map(({ name }) => name)).toEqual(['Bash', 'Edit', 'Read'])
    expect(asked.payload.messages.at(-1)).toEqual({
      role: 'system',
      content: [
        { type: 'tool_removal', tool: { type: 'tool_reference', name: 'Read' } },
        {
          type: 'tool_addition',
          tool: { type: 'tool_definition', definition: late },
          cache_control: { type: 'ephemeral' },
        },
      ],
    })
    expect([asked.findings, asked.forecast.why]).toEqual([[], 'warm'])
    conversation.answer([{ type: 'text', text: 'fine' }])
    conversation.builder.user('more')
    conversation.present = { ...PRESENT, tools: [...PRESENT.tools, late] }
    expect(conversation.ask().payload.messages.at(-1)?.content).toMatchObject([
      { type: 'tool_addition', tool: { type: 'tool_reference', name: 'Read' } },
    ])
    expect(
      [...conversation.told.tools].map(([name, { isCallable: isInForce }]) => [name, isInForce]),
    ).toEqual([
      ['Read', true],
      ['mcp__late', true],
    ])
  })

  it('come by the provider where it can add them, after the text about a tool that changed', () => {
    const conversation = begun(INLINE)
    const changed = tool('Read', 'Reads more.')
    conversation.present = { ...PRESENT, tools: [changed, ...PRESENT.tools.slice(1), late] }
    const { payload, findings } = conversation.ask()
    const [words, last] = payload.messages.slice(-2)
    expect(findings).toEqual([])
    expect(last?.content).toMatchObject([{ type: 'tool_addition', tool: { definition: late } }])
    expect(JSON.stringify(words?.content)).toContain('Read: is now defined as')
  })

  it('that change are told with their definition', () => {
    const conversation = begun(INLINE)
    conversation.present = { ...PRESENT, tools: [tool('Read', 'Reads more.'), ...PRESENT.tools.slice(1)] }
    expect(lastText(conversation)).toContain(
      'Read: is now defined as {"name":"Read","description":"Reads more.","input_schema":{"type":"object"}}',
    )
  })

  it('that are gone are told to be', () => {
    const conversation = begun()
    conversation.present = { ...PRESENT, tools: PRESENT.tools.slice(1) }
    expect(lastText(conversation)).toContain('Read: can no longer be called.')
  })
})

describe('parameters', () => {
  it('that no cache depends on change at once, and go when they are taken away', () => {
    const conversation = begun()
    conversation.present = { ...PRESENT, parameters: { max_tokens: 5, metadata: { user_id: 'u' } } }
    const { payload, forecast, changes } = conversation.ask()
    expect(changes).toMatchObject([{ kind: 'delta', records: [{ subtype: 'delta' }] }])
    expect([payload.max_tokens, payload.metadata, forecast.why]).toEqual([5, { user_id: 'u' }, 'warm'])
    conversation.present = PRESENT
    expect(conversation.ask().payload).not.toHaveProperty('metadata')
  })

  it('betas that an epoch named by itself, or did not yet, are no change', () => {
    const conversation = begun(INLINE)
    expect(conversation.ask()).toMatchObject({ changes: [], payload: { betas: ['changes', 'inline'] } })
    conversation.present = { ...PRESENT, parameters: { max_tokens: 1000, betas: ['inline'] } }
    expect(conversation.ask().changes).toEqual([])
    const older = new Conversation(INLINE)
    older.append([createSnapshotRecord(createPrefixSnapshot(PRESENT, PROFILE))])
    older.builder.user('begin')
    older.answer([{ type: 'text', text: 'yes' }])
    older.builder.user('go on')
    expect(older.ask()).toMatchObject({ changes: [], payload: { model: 'model-a' } })
    older.present = { ...PRESENT, parameters: { max_tokens: 1000, betas: ['other'] } }
    expect(older.ask().changes).toMatchObject([{ causes: [{ kind: 'parameters', names: ['betas'] }] }])
  })

  it('that one does are a break of ours', () => {
    const conversation = begun()
    conversation.present = { ...PRESENT, parameters: { max_tokens: 1000, thinking: { type: 'adaptive' } } }
    const { changes, forecast, usage } = conversation.ask()
    expect(changes).toMatchObject([{ kind: 'epoch', causes: [{ kind: 'parameters', names: ['thinking'] }] }])
    expect([forecast.why, forecast.isCertain || usage.read !== 0]).toEqual(['key', true])
  })
})

describe('the turn of an epoch', () => {
  const thought: KnownRecord = new SessionBuilder().assistant('m', [
    { type: 'thinking', thinking: 'x', signature: 's' },
  ])
  const addition = new SessionBuilder().system([
    { type: 'tool_addition', tool: { type: 'tool_definition', definition: tool('mcp__late') } },
  ])
  const epoch = createPrefixSnapshot(PRESENT, PROFILE)
  const changed = withGit('dirty')

  it.each<[string, readonly KnownRecord[], ProviderProfile, object]>([
    ['nothing kept', [], INLINE, { isReplaced: true }],
    ['bound thinking kept', [thought], INLINE, { isReplaced: false, because: 'bound-thinking' }],
    ['thinking kept that is bound to nothing', [thought], PROFILE, { isReplaced: true }],
  ])('%s', (_, records, profile, expected) => {
    expect(createSnapshotForCompaction(epoch, changed, { records, profile })).toMatchObject(expected)
  })

  it('does not happen where nothing would be otherwise', () => {
    expect(createSnapshotForCompaction(epoch, PRESENT, { records: [], profile: PROFILE })).toEqual({
      isReplaced: false,
      because: 'unchanged',
    })
  })

  it('declares every tool, also those that kept messages added, because these messages are hidden then', () => {
    const present = { ...PRESENT, tools: [...PRESENT.tools, tool('mcp__late'), tool('mcp__other')] }
    const turn = createSnapshotForCompaction(epoch, present, { records: [addition], profile: PROFILE })
    const tools = turn.isReplaced ? turn.epoch.tools.map(({ name }) => name) : []
    expect(tools).toEqual(['Bash', 'Edit', 'Read', 'mcp__late', 'mcp__other'])
  })

  it('sees bound thinking only where the provider binds it', () => {
    expect([hasBoundThinking([thought], INLINE), hasBoundThinking([thought], PROFILE)]).toEqual([true, false])
  })
})

describe('the fold', () => {
  it('passes over what is no epoch and keeps the one before', () => {
    const builder = new SessionBuilder()
    const epoch = createPrefixSnapshot(PRESENT, PROFILE)
    builder.notice('epoch', { epoch })
    for (const bad of [{}, { ...epoch, sections: 1 }, { ...epoch, tools: [1] }, { ...epoch, sections: [{}] }])
      builder.notice('epoch', { epoch: bad as unknown as PrefixSnapshot })
    const told = updateKnownPrefix(emptyKnownPrefix(), builder.session, builder.view)
    expect(told.current?.epoch).toEqual(epoch)
  })

  it('follows the branch that counts', () => {
    const conversation = begun()
    const { builder } = conversation
    const prompt = builder.records.findLast(({ type }) => type === 'user')
    conversation.present = { ...PRESENT, model: 'model-b' }
    expect(conversation.ask().payload.model).toBe('model-b')
    builder.user('instead', { parentUuid: prompt?.parentUuid ?? null })
    conversation.present = PRESENT
    const { payload, changes } = conversation.ask()
    expect([payload.model, changes]).toEqual(['model-a', []])
  })

  it('gives a payload that is the same after a round trip of the log', () => {
    const conversation = begun()
    conversation.present = withGit('dirty')
    const { request } = conversation.ask()
    expect(JSON.parse(JSON.stringify(toPayload(request)))).toEqual(toPayload(request))
  })
})
