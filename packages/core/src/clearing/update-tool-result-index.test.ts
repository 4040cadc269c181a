import { describe, expect, it } from 'vitest'
import { Situation, text } from '../../test/clear/situation.ts'
import {
  createResultPlaceholder,
  findClearCandidates,
  findFirstClearableCallId,
  NO_RETRIEVAL,
} from './clear-candidates.ts'
import { proposeBudgetClearing } from './propose-clearing.ts'
import { createEmptyToolResultIndex } from './tool-result-index.ts'
import { updateToolResultIndex } from './update-tool-result-index.ts'

describe('the register', () => {
  it('holds what a clearing must know of each call and result', () => {
    const situation = new Situation()
    const bash = situation.call('Bash', { command: 'npm test' }, text(10), { isError: true })
    const { register } = situation
    expect(register.results.toArray()).toEqual([
      {
        call: {
          id: bash,
          tool: 'Bash',
          uuid: situation.builder.records[1]?.uuid,
          place: 1,
          response: 0,
          isClearable: true,
          kind: 'run',
          path: null,
          range: null,
          repeatKey: 'Bash\n{"command":"npm test"}',
          inputs: [],
        },
        uuid: situation.builder.records[2]?.uuid,
        place: 2,
        tokens: 10,
        isError: true,
        isComplete: true,
        isCleared: false,
        refersTo: null,
      },
    ])
    expect(register.clearable).toEqual({ count: 1, tokens: 10 })
  })

  it('takes in only what is new, and begins anew where the view was rewritten', () => {
    const situation = new Situation()
    situation.reads(3, 100)
    const one = situation.register
    const [id] = situation.reads(1, 100)
    const two = updateToolResultIndex(one, situation.builder.view)
    expect(two.results.at(0)).toBe(one.results.at(0))
    expect(two.results.length).toBe(4)
    situation.say()
    situation.clear({
      trigger: 'auto',
      preTokens: 1,
      tokensSaved: 1,
      compactedToolIds: [id ?? ''],
      clearedAttachmentUUIDs: [],
    })
    const three = updateToolResultIndex(two, situation.builder.view)
    expect(three).toEqual(situation.register)
    expect([three.clearable, three.clearableSinceLast]).toEqual([
      { count: 3, tokens: 300 },
      { count: 0, tokens: 0 },
    ])
  })

  it('leaves out answers that come too late, come twice, or answer nobody', () => {
    const situation = new Situation()
    const { builder } = situation
    builder.assistant('m', [
      { type: 'tool_use', id: 'a', name: 'Read', input: {} },
      { type: 'tool_use', id: 'b', name: 'Read', input: {} },
    ])
    builder.result('a', text(10))
    builder.result('a', text(10))
    builder.result('stray', text(10))
    situation.say()
    builder.result('b', text(10))
    expect(situation.register.results.toArray().map(({ call }) => call.id)).toEqual(['a'])
  })

  it('takes results between the records of one response for answers to it', () => {
    const situation = new Situation()
    const { builder } = situation
    for (const id of ['a', 'b']) {
      builder.assistant('m', [{ type: 'tool_use', id, name: 'Read', input: { file_path: id } }])
      builder.result(id, text(100))
    }
    const placeholder = createResultPlaceholder('c', NO_RETRIEVAL)
    const free = () =>
      findClearCandidates({ register: situation.register, pins: [], keep: 0, placeholder }).length
    expect([situation.register.results.length, situation.register.responses.length, free()]).toEqual([
      2, 1, 0,
    ])
    situation.say()
    expect(free()).toBe(2)
  })

  it('takes a result that was put aside on arrival for a part, and promises no blob that nobody can read', () => {
    const situation = new Situation()
    const { builder } = situation
    const older = situation.read('/a', 30_000)
    builder.assistant('m', [{ type: 'tool_use', id: 'big', name: 'Read', input: { file_path: '/a' } }])
    const spilled = [{ toolUseId: 'big', part: null, blob: 'b7', holds: 'text' as const, bytes: 9 }]
    builder.result('big', text(30_000), { spilled })
    situation.reads(3, 10_000)
    situation.say()
    const { register } = situation
    expect(register.supersession.superseded.get(older)).toBeUndefined()
    expect(proposeBudgetClearing(situation.question()).proposal?.metadata.notes).toMatchObject({
      big: 'It cannot be read back here. If you need it, obtain it again.',
    })
    const retrieval = { historyTool: 'history', transcript: null }
    expect(proposeBudgetClearing(situation.question({ retrieval })).proposal?.metadata.notes).toMatchObject({
      big: 'To read it, call history with {"id":"big"}.',
    })
  })

  it('knows the first result that could be cleared: where the edge of the cache stands', () => {
    const situation = new Situation()
    situation.call('TodoWrite', {}, text(10))
    const [first, second] = situation.reads(2, 100)
    const uuid = situation.register.results.at(1)?.uuid ?? ''
    expect([
      findFirstClearableCallId(situation.register, []),
      findFirstClearableCallId(situation.register, [uuid]),
    ]).toEqual([first, second])
    expect(findFirstClearableCallId(createEmptyToolResultIndex(situation.rules), [])).toBeNull()
    // What is too short to be cleared does not hold it back, and what the provider deleted is still there.
    const tiny = new Situation()
    tiny.reads(3, 5)
    const [long] = tiny.reads(1, 100)
    tiny.clear({
      trigger: 'auto',
      way: 'cached',
      anchorUuid: 'x',
      preTokens: 1,
      tokensSaved: 1,
      compactedToolIds: [long ?? ''],
      clearedAttachmentUUIDs: [],
    })
    expect(findFirstClearableCallId(tiny.register, [])).toBe(long)
    const writing = new Situation()
    const todo = writing.call('TodoWrite', {}, text(10))
    const write = writing.call('Write', { file_path: '/a', content: text(2_000) }, 'ok')
    expect(findFirstClearableCallId(writing.register, [])).toBe(todo)
    expect(write).not.toBe(todo)
  })
})
