import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import type { TracedMessage } from '../../src/context/flatten-context.ts'
import type { Block } from '../../src/log/block.ts'
import { AppendList } from '../../src/log/persistent-collections.ts'
import type { ProviderProfile } from '../../src/policy/provider-profile.ts'
import { indexBlocks } from '../../src/request/block-index.ts'
import {
  type MessageBlockPlace,
  type PlanMarkersInput,
  type PlannedMarker,
  planMarkers,
} from '../../src/request/cache-markers.ts'
import {
  buildRequestPrefix,
  createPrefixSnapshot,
  type DesiredPrefix,
} from '../../src/request/prefix-snapshot.ts'
import { POLICY, PRESENT, PROFILE, tool } from './conversation.ts'

const text = (said = 'x'): Block => ({ type: 'text', text: said })
const call = (id: string): Block => ({ type: 'tool_use', id, name: 'Read', input: {} })
const result = (id: string): Block => ({ type: 'tool_result', tool_use_id: id, content: 'x' })
const thinking: Block = { type: 'thinking', thinking: '', signature: 's' }
const user = (...content: readonly Block[]): TracedMessage => ({
  message: { role: 'user', content },
  origins: [],
})
const assistant = (...content: readonly Block[]): TracedMessage => ({
  message: { role: 'assistant', content },
  origins: [],
})
const many = (count: number): readonly Block[] => Array.from({ length: count }, () => text())
const at = (index: number, block: number): MessageBlockPlace => ({ zone: 'messages', index, block })

interface Given extends Partial<Omit<PlanMarkersInput, 'front' | 'counted' | 'policy'>> {
  readonly present?: DesiredPrefix
  readonly profile?: ProviderProfile
  readonly policy?: Partial<PlanMarkersInput['policy']>
}

function frontFor(present: DesiredPrefix = PRESENT) {
  const epoch = createPrefixSnapshot(present, PROFILE)
  return buildRequestPrefix({ uuid: 'e', epoch, parameters: epoch.parameters, isFresh: false })
}

/** Kind and place of each marker, in the order of the request. */
function plan(messages: readonly TracedMessage[], given: Given = {}): readonly string[] {
  const { present, profile = PROFILE, policy, ...rest } = given
  const counted = indexBlocks({ frozen: AppendList.of(messages), tail: [] }, profile.cache.collapsesToolRuns)
  const markers = planMarkers({
    front: frontFor(present),
    blockIndex: counted,
    policy: { ...POLICY.cache.markers, ...policy },
    cache: profile.cache,
    spelling: profile.spelling,
    ttl: '5m',
    clears: true,
    ...rest,
  })
  return markers.map(({ kind, place }) =>
    place.zone === 'messages'
      ? `${kind} ${place.index}.${place.block}`
      : `${kind} ${place.zone}.${place.index}`,
  )
}

const clientMarker = (index: number, block: number): PlannedMarker => ({
  kind: 'client',
  place: at(index, block),
  ttl: null,
  control: { type: 'ephemeral' },
})

const LOOP = [user(text()), assistant(thinking, call('a'), call('b')), user(result('a'), result('b'))]

describe('markers', () => {
  it.each<[string, readonly TracedMessage[], Given, readonly string[]]>([
    [
      'a first prompt',
      [user(text())],
      {},
      ['last-tool tools.2', 'static-system system.2', 'system system.3', 'last-message 0.0'],
    ],
    [
      'an edge takes the place of the last tool',
      LOOP,
      { firstClearable: at(2, 0) },
      ['static-system system.2', 'system system.3', 'before-first-clearable 1.2', 'last-message 2.1'],
    ],
    [
      'the edge is the result before, where that one stays',
      LOOP,
      { firstClearable: at(2, 1) },
      ['static-system system.2', 'system system.3', 'before-first-clearable 2.0', 'last-message 2.1'],
    ],
    [
      'an edge with nothing in front of it is none',
      [user(result('a'))],
      { firstClearable: at(0, 0) },
      ['last-tool tools.2', 'static-system system.2', 'system system.3', 'last-message 0.0'],
    ],
    [
      'the next request will not repeat the end: nothing is written that is not read',
      LOOP,
      { firstClearable: at(2, 1), repeatedUntil: at(1, 2) },
      ['last-tool tools.2', 'static-system system.2', 'system system.3', 'last-message 1.2'],
    ],
    [
      'the next request will repeat no message',
      LOOP,
      { firstClearable: at(2, 0), repeatedUntil: null },
      ['last-tool tools.2', 'static-system system.2', 'system system.3'],
    ],
    [
      'the client caches the end all the same, and what is before it costs nothing',
      LOOP,
      { repeatedUntil: at(0, 0), clientMarkers: [clientMarker(2, 1)] },
      ['static-system system.2', 'system system.3', 'last-message 0.0', 'client 2.1'],
    ],
    [
      'the client does not cache its last block: neither do we',
      LOOP,
      { clientMarkers: [clientMarker(2, 0)] },
      ['last-tool tools.2', 'static-system system.2', 'system system.3', 'client 2.0'],
    ],
    [
      'tier 1 is off: one marker on the messages',
      [user(text()), assistant(...many(30)), user(text())],
      { clears: false, firstClearable: at(2, 0), carriersEnd: at(0, 0) },
      ['last-tool tools.2', 'static-system system.2', 'system system.3', 'last-message 2.0'],
    ],
    [
      'the policy wants no edge',
      LOOP,
      { firstClearable: at(2, 0), policy: { edge: false } },
      ['last-tool tools.2', 'static-system system.2', 'system system.3', 'last-message 2.1'],
    ],
    [
      'a turn of 18 positions needs no second marker',
      [user(text()), assistant(...many(17)), user(text())],
      {},
      ['last-tool tools.2', 'static-system system.2', 'system system.3', 'last-message 2.0'],
    ],
    [
      'one of 19 does',
      [user(text()), assistant(...many(18)), user(text())],
      {},
      ['static-system system.2', 'system system.3', 'previous-last-message 0.0', 'last-message 2.0'],
    ],
    [
      'a deletion from the cache is no position, and carries none',
      [user(text()), assistant(...many(17)), user({ type: 'cache_edits', edits: [] }, text())],
      {},
      ['last-tool tools.2', 'static-system system.2', 'system system.3', 'last-message 2.1'],
    ],
    [
      'one that comes last leaves the tail where it was',
      [user(text()), assistant(text()), user(text(), { type: 'cache_edits', edits: [] })],
      {},
      ['last-tool tools.2', 'static-system system.2', 'system system.3', 'last-message 2.0'],
    ],
    [
      'calls in a row are one position, and so are results',
      [user(text()), assistant(...Array.from({ length: 30 }, (_, i) => call(`${i}`))), user(text())],
      {},
      ['last-tool tools.2', 'static-system system.2', 'system system.3', 'last-message 2.0'],
    ],
    [
      'unless the provider counts them apart',
      [user(text()), assistant(...Array.from({ length: 30 }, (_, i) => call(`${i}`))), user(text())],
      { profile: defineMessagesProfile({ cache: { collapsesToolRuns: false } }) },
      ['static-system system.2', 'system system.3', 'previous-last-message 0.0', 'last-message 2.0'],
    ],
    [
      'a shorter look-back needs it sooner',
      [user(text()), assistant(...many(5)), user(text())],
      {
        profile: defineMessagesProfile({ cache: { lookBack: 6 } }),
        cache: defineMessagesProfile({ cache: { lookBack: 6 } }).cache,
      },
      ['static-system system.2', 'system system.3', 'previous-last-message 0.0', 'last-message 2.0'],
    ],
    [
      'edge and lagging fill the four',
      [...LOOP, assistant(...many(20)), user(text())],
      { firstClearable: at(2, 0) },
      ['system system.3', 'before-first-clearable 1.2', 'previous-last-message 2.1', 'last-message 4.0'],
    ],
    [
      'the first request behind a clearing stands on both edges',
      [...LOOP, assistant(call('c')), user(result('c'))],
      { leftClearable: at(2, 0), firstClearable: at(4, 0) },
      ['system system.3', 'before-first-clearable 1.2', 'before-first-clearable 3.0', 'last-message 4.0'],
    ],
    [
      'behind a compaction the edge is at the end of the carriers',
      [user(text(), text()), assistant(text()), user(text())],
      { carriersEnd: at(0, 0) },
      ['static-system system.2', 'system system.3', 'before-first-clearable 0.0', 'last-message 2.0'],
    ],
    [
      'which keep a marker when there is something to clear again',
      LOOP,
      { carriersEnd: at(0, 0), firstClearable: at(2, 0) },
      ['system system.3', 'after-sources 0.0', 'before-first-clearable 1.2', 'last-message 2.1'],
    ],
    [
      'the tail is never on thinking',
      [user(text()), assistant(text(), thinking)],
      {},
      ['last-tool tools.2', 'static-system system.2', 'system system.3', 'last-message 1.0'],
    ],
    [
      'nor on blank text',
      [user(text(), text(' '))],
      {},
      ['last-tool tools.2', 'static-system system.2', 'system system.3', 'last-message 0.0'],
    ],
    [
      'two at most',
      LOOP,
      { firstClearable: at(2, 0), policy: { maximum: 2 } },
      ['before-first-clearable 1.2', 'last-message 2.1'],
    ],
    [
      'the provider takes none',
      LOOP,
      { cache: defineMessagesProfile({ cache: { maxMarkers: 0 } }).cache },
      [],
    ],
    [
      'without a system prompt the tools end the front',
      [user(text())],
      { present: { ...PRESENT, sections: [] } },
      ['system tools.2', 'last-message 0.0'],
    ],
    [
      'without anything',
      [user(text())],
      { present: { ...PRESENT, sections: [], tools: [] } },
      ['last-message 0.0'],
    ],
    [
      'the last tool that everybody has',
      [user(text())],
      { present: { ...PRESENT, tools: [...PRESENT.tools, tool('mcp__x')] } },
      ['last-tool tools.2', 'static-system system.2', 'system system.3', 'last-message 0.0'],
    ],
    [
      'a turn-scoped word carries none',
      [
        user(text()),
        { message: { role: 'system', content: [text()], clear_at: 'next_user_message' }, origins: [] },
      ],
      {},
      ['last-tool tools.2', 'static-system system.2', 'system system.3', 'last-message 0.0'],
    ],
  ])('%s', (_, messages, given, expected) => {
    expect(plan(messages, given)).toEqual(expected)
  })

  it('ask for the lifetime in force where it is not the default', () => {
    const controls = (ttl: string, profile: ProviderProfile = PROFILE, present: DesiredPrefix = PRESENT) => {
      const counted = indexBlocks({ frozen: AppendList.of([user(text())]), tail: [] }, true)
      const { markers: policy } = POLICY.cache
      const question: PlanMarkersInput = {
        front: frontFor(present),
        blockIndex: counted,
        policy,
        cache: profile.cache,
        spelling: profile.spelling,
        ttl,
        clears: true,
      }
      return planMarkers(question).map(({ kind, control }) => [kind, control])
    }
    const plain = { type: 'ephemeral' }
    const hour = { type: 'ephemeral', ttl: '1h' }
    const all = ['last-tool', 'static-system', 'system', 'last-message']
    expect(controls('5m')).toEqual(all.map((kind) => [kind, plain]))
    expect(controls('1h')).toEqual(all.map((kind) => [kind, hour]))
    expect(controls('2d')).toEqual(all.map((kind) => [kind, plain]))
    const shared = defineMessagesProfile({ cache: { scopes: ['global'] } })
    const mine = { ...PRESENT, tools: [...PRESENT.tools, tool('mcp__x')] }
    const scopes = (present: DesiredPrefix) =>
      controls('5m', shared, present).map(([kind, control]) => [kind, (control as { scope?: string }).scope])
    expect(scopes(PRESENT)).toEqual(
      all.map((kind) => [kind, kind === 'static-system' ? 'global' : undefined]),
    )
    expect(scopes(mine)).toEqual(all.map((kind) => [kind, undefined]))
  })
})

it('only the markers that move with every request have the lifetime of the newest messages, and longer ones come first', () => {
  const controls = (messages: readonly TracedMessage[], given: Partial<PlanMarkersInput>) =>
    planMarkers({
      front: frontFor(),
      blockIndex: indexBlocks({ frozen: AppendList.of(messages), tail: [] }, true),
      policy: POLICY.cache.markers,
      cache: PROFILE.cache,
      spelling: PROFILE.spelling,
      ttl: '1h',
      tailTtl: '5m',
      clears: true,
      ...given,
    }).map(({ kind, control }) => [kind, control.ttl ?? '5m'])
  expect(controls(LOOP, { firstClearable: at(2, 0) })).toEqual([
    ['static-system', '1h'],
    ['system', '1h'],
    ['before-first-clearable', '1h'],
    ['last-message', '5m'],
  ])
  // The end of the request before stands in front of the first result that may be cleared.
  const wide = [user(text()), assistant(call('a')), user(result('a'), ...many(30))]
  expect(controls(wide, { firstClearable: at(2, 20) })).toEqual([
    ['system', '1h'],
    ['previous-last-message', '5m'],
    ['before-first-clearable', '5m'],
    ['last-message', '5m'],
  ])
  expect(controls(LOOP, { clientMarkers: [clientMarker(0, 0)] }).every(([, ttl]) => ttl === '5m')).toBe(true)
})

describe('the front', () => {
  it('is at most four blocks, in order, each knowing its sections', () => {
    expect(frontFor().system.map(({ part, sections, block }) => [part, sections, block.text])).toEqual([
      ['attribution', ['@attribution'], 'bill: me'],
      ['identity', ['@identity'], 'You are an agent.'],
      ['static', ['rules'], 'Be careful.'],
      ['dynamic', ['environment', 'git'], 'Linux\n\nclean'],
    ])
  })

  it('is the same object while nothing about it changed', () => {
    const front = frontFor()
    const { current: standing } = front
    expect(buildRequestPrefix({ ...standing, isFresh: true }, { previous: front })).toBe(front)
    expect(buildRequestPrefix({ ...standing, parameters: {} }, { previous: front })).not.toBe(front)
  })
})
